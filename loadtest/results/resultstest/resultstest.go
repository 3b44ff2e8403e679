// Package resultstest writes run directories of a service whose curve follows from a formula, for
// the tests of everything that reads run directories.
package resultstest

import (
	"encoding/json"
	"errors"
	"math"
	"math/rand/v2"
	"time"

	"weir/internal/unit"
	"weir/loadtest/measure"
	"weir/loadtest/results"
	"weir/loadtest/scenario"
	"weir/loadtest/workload"
	"weir/monitor"
	"weir/storage"
)

// A Service is a simulated service under a simulated closed load. Its rate follows the universal
// scalability law, X(N) = L*N / (1 + S*(N-1) + K*N*(N-1)), and its latency Little's law, R = N/X -
// Z.
type Service struct {
	Lambda, Sigma, Kappa float64 // per second; shares
	Think                float64 // Z, seconds
	File                 int64   // bytes; 0 for operations without payload
	Clients              []int
	Duration             int                                             // seconds of each step
	Noise                float64                                         // relative deviation of each second's rate
	Interval             func(*measure.Interval)                         // changes each interval before it is written; may be nil
	Sample               func(*monitor.Sample)                           // changes each sample
	More                 func(*measure.Interval) []*measure.Interval     // further intervals of the same second; may be nil
	Seed                 uint64                                          // of the noise
	Unfinished           bool                                            // no end event
	Jobs                 *Jobs                                           // nil: clients run no jobs
	Links                scenario.Links                                  // of the plan
	Hosts                []monitor.Host                                  // of the plan
	Balancer             monitor.BalancerConfig                          // of the plan
	MoreSamples          func(end time.Time, step int) []*monitor.Sample // further samples of the same second; may be nil
	Event                func(now time.Time, step int) *measure.Event    // at the start of each second; may be nil, or return nil
	Environment          json.RawMessage                                 // of about.json; nil: typical
	Search               bool                                            // the steps were chosen by a search
}

// Typical returns a service that peaks at 99 clients, by sqrt((1-S)/K).
func Typical() Service {
	return Service{Lambda: 60, Sigma: 0.02, Kappa: 0.0001, File: 1 << 20, Clients: []int{1, 2, 4, 8, 16, 32, 64, 128, 256},
		Duration: 8, Noise: 0.02}
}

// Rate returns X(n), operations per second.
func (s Service) Rate(n int) float64 {
	N := float64(n)
	return s.Lambda * N / (1 + s.Sigma*(N-1) + s.Kappa*N*(N-1))
}

// Peak returns the number of clients with the largest rate.
func (s Service) Peak() float64 { return math.Sqrt((1 - s.Sigma) / s.Kappa) }

// Most returns the largest rate of all steps.
func (s Service) Most() float64 {
	most := 0.0
	for _, n := range s.Clients {
		most = max(most, s.Rate(n))
	}
	return most
}

// Start returns the start time of every simulated run.
func Start() time.Time { return time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC) }

// Plan returns the plan of the run.
func (s Service) Plan() *scenario.Plan {
	p := &scenario.Plan{Version: scenario.PlanVersion, Name: "typical", Target: "http://store.example.org:8080/data", Driver: "webdav",
		Seed: 1, Links: s.Links, Hosts: s.Hosts, Balancer: s.Balancer,
		Model: "closed", Work: workload.Work{Kind: "read", Session: "kept", Pick: "random", Verify: 0.01, Sum: "adler32",
			Timeout: unit.Duration(time.Minute)},
		Files: scenario.Files{Make: &scenario.Make{Count: 1000, Size: workload.Dist{Fixed: unit.Size(s.File)}}}}
	for i, n := range s.Clients {
		p.Steps = append(p.Steps, scenario.Step{Number: i + 1, Clients: n, Ramp: unit.Duration(time.Second), Warmup: unit.Duration(time.Second),
			Duration: unit.Duration(time.Duration(s.Duration) * time.Second)})
	}
	if s.Search {
		p.Steps, p.Find = []scenario.Step{}, &scenario.Find{Min: 1, Max: 1000, Time: unit.Duration(time.Minute), Within: 0.1,
			Duration: unit.Duration(time.Duration(s.Duration) * time.Second)}
	}
	if s.Jobs != nil {
		p.Work.Kind, p.Work.Job = "job", &s.Jobs.Job
		for i := range p.Steps {
			p.Steps[i].Jobs = s.Jobs.Each
		}
	}
	return p
}

