package analysis

import (
	"math"
	"slices"
	"strings"
	"testing"
	"time"

	"weir/internal/require"
	"weir/internal/tier"
	"weir/loadtest/analysis/fact"
	"weir/loadtest/analysis/hosts"
	"weir/loadtest/analysis/limits"
	"weir/loadtest/analysis/steps"
	"weir/loadtest/measure"
	"weir/loadtest/results/resultstest"
	"weir/monitor"
	"weir/storage"
)

// A station serves at most most operations/s; each operation takes latency seconds if no operation
// waits.
type station struct {
	clients              []int
	latency, think, most float64
	wobble               float64                               // relative error of each step's rate, up and down in turn
	sample               func(s *monitor.Sample, n, x float64) // n clients get x operations/s
	more                 func(iv *measure.Interval)
}

func (s station) rate(n float64) float64 { return min(n/(s.latency+s.think), s.most) }

// service makes a run of the station. Its machines are idle unless sample sets another load.
func (s station) service() resultstest.Service {
	r := resultstest.Typical()
	r.Clients, r.Duration, r.Sigma, r.Kappa, r.Think, r.Noise = s.clients, 6, 0, 0, s.think, 0
	r.Lambda = 1 / (s.latency + s.think)
	r.Interval = func(iv *measure.Interval) {
		x := s.rate(iv.Clients) * (1 + s.wobble*float64(1-2*(iv.Step%2)))
		iv.Done = int64(math.Round(x))
		iv.Begun, iv.Tasks, iv.Verified = iv.Done, iv.Done, iv.Done/10
		iv.Moved, iv.Wire = iv.Done*r.File, iv.Done*(r.File+300)
		iv.Think = s.think * float64(iv.Done)
		iv.Latency.Reset()
		for range iv.Done {
			iv.Latency.Record(time.Duration((iv.Clients/float64(iv.Done) - s.think) * 1e9))
		}
		if s.more != nil {
			s.more(iv)
		}
	}
	r.Sample = func(x *monitor.Sample) {
		n := float64(s.clients[x.Step-1])
		x.CPU, x.Disks = &monitor.CPU{User: 0.02, Idle: 0.98}, nil
		for i := range x.Nets {
			x.Nets[i].Speed, x.Nets[i].Sent = 1e12, int64(s.rate(n)*1.05*float64(r.File))
		}
		for i := range x.Procs {
			x.Procs[i].User, x.Procs[i].System = 0.01*4, 0
		}
		if s.sample != nil {
			s.sample(x, n, s.rate(n))
		}
	}
	return r
}

// busy sets the CPU of a host, used by its processes.
func busy(x *monitor.Sample, share float64) {
	share = min(share, 1)
	x.CPU = &monitor.CPU{User: share, Idle: 1 - share}
	x.Procs[0].User = share * float64(x.Cores)
	if x.Role == hosts.Server { // evenly by its threads
		x.Procs[0].MeasuredThreads, x.Procs[0].BusiestThread = x.Procs[0].Threads, x.Procs[0].User/float64(x.Procs[0].Threads)
	}
}

func onServer(f func(x *monitor.Sample, n, rate float64)) func(*monitor.Sample, float64, float64) {
	return func(x *monitor.Sample, n, rate float64) {
		if x.Role == hosts.Server {
			f(x, n, rate)
		}
	}
}

// asXRootD replaces the server's sample by the statistics of an XRootD server.
func asXRootD(x *monitor.Sample, v monitor.Service) {
	v.Name, v.Program, v.Kind = "ds1:1094", "xrootd", monitor.DataServer
	*x = monitor.Sample{Time: x.Time, Seconds: x.Seconds, Step: x.Step, Host: v.Name, Role: hosts.Server, Service: &v, Cost: x.Cost}
}

// nearlyBusy sets the CPU to 80% in one second and 92% in the next at full load.
func nearlyBusy(x *monitor.Sample, part, waits float64) {
	busy(x, part*(0.86+0.06*float64(1-2*(x.Time.Unix()%2))))
	x.Waits = &waits
}

// both moves the service to the machine of the clients.
func both(x *monitor.Sample, serves, loads, kernel float64) {
	x.Host, x.Role, x.Cores = "one.example.org", "both", 2
	x.CPU = &monitor.CPU{User: (serves + loads) / 2, IRQ: kernel / 2, Idle: 1 - (serves+loads+kernel)/2}
	x.Procs = []monitor.Proc{{Name: "stored", Role: hosts.Server, Count: 1, Threads: 8, User: serves},
		{Name: "weir", Role: hosts.Client, Count: 1, Threads: 8, User: loads}}
}

