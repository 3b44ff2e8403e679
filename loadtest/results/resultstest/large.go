package resultstest

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"time"

	"weir/loadtest/measure"
	"weir/loadtest/results"
	"weir/monitor"
	"weir/storage"
)

// A Large is a run of a big cluster: many hosts and data servers, for tests of the cost of an
// analysis. It is written line by line, with the same content each time.
type Large struct {
	Seconds int // of the whole run, divided equally between the steps
	Steps   int
	Servers int // hosts
	Loaders int // hosts
	Stores  int // data servers, distributed over the hosts; each has one interval of reads per second
	Writes  int // number of data servers with writes as well: a second interval each
	Cores   int // of each host
}

// Hour returns a large test of a large site: each of 40 data servers is monitored and has an
// interval a second, 144,000 intervals and 180,000 samples in total.
func Hour() Large {
	return Large{Seconds: 3600, Steps: 20, Servers: 40, Loaders: 10, Stores: 40, Cores: 16}
}

// service returns the service that determines the run's load.
func (l Large) service() Service {
	s := Service{Lambda: 60 * float64(l.Stores) / 50, Sigma: 0.004, Kappa: 1e-6, Think: 0, File: 64 << 20, Duration: l.Seconds/l.Steps - 2}
	for i := range l.Steps {
		s.Clients = append(s.Clients, 10*(i+1)*(i+2)/2) // 10 to 2100 in 20 steps
	}
	return s
}

// Write writes the run into dir. Memory does not grow with the run.
func (l Large) Write(dir string) (err error) {
	s := l.service()
	about := results.About{Weir: "test", Go: "go", Run: "20260301-120000-abcdef", Start: Start(),
		Command: []string{"weir", "run", "large.yaml"},
		Clock:   results.Clock{Source: "tsc", Read: 4e-8, Step: 2e-8}, Environment: json.RawMessage(`{"kernel":"6.12.0","cores":16}`)}
	w, err := results.Create(dir, s.Plan(), about)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, w.Close()) }()
	var lines [2]*bufio.Writer
	for i, name := range []string{results.IntervalsFile, results.HostsFile} {
		f, err := os.OpenFile(filepath.Join(dir, name), os.O_WRONLY|os.O_APPEND, 0)
		if err != nil {
			return err
		}
		defer func() { err = errors.Join(err, f.Close()) }()
		lines[i] = bufio.NewWriterSize(f, 1<<20)
	}
	r := rand.New(rand.NewPCG(3, 4))
	now := Start()
	err = w.Event(measure.Event{Time: now, Kind: measure.EventRun, Text: "begins"})
	for i := range s.Clients {
		err = errors.Join(err, w.Event(measure.Event{Time: now, Kind: measure.EventStep, Step: i + 1, Text: "begins"}),
			l.step(lines[0], lines[1], r, s, i, now))
		now = now.Add(time.Duration(s.Duration+2) * time.Second)
	}
	return errors.Join(err, lines[0].Flush(), lines[1].Flush(),
		w.Event(measure.Event{Time: now, Kind: measure.EventEnd, Outcome: measure.Complete, Text: "all steps done"}))
}

// variants is the number of different seconds of one data server in a step.
const variants = 16

// step writes the intervals and the samples of one step.
func (l Large) step(intervals, samples *bufio.Writer, r *rand.Rand, s Service, number int, begin time.Time) error {
	var reads, writes [variants]template
	clients := s.Clients[number]
	share := s.Rate(clients) / float64(l.Stores+l.Writes) // operations/s of one data server and one kind
	for i := range reads {
		busy := share * (0.9 + 0.2*r.Float64())
		reads[i] = newTemplate(r, s, storage.Read, number+1, clients, busy)
		writes[i] = newTemplate(r, s, storage.Write, number+1, clients, busy)
	}
	out := json.NewEncoder(samples)
	out.SetEscapeHTML(false)
	for k := range s.Duration + 2 {
		phase := measure.Measured
		switch k {
		case 0:
			phase = measure.Ramp
		case 1:
			phase = measure.Warmup
		}
		now := begin.Add(time.Duration(k) * time.Second)
		moved := int64(0)
		for store := range l.Stores {
			t := &reads[r.IntN(variants)]
			moved += t.moved
			if err := t.write(intervals, now, phase, store); err != nil {
				return err
			}
			if store >= l.Writes {
				continue
			}
			t = &writes[r.IntN(variants)]
			moved += t.moved
			if err := t.write(intervals, now, phase, store); err != nil {
				return err
			}
		}
		for host := range l.Servers + l.Loaders {
			end := now.Add(time.Second + time.Duration(r.IntN(5e6)))
			if err := out.Encode(l.sample(r, end, number+1, host, s.Rate(clients)/s.Most(), float64(moved))); err != nil {
				return err
			}
		}
	}
	return nil
}

// A template is the line of an interval, split at its time, its phase and its data server:
// compressing histograms 270,000 times would be too slow.
type template struct {
	parts [4][]byte
	moved int64
}