// Write writes the run into dir.
func (s Service) Write(dir string) error {
	about := results.About{Weir: "test", Go: "go", Run: "20260301-120000-abcdef", Start: Start(),
		Command: []string{"weir", "run", "--target", "http://store.example.org:8080/data"},
		Clock:   results.Clock{Source: "tsc", Read: 4e-8, Step: 2e-8},
		Environment: json.RawMessage(
			`{"kernel":"6.12.0","cores":4,"congestion_control":"cubic","open_files":1048576,"port_range":[32768,60999]}`)}
	if s.Environment != nil {
		about.Environment = s.Environment
	}
	w, err := results.Create(dir, s.Plan(), about)
	if err != nil {
		return err
	}
	r := rand.New(rand.NewPCG(1+s.Seed, 2))
	now := Start()
	err = w.Event(measure.Event{Time: now, Kind: measure.EventRun, Text: "begins"})
	for i, n := range s.Clients {
		ended := 0.0 // of the next job
		step := measure.Event{Time: now, Kind: measure.EventStep, Step: i + 1, Text: "begins"}
		if s.Search {
			step.Clients = n
		}
		err = errors.Join(err, w.Event(step))
		for k := range s.Duration + 2 {
			phase, clients := measure.Measured, float64(n)
			switch k {
			case 0:
				phase, clients = measure.Ramp, float64(n)/2
			case 1:
				phase = measure.Warmup
			}
			if s.Event != nil {
				if e := s.Event(now, i+1); e != nil {
					err = errors.Join(err, w.Event(*e))
				}
			}
			err = errors.Join(err, s.second(w, r, now, i+1, phase, n, clients, &ended))
			now = now.Add(time.Second)
		}
	}
	if !s.Unfinished {
		err = errors.Join(err, w.Event(measure.Event{Time: now, Kind: measure.EventEnd, Outcome: measure.Complete, Text: "all steps done"}))
	}
	return errors.Join(err, w.Close())
}

// late is the delay of each start.
const late = 50 * time.Microsecond

// second writes one second: an interval and a sample of each of the two hosts.
func (s Service) second(w *results.Writer, r *rand.Rand, now time.Time, step int, phase string, n int, clients float64,
	ended *float64) error {
	rate := s.Rate(n) * clients / float64(n)
	done := int64(math.Round(rate * (1 + s.Noise*(2*r.Float64()-1))))
	iv := &measure.Interval{
		Start: now, Seconds: 1, Step: step, Phase: phase, Clients: clients, Kind: storage.Read, Server: "store.example.org:8080",
		Sum: measure.Sum{
			Moved: done * s.File, Wire: done * (s.File + 300), Begun: done, Done: done, Tasks: done, Verified: done / 100,
			Think: s.Think * float64(done),
		},
	}
	if k := float64(done) / 100; k < 1 && phase == measure.Measured {
		iv.Verified = 1
	}
	latency := clients/max(float64(done), 1) - s.Think
	if s.Jobs != nil {
		iv.Tasks, latency = 0, latency-s.Jobs.each()
		s.Jobs.put(&s, iv, n, ended)
	} else {
		latency -= min(late.Seconds(), latency/2)
	}
	iv.OperationTime = max(0, latency*float64(max(done, 1)))
	for i := range done {
		x := latency * (0.5 + (float64(i)+0.5)/float64(done)) // uniform from half to one and a half means
		iv.Latency.Record(time.Duration(x * 1e9))
		iv.FirstByte.Record(time.Duration(x * 2e8))
		iv.Late.Record(late)
	}
	if s.Interval != nil {
		s.Interval(iv)
	}
	err := w.Interval(iv)
	if s.More != nil {
		for _, more := range s.More(iv) {
			err = errors.Join(err, w.Interval(more))
		}
	}
	samples := s.samples(now.Add(time.Second), step, done, s.Rate(n)/s.Most())
	if s.MoreSamples != nil {
		samples = append(samples, s.MoreSamples(now.Add(time.Second), step)...)
	}
	for _, sample := range samples {
		if s.Sample != nil {
			s.Sample(sample)
		}
		err = errors.Join(err, w.Sample(sample))
	}
	return err
}

// samples returns the samples of the two hosts in a second of done operations, with the service at
// share of its maximum.
func (s Service) samples(end time.Time, step int, done int64, share float64) []*monitor.Sample {
	wire := done * (s.File + 300)
	packets := wire/1448 + 1
	server := &monitor.Sample{Time: end, Seconds: 1, Host: "store.example.org", Role: "server", Step: step, Cores: 4,
		CPU:    &monitor.CPU{User: 0.25 * share, System: 0.6 * share, IRQ: 0.05 * share, IOWait: 0.02, Idle: 0.98 - 0.9*share},
		Memory: &monitor.Memory{Total: 16 << 30, Available: 12 << 30},
		Disks:  []monitor.Disk{{Name: "nvme0n1", Read: float64(wire) / 10, Ops: float64(done), Busy: 0.3 * share}},
		Nets: []monitor.Net{{Name: "eth0", Sent: wire + 66*packets, PacketsOut: packets, Received: 66 * packets / 2, PacketsIn: packets / 2,
			Speed: 1e11}},
		Procs: []monitor.Proc{{Name: "stored", Role: "server", Count: 1, Threads: 8, User: share, System: 2.4 * share, RSS: 200 << 20,
			Written: wire}}, Cost: 0.0005}
	client := &monitor.Sample{Time: end, Seconds: 1, Host: "load.example.org", Role: "client", Step: step, Cores: 4,
		CPU:    &monitor.CPU{User: 0.05 * share, System: 0.2 * share, Idle: 1 - 0.25*share},
		Memory: &monitor.Memory{Total: 16 << 30, Available: 14 << 30},
		Procs: []monitor.Proc{{Name: "weir", Role: "client", Count: 1, Threads: 6, User: 0.2 * share, System: 0.7 * share, RSS: 60 << 20,
			Read: wire}}, Cost: 0.0005}
	return []*monitor.Sample{server, client}
}