// limit returns the station of most tests: linear up to 32 clients, flat at 400/s from 40 clients
// on.
func limit(sample func(x *monitor.Sample, n, rate float64)) station {
	return station{clients: []int{1, 2, 4, 8, 16, 32, 64, 128, 256}, latency: 0.1, most: 400, sample: sample}
}

func TestBottleneck(t *testing.T) {
	tier.Slow(t, "analyzes dozens of runs")
	const most = 400.0
	for name, c := range map[string]struct {
		station
		want     []string // resource, host, side and first step of each
		evidence []string // of the first: codes of facts, or parts of its text
	}{
		"server CPU": {limit(onServer(func(x *monitor.Sample, _, rate float64) { busy(x, 0.97*rate/most) })),
			[]string{"cpu store.example.org server 64"},
			[]string{"At 64 clients the CPU of store.example.org is saturated: 97% busy, 3.88 of 4 cores: the service's processes 3.88.",
				"At 32 clients it was used to 77.6%", "does not grow (3.36 Gbit/s, then at most 3.36 Gbit/s), while the number of clients grows " +
					"4-fold (to 256 clients)"}},
		"others fill the CPU at the only load, and both sides want little of it": {station{clients: []int{2}, latency: 0.1, most: 400,
			sample: func(x *monitor.Sample, _, _ float64) {
				both(x, 0.01, 0.01, 0)
				x.CPU = &monitor.CPU{User: 1}
			}}, []string{"unknown   2"}, []string{"The limit is probably not the CPU of one.example.org, although other programs and " +
			"guests used 99% of it"}},
		"a backup fills the disk at the only load, whose files are in the cache": {station{clients: []int{64}, latency: 0.1, most: 400,
			sample: onServer(func(x *monitor.Sample, _, _ float64) {
				x.Disks = []monitor.Disk{{Name: "sda", Write: 3e7, Busy: 1, Queue: 40}}
			})}, []string{"none   64"}, []string{"hardly any of it for this load"}},
		"a backup fills the disk at the heaviest loads, whose files are in the cache": {limit(onServer(func(x *monitor.Sample, n, rate float64) {
			busy(x, 0.4*rate/most)
			if n >= 64 {
				x.Disks = []monitor.Disk{{Name: "sda", Write: 3e7, Busy: 1, Queue: 40}}
			}
		})), []string{"inside the server  server 64"}, nil},
		"a CPU that may be full, for which something waits": {limit(onServer(func(x *monitor.Sample, _, rate float64) {
			nearlyBusy(x, rate/most, 0.66)
		})),
			[]string{"cpu store.example.org server 64"}, []string{"At 64 clients", "only the CPU of store.example.org is near its limit",
				"During 66% of the time a runnable task waited for a core"}},
		"a CPU that may be full, for which little waits": {limit(onServer(func(x *monitor.Sample, _, rate float64) {
			nearlyBusy(x, rate/most, 0.2)
		})), []string{"unknown   64"}, []string{"The limit may be the CPU of store.example.org"}},
		"one core by its mean": {limit(onServer(func(x *monitor.Sample, _, rate float64) {
			busy(x, 0.3*rate/most)
			x.Core = []float64{0.05, 0.99 * rate / most, 0.06, 0.04}
			x.Procs[0].MeasuredThreads = 0
		})), []string{"core store.example.org server 64"}, []string{"one of 4 cores is 99% busy, all cores together 30%"}},
		"one core that moves about": {limit(onServer(func(x *monitor.Sample, _, rate float64) {
			busy(x, 0.25*rate/most)
			x.Core = []float64{0.25, 0.25, 0.25, 0.25}
			x.Procs[0].Threads, x.Procs[0].BusiestThread = 3, 0.98*rate/most
		})), []string{"core store.example.org server 64"}, []string{"the busiest thread of stored (1 process, 3 threads) used 0.98 cores, of 4"}},
		"as much as one core, by many threads": {limit(onServer(func(x *monitor.Sample, _, rate float64) {
			busy(x, 0.25*rate/most)
			x.Core = []float64{0.25, 0.25, 0.25, 0.25}
			x.Procs[0].BusiestThread = 0.3 * rate / most
		})), []string{"inside the server  server 64"}, nil},
		"threads that were not measured": {limit(onServer(func(x *monitor.Sample, _, rate float64) {
			busy(x, 0.25*rate/most)
			x.Core = []float64{0.25, 0.25, 0.25, 0.25}
			x.Procs[0].MeasuredThreads = 0
		})), []string{"unknown   64"}, []string{"The limit may be one core of store.example.org"}},
		"a core that is allowed": {limit(onServer(func(x *monitor.Sample, _, rate float64) {
			busy(x, 0.2475*rate/most)
			x.Procs[0].BusiestThread, x.Procs[0].AllowedCores = 0.3*rate/most, 1
		})), []string{"core store.example.org server 64"},
			[]string{"stored (1 process, 8 threads) used 0.99 of the 1 core on which it may run, of 4"}},
		"waiting for a disk that is not seen": {limit(onServer(func(x *monitor.Sample, _, rate float64) {
			x.CPU = &monitor.CPU{User: 0.1, IOWait: 0.4 * rate / most, Idle: 0.9 - 0.4*rate/most}
		})), []string{"unknown   64"}, []string{"The limit may be the iowait of store.example.org: cores were idle for 40% of the time while " +
			"waiting for a disk"}},
		"near to a threshold": {limit(onServer(func(x *monitor.Sample, _, rate float64) { busy(x, 0.86*rate/most) })),
			[]string{"unknown   64"}, []string{"The limit may be the CPU of store.example.org: 86% busy"}},
		"workers with one thread each": {limit(onServer(func(x *monitor.Sample, _, rate float64) {
			x.Cores = 8
			busy(x, 0.25*rate/most)
			x.Procs[0].Count, x.Procs[0].Threads, x.Procs[0].MeasuredThreads = 3, 3, 0
		})), []string{"core store.example.org server 64"}, []string{"each of 2 processes of stored used 1.00 cores, of 8"}},
		"disk": {limit(onServer(func(x *monitor.Sample, n, rate float64) {
			x.Disks = []monitor.Disk{{Name: "sda", Read: 4e8, Busy: min(1, rate/most), Queue: n / 10}}
			x.CPU = &monitor.CPU{User: 0.02, IOWait: 0.3 * rate / most, Idle: 0.98 - 0.3*rate/most}
		})), []string{"disk store.example.org server 64"},
			[]string{"sda is 100% busy, reads 400 MB/s, writes 0 B/s, with 6.4 requests in service or waiting"}},
		"disks that are unevenly full": {limit(onServer(func(x *monitor.Sample, n, rate float64) {
			x.Disks = []monitor.Disk{{Name: "sdz", Write: 1e6, Busy: 0.001}} // the system's
			for i := range 12 {
				x.Disks = append(x.Disks, monitor.Disk{Name: "sd" + string(rune('a'+i)), Read: 3e7, Queue: n / 20,
					Busy: min(1, 1.3*rate/most*(1-0.05*float64(i)))})
			}
		})), []string{"disk store.example.org server 32"},
			[]string{"it is the busiest of 12 disks in use, which are 75.1% busy on average, 3 of them at least 90%"}},
		"a disk that is full among others, and throughput grows": {limit(onServer(func(x *monitor.Sample, n, rate float64) {
			busy(x, 0.95*rate/most)
			x.Disks = []monitor.Disk{{Name: "sda", Read: 3e7, Busy: 1, Queue: 40 + n}, {Name: "sdb", Read: 3e7, Busy: 0.3, Queue: 1}}
		})), []string{"cpu store.example.org server 64"}, []string{"The limit is not the disk of store.example.org"}},
		"a disk beside one that is full at all loads": {limit(onServer(func(x *monitor.Sample, n, rate float64) {
			x.Disks = []monitor.Disk{{Name: "sda", Write: 3e7, Busy: 1, Queue: 40}, {Name: "sdb", Read: 4e8, Busy: min(1, rate/most), Queue: n / 10}}
		})), []string{"disk store.example.org server 64"}, []string{"sdb is 100% busy, reads 400 MB/s, writes 30.0 MB/s"}},
		"the scratch disk of a worker's machine": {limit(func(x *monitor.Sample, n, rate float64) {
			if x.Role == hosts.Client {
				x.Scratch = "vda1"
				x.Disks = []monitor.Disk{{Name: "vda", Write: 2e8, Busy: min(1, rate/most), Queue: n / 10}}
			}
		}), []string{"scratch disk load.example.org client 64"}, []string{"vda is 100% busy"}},
		"the scratch disk, which is the server's as well": {limit(onServer(func(x *monitor.Sample, n, rate float64) {
			x.Scratch = "sda1"
			x.Disks = []monitor.Disk{{Name: "sda", Read: 4e8, Busy: min(1, rate/most), Queue: n / 10}}
		})), []string{"disk store.example.org server 64"}, []string{"the copies of staged jobs lie on it as well"}},
		"a fast disk that is always at work is not full": {limit(onServer(func(x *monitor.Sample, _, _ float64) {
			x.Disks = []monitor.Disk{{Name: "nvme0n1", Read: 4e8, Busy: 1, Queue: 3}}
		})), []string{"inside the server  server 64"}, []string{"The most used resource that was monitored is the disk of store.example.org: " +
			"nvme0n1 is 100% busy"}},
		"interface, sending": {limit(onServer(func(x *monitor.Sample, _, _ float64) { x.Nets[0].Speed = 3.7e9 })),
			[]string{"network sent store.example.org server 64"}, []string{"eth0 sent 3.52 Gbit/s, headers included, of 3.70 Gbit/s"}},
		"threads with a queue": {limit(onServer(func(x *monitor.Sample, n, _ float64) {
			v := monitor.Service{Threads: 40, Idle: max(0, 40-int(n)), Queue: max(0, int(n)-40), Connections: int(n)}
			if n > 40 {
				v.Limited = 300
			}
			asXRootD(x, v)
		})), []string{"threads ds1:1094 server 64"}, []string{"40 of the 40 threads of this data server were busy, 24 jobs waited for a thread " +
			"(at most 24); it reached its thread limit 300 times/s"}},
		"the generator": {limit(func(x *monitor.Sample, _, rate float64) {
			if x.Role == hosts.Client {
				busy(x, 0.93*rate/most)
			}
		}), []string{"generator load.example.org client 64", "cpu load.example.org client 64"},
			[]string{"the load generator on load.example.org is saturated: it used 3.72 of 4 cores", "limit.side.client",
				"Also saturated from 64 clients on: the CPU of load.example.org"}},
		"a machine for both": {limit(func(x *monitor.Sample, _, rate float64) { both(x, rate/most, 0.7*rate/most, 0.25*rate/most) }),
			[]string{"cpu one.example.org both 64"},
			[]string{"97.5% busy, 1.95 of 2 cores: the service's processes 1.00, the clients 0.70, interrupts 0.25",
				"limit.side.both"}},
		"latency": {station{clients: []int{1, 8, 64, 256}, latency: 0.05, think: 0.45, most: 1e9},
			[]string{"latency   256"}, []string{"Throughput grows in proportion to the clients: each gives 16.8 Mbit/s at 1 client and 16.8 " +
				"Mbit/s at 256 clients",
				"An operation takes 50 ms and the pause after it 450 ms: N/(R+Z) for 256 clients is 512 operations/s; measured: 512.",
				"limit.most"}},
		"inside the server": {limit(onServer(func(x *monitor.Sample, _, rate float64) { busy(x, 0.4*rate/most) })),
			[]string{"inside the server  server 64"}, []string{"An operation takes 160 ms there and 640 ms at 256 clients: " +
				"additional clients only wait",
				"The most used resource that was monitored is the CPU of store.example.org: 40% busy", "limit.inside.waits"}},
		"unwatched": {limit(onServer(func(x *monitor.Sample, _, _ float64) {
			x.Host, x.Role, x.CPU, x.Procs, x.Nets, x.Cores = "other.example.org", "other", nil, nil, nil, 0
		})),
			[]string{"unknown   64"}, []string{"limit.unwatched.service"}},
		"one after the other": {limit(onServer(func(x *monitor.Sample, n, rate float64) {
			busy(x, 0.96*rate/most)
			x.Disks = []monitor.Disk{{Name: "sda", Read: 1e6 * rate, Busy: min(1, n/250), Queue: n / 10}}
		})), []string{"cpu store.example.org server 64", "disk store.example.org server 256"}, nil},
		"full before the load came": {limit(onServer(func(x *monitor.Sample, _, rate float64) {
			x.CPU = &monitor.CPU{User: 0.96, Idle: 0.04} // by others
			x.Procs[0].User = 0.6 * rate / most
			x.Nets[0].Speed = 3.7e9
		})), []string{"network sent store.example.org server 64"},
			[]string{"Other programs and guests used 95.6% of the CPU of store.example.org at 1 client"}},
		"full before, of which the service wants nothing": {limit(onServer(func(x *monitor.Sample, _, rate float64) {
			x.CPU = &monitor.CPU{User: 0.86, IRQ: 0.1, Idle: 0.04} // by others
			x.Procs[0].User = 0.2 * rate / most
		})), []string{"unknown   64"}, []string{"The limit is probably not the CPU of store.example.org, although other programs and guests " +
			"used 85.9% of it"}},

		"full before, of which the service takes a part": {limit(onServer(func(x *monitor.Sample, _, rate float64) {
			x.CPU = &monitor.CPU{User: 0.98, Idle: 0.02}
			x.Procs[0].User = 1 + 2.5*rate/most
		})), []string{"cpu store.example.org server 1"},
			[]string{"Other programs and guests used 71.4% of the CPU of store.example.org at 1 client. Clients and service shared the rest"}},
		"one thread beside programs that fill the rest": {limit(onServer(func(x *monitor.Sample, _, rate float64) {
			x.CPU, x.Core = &monitor.CPU{User: 0.99, Idle: 0.01}, []float64{0.99, 0.99, 0.99, 0.99}
			x.Procs[0].User, x.Procs[0].Threads = 0.98*rate/most, 1
			x.Procs[0].MeasuredThreads, x.Procs[0].BusiestThread = 1, x.Procs[0].User
		})), []string{"core store.example.org server 64"}, []string{"stored (1 process, 1 thread) used 0.98 cores",
			"At 32 clients it was used to 78.4%", "Other programs and guests used 98.4% of the CPU"}},
		"one thread, full at all loads, that gives a third more in a crowd": {station{clients: []int{1, 2, 8, 32}, latency: 1. / 300, most: 400,
			sample: onServer(func(x *monitor.Sample, _, _ float64) {
				x.CPU = &monitor.CPU{User: 0.25, Idle: 0.75}
				x.Procs[0].User, x.Procs[0].Threads, x.Procs[0].MeasuredThreads, x.Procs[0].BusiestThread = 0.98, 1, 1, 0.98
			})}, []string{"core store.example.org server 2"}, []string{"stored (1 process, 1 thread) used 0.98 cores"}},
		"a disk that others fill": {limit(onServer(func(x *monitor.Sample, n, rate float64) {
			busy(x, 0.95*rate/most)
			x.Disks = []monitor.Disk{{Name: "sda", Read: 1e6 * rate, Write: 1e8, Busy: 1, Queue: 40 + n}}
		})), []string{"cpu store.example.org server 64"},
			[]string{"The limit is not the disk of store.example.org: it was saturated from 1 client on (sda is 100% busy",
				"but throughput grew 40-fold after that."}},
		"full at the last step, as the curve bends": {station{clients: []int{1, 2, 4, 8, 16, 32, 64}, latency: 0.1, most: 400,
			sample: onServer(func(x *monitor.Sample, _, rate float64) { busy(x, 0.97*rate/most) })},
			[]string{"cpu store.example.org server 64"}, []string{"limit.heaviest"}},
		"full at the last step of a straight curve": {station{clients: []int{1, 2, 4, 8, 16, 32}, latency: 0.1, most: 400,
			sample: onServer(func(x *monitor.Sample, n, _ float64) { busy(x, 0.97*min(1, n/32)) })},
			[]string{"cpu store.example.org server 32"}, []string{"limit.heaviest"}},
	} {
		t.Run(name, func(t *testing.T) {
			f := of(t, c.service())
			var got []string
			for _, b := range f.Bottleneck {
				got = append(got, strings.Join([]string{b.Resource, b.Host, b.Side, number(float64(b.From))}, " "))
			}
			said := ""
			if len(f.Bottleneck) > 0 {
				said = strings.Join(f.Bottleneck[0].Evidence, "\n")
			}
			if !slices.Equal(got, c.want) {
				t.Errorf("%q, want %q; evidence:\n%s", got, c.want, said)
			}
			for _, want := range c.evidence {
				if !strings.Contains(said, want) && fact.Find(f.Bottleneck[0].Facts, want).Code == "" {
					t.Errorf("evidence lacks %q:\n%s", want, said)
				}
			}
		})
	}
}