func newTemplate(r *rand.Rand, s Service, kind storage.Kind, step, clients int, rate float64) template {
	done := int64(max(1, math.Round(rate)))
	iv := &measure.Interval{
		Start: time.Unix(0, 0).UTC(), Seconds: 1, Step: step, Phase: "PHASE", Clients: float64(clients), Kind: kind, Server: "SERVER",
		Sum: measure.Sum{
			Moved: done * s.File, Wire: done * (s.File + 300), Begun: done, Done: done, Tasks: done, Verified: 1, Sessions: done,
		},
	}
	mean := float64(clients) / s.Rate(clients)
	for range done {
		x := mean * 0.9 * math.Exp(0.45*r.NormFloat64())
		iv.Latency.Record(time.Duration(x * 1e9))
		iv.FirstByte.Record(time.Duration(x * 2e8))
		iv.Late.Record(time.Duration(5e4 * math.Exp(0.5*r.NormFloat64())))
	}
	b, err := json.Marshal(iv)
	if err != nil {
		panic(err) // of an interval created here
	}
	t := template{moved: iv.Moved}
	for i, at := range []string{`1970-01-01T00:00:00Z`, `PHASE`, `SERVER`} {
		t.parts[i], b, _ = bytes.Cut(b, []byte(at))
	}
	t.parts[3] = append(b, '\n')
	return t
}

func (t *template) write(w *bufio.Writer, now time.Time, phase string, store int) error {
	p := &t.parts
	_, err := fmt.Fprintf(w, "%s%s%s%s%sstore%02d.example.org:1094%s", p[0], now.Format(time.RFC3339Nano), p[1], phase, p[2], store, p[3])
	return err
}

// sample returns a second of one host, with the service at share of its maximum, and bytes moving
// per second through all servers together.
func (l Large) sample(r *rand.Rand, end time.Time, step, host int, share, bytes float64) *monitor.Sample {
	seconds := math.Round(1e9+1e5*r.NormFloat64()) / 1e9
	used := share * (0.8 + 0.1*r.Float64()) // of the CPU
	ticks := 100 * float64(l.Cores)
	millionths := func(x float64) float64 { return math.Round(x*1e6) / 1e6 } // as the monitor writes them
	part := func(x float64) float64 { return millionths(math.Round(x*ticks) / (ticks * seconds)) }
	s := &monitor.Sample{Time: end, Seconds: seconds, Step: step, Cores: l.Cores, Load: math.Round(100*used*float64(l.Cores)) / 100,
		CPU: &monitor.CPU{User: part(used * 0.3), System: part(used * 0.6), IRQ: part(used * 0.1), IOWait: part(0.02 * r.Float64()),
			Idle: part(1 - used)},
		Memory: &monitor.Memory{Total: 64 << 30, Available: 50<<30 - r.Int64N(1<<30)},
		TCP:    &monitor.TCP{Retransmits: r.Int64N(20), Established: r.Int64N(3000)}, Cost: 0.0005 + 1e-9*float64(r.IntN(1e5))}
	for range l.Cores {
		s.Core = append(s.Core, millionths(math.Round(100*min(1, used*(0.8+0.4*r.Float64())))/(100*seconds)))
	}
	hosts, role, program := l.Servers, monitor.RoleServer, "xrootd"
	s.Host = fmt.Sprintf("store%02d.example.org", host)
	if host >= l.Servers {
		hosts, role, program = l.Loaders, monitor.RoleClient, "weir"
		s.Host = fmt.Sprintf("load%02d.example.org", host-l.Servers)
	}
	s.Role = role
	wire := int64(bytes / float64(hosts) * (1 + 0.02*(2*r.Float64()-1)))
	for i := range 3 {
		s.Disks = append(s.Disks, monitor.Disk{Name: fmt.Sprintf("nvme%dn1", i), Read: math.Round(float64(wire) / 4 / seconds),
			Write: math.Round(float64(wire) / 12 / seconds), Ops: millionths(float64(wire>>17) / seconds), Queue: millionths(4 * used * r.Float64()),
			Busy: millionths(used * r.Float64() * 0.6)})
	}
	in, out := wire/3/1448, wire*2/3/1448 // packets, each with 66 bytes of headers
	s.Nets = []monitor.Net{
		{Name: "eth0", Received: wire/3 + 66*in, Sent: wire*2/3 + 66*out, PacketsIn: in, PacketsOut: out, Speed: 1e11},
		{Name: "eth1", Received: 4000 + r.Int64N(4000), Sent: 3000, PacketsIn: 40, PacketsOut: 30, Speed: 1e9},
		{Name: "lo", Received: 20000, Sent: 20000, PacketsIn: 100, PacketsOut: 100},
	}
	cpu := used * float64(l.Cores)
	s.Procs = []monitor.Proc{{Name: program, Role: role, Count: 1, Threads: 100 + r.IntN(50), User: math.Round(30*cpu) / 100,
		System: math.Round(60*cpu) / 100, RSS: 200<<20 + r.Int64N(100<<20), Files: r.IntN(4000), Read: wire, Written: wire}}
	if role == monitor.RoleServer {
		s.Procs = append(s.Procs, monitor.Proc{Name: "cmsd", Role: role, Count: 1, Threads: 20, User: 0.01, RSS: 30 << 20, Files: 60,
			Read: r.Int64N(9000), Written: r.Int64N(9000)})
	}
	return s
}