// TestBottleneckInNoise checks that shares that vary around a threshold from step to step give the
// same limit as shares without noise.
func TestBottleneckInNoise(t *testing.T) {
	s := limit(onServer(func(x *monitor.Sample, _, rate float64) {
		wobble := 0.03 * float64(1-2*(x.Step%2))
		busy(x, max(0, 0.92*rate/400+wobble))
	}))
	s.wobble = 0.02
	f := of(t, s.service())
	if len(f.Bottleneck) != 1 || f.Bottleneck[0].Resource != ResourceCPU || f.Bottleneck[0].From != 64 && f.Bottleneck[0].From != 128 {
		t.Errorf("%+v", f.Bottleneck)
	}
	for i := range f.Curve {
		for _, u := range f.Curve[i].Resources {
			if u.Resource == ResourceCPU && u.Side == hosts.Server && u.Saturated != (f.Curve[i].Clients >= f.Bottleneck[0].From) {
				t.Errorf("%d clients: %+v", f.Curve[i].Clients, u)
			}
		}
	}
}

// TestFilesRunOut checks that the resource in the events of errors is saturated: the generator's
// open files.
func TestFilesRunOut(t *testing.T) {
	s := limit(nil)
	r := s.service()
	run := written(t, r)
	d, err := load(run)
	require.NoError(t, err)
	d.run.Events = append(d.run.Events, &measure.Event{Kind: measure.EventError, Step: 7, Exhausted: measure.OpenFiles,
		Text: "read /a: dial tcp 127.0.0.1:80: socket: too many open files"})
	for n, step := range d.run.Steps {
		if n >= 7 {
			step.Failed = map[storage.Class]int64{storage.Other: 3}
		}
	}
	f := d.findings()
	if len(f.Bottleneck) == 0 || f.Bottleneck[0].Resource != ResourceFiles || f.Bottleneck[0].From != 64 ||
		!strings.Contains(f.Bottleneck[0].Evidence[0], "socket: too many open files") {
		t.Errorf("%+v", f.Bottleneck)
	}
}

// TestCPUOfACollapse checks that the CPU counts as saturated although it gets less work after
// throughput collapses.
func TestCPUOfACollapse(t *testing.T) {
	s := resultstest.Typical()
	s.Clients = []int{1, 8, 64, 128, 512}
	s.Sample = func(x *monitor.Sample) {
		if x.Role == hosts.Server {
			busy(x, 0.95*s.Rate(s.Clients[x.Step-1])/s.Most())
		}
	}
	f := of(t, s)
	if len(f.Bottleneck) == 0 || f.Bottleneck[0].Resource != ResourceCPU || f.Bottleneck[0].From != 64 {
		t.Fatalf("%+v", f.Bottleneck)
	}
	if fact.Find(f.Bottleneck[0].Facts, "limit.let").Values["load"] != "512 clients" {
		t.Error(f.Bottleneck[0].Evidence)
	}
}

// TestOthersBesideAFolder checks that, with clients that read a folder, every program that the
// hosts do not list counts as another program, and that the headline has the use by other programs.
func TestOthersBesideAFolder(t *testing.T) {
	for own, want := range map[float64]string{
		1:    "At least 50 operations/s at 8 clients, the heaviest load tested; other programs used 75% of the CPU",
		0.04: "At least 50 operations/s at 8 clients, the heaviest load tested; other programs used 99% of the CPU",
	} {
		curve := steps.CurveOf(nil, Rate, "closed", false)
		for i, n := range []int{1, 2, 4, 8} {
			curve.Steps = append(curve.Steps, &steps.Working{Figures: &steps.Figures{Step: i + 1, Clients: n, ActiveClients: float64(n),
				Done: 100, Operations: 50},
				Machines: []hosts.Host{{HostFigure: HostFigure{Host: "here", Role: "both", Cores: 4, CPU: new(1.0), ClientCores: &own,
					Contended: new(1 - own/4)}, UserSystem: new(1.0), Local: true, Saturated: 1}}})
		}
		g := &conclusion{Findings: &Findings{Optimum: &Optimum{Step: 4, Equals: []int{4}}}, c: curve,
			resources: limits.ResourcesOf(&steps.Run{}, curve)}
		g.Bottleneck = limits.Bottlenecks(curve, g.resources, 3)
		if got, _ := g.headline(); got != want {
			t.Errorf("clients use %.2f cores: %q", own, got)
		}
	}
}
