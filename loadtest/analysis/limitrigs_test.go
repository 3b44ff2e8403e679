package analysis

import (
	"encoding/json"
	"math"
	"math/rand/v2"
	"time"

	"weir/link"
	"weir/loadtest/analysis/hosts"
	"weir/loadtest/measure"
	"weir/loadtest/results/resultstest"
	"weir/monitor"
	"weir/storage"
)

// A limitRig is a service with its machines and their noise, whose limit is known.
type limitRig struct {
	kind  string
	want  string // Bottleneck.Resource
	r     *rand.Rand
	loads []int
	hold  int

	alone, most float64 // seconds of an operation alone; operations/s that the limit permits
	shared      bool    // clients and service on one machine
	cores       int
	full        float64            // share of the limiting resource at its limit, as in samples
	use         map[string]float64 // shares of the other resources at the limit
	foreign     float64            // share of the CPU that other programs use
	second      float64            // deviation of a second's rate
	share       float64            // deviation of a share in a second

	step    []float64 // deviation of each step's rate
	chain   float64   // this second's deviation, which depends on the previous deviation
	now     float64   // this second's rate, as a share of most
	stalled bool      // the machine stood still for a part of this second
}

// rigKinds are the kinds of limits and the expected resources.
var rigKinds = []struct{ kind, want string }{
	{"CPU, all cores", ResourceCPU},
	{"CPU that clients and service share", ResourceCPU},
	{"one core, by affinity", ResourceCore},
	{"one thread", ResourceCore},
	{"disk", ResourceDisk},
	{"emulated link", ResourceNetwork},
	{"interface", ResourceSent},
	{"lock", LimitInside},
	{"limit of connections", LimitInside},
	{"pool of threads", ResourceThreads},
	{"generator's CPU", ResourceGenerator},
	{"generator's ports", ResourcePorts},
}

func (g *limitRig) between(low, high float64) float64 { return low + (high-low)*g.r.Float64() }

// newLimitRig draws a rig: other resources are used by 5 to 72% at the limit, in one of 30 rigs one
// of them by 75 to 90%, close to the bound of saturation; the limiting resource is sampled at 93 to
// 100%, in one of 20 rigs at less.
func newLimitRig(kind, want string, seed uint64) *limitRig {
	g := &limitRig{kind: kind, want: want, r: rand.New(rand.NewPCG(seed, 15)), use: map[string]float64{}}
	g.hold = 4 + g.r.IntN(9)
	g.alone = g.between(0.005, 0.1)
	bend := g.between(6, 60) // clients that reach the limit
	g.most = bend / g.alone
	for n := 1.0; n < bend*g.between(4, 12) || len(g.loads) < 5; n *= 2 {
		g.loads = append(g.loads, int(n))
		g.step = append(g.step, 1+0.015*g.r.NormFloat64())
	}
	g.shared = kind == "CPU that clients and service share" || g.r.IntN(3) == 0 && kind != "generator's CPU" && kind != "generator's ports" &&
		kind != "interface" && kind != "CPU, all cores"
	g.cores = []int{2, 4, 8, 16}[g.r.IntN(4)]
	if kind == "one core, by affinity" || kind == "one thread" {
		g.cores = max(4, g.cores)
	}
	g.full = g.between(0.94, 1)
	if want == ResourceCore || want == ResourceDisk {
		g.full = g.between(0.975, 1)
	}
	if g.r.IntN(20) == 0 {
		g.full -= 0.02
	}
	for _, name := range []string{ResourceCPU, ResourceCore, ResourceDisk, ResourceSent, ResourceNetwork, ResourceGenerator} {
		g.use[name] = g.between(0.05, 0.72)
	}
	g.use[ResourceGenerator] = g.between(0.02, 0.5)
	if g.r.IntN(30) == 0 {
		g.use[[]string{ResourceCPU, ResourceDisk, ResourceSent}[g.r.IntN(3)]] = g.between(0.75, 0.9)
	}
	if g.r.IntN(2) == 0 {
		g.foreign = g.between(0, 0.3)
		g.use[ResourceCPU] = max(0.05, g.use[ResourceCPU]-g.foreign)
	}
	if g.shared {
		g.use[ResourceGenerator] = min(g.use[ResourceGenerator], g.use[ResourceCPU]/2)
	}
	g.second, g.share = g.between(0.01, 0.06), g.between(0.003, 0.025)
	return g
}

// rate returns the average rate of n clients: linear at first, then bent to the limit.
func (g *limitRig) rate(n float64) float64 {
	x := n / g.alone / g.most
	return g.most * x / math.Pow(1+math.Pow(x, 4), 0.25)
}

// seen returns a share as one second's sample shows it.
func (g *limitRig) seen(x float64) float64 {
	x += g.share * g.r.NormFloat64()
	if g.stalled {
		x *= 0.85
	}
	return min(1, max(0, x))
}

// of returns the share of a resource in this second.
func (g *limitRig) of(resource string) float64 {
	if resource == g.want {
		return g.seen(g.full * min(1, g.now))
	}
	return g.seen(g.use[resource] * g.now)
}

const rigFile = 1 << 20

func (g *limitRig) service() resultstest.Service {
	s := resultstest.Typical()
	s.Lambda, s.Sigma, s.Kappa, s.Noise = 1e-6, 0, 0, 0 // intervals are made here
	s.Clients, s.Duration, s.File = g.loads, g.hold, rigFile
	s.Environment = json.RawMessage(`{"cores":8,"open_files_soft":1048576,"ephemeral_port_low":32768,"ephemeral_port_high":60999}`)
	s.Interval, s.Sample, s.MoreSamples = g.interval, g.sample, g.more
	if g.kind == "generator's ports" {
		s.Event = func(now time.Time, step int) *measure.Event {
			if g.rate(float64(g.loads[step-1])) < 0.9*g.most {
				return nil
			}
			return &measure.Event{Time: now, Kind: measure.EventError, Step: step, Class: storage.Other, Exhausted: measure.Ports,
				Text: "dial tcp 192.0.2.1:80: connect: cannot assign requested address"}
		}
	}
	return s
}

func (g *limitRig) interval(iv *measure.Interval) {
	g.chain = 0.5*g.chain + g.second*g.r.NormFloat64()
	g.stalled = g.r.IntN(40) == 0
	x := g.rate(iv.Clients) * g.step[iv.Step-1] * (1 + g.chain)
	if x > g.most*(1+g.second) {
		x = g.most * (1 + g.second)
	}
	if g.stalled {
		x *= 0.85
	}
	g.now = x / g.most
	iv.Done = int64(math.Round(x))
	iv.Begun, iv.Tasks, iv.Verified = iv.Done, iv.Done, iv.Done/10+1
	iv.Moved, iv.Wire = iv.Done*rigFile, iv.Done*(rigFile+300)
	iv.Latency.Reset()
	for range 20 {
		iv.Latency.Record(time.Duration(iv.Clients / math.Max(x, 1) * 1e9))
	}
	if g.kind == "generator's ports" && g.rate(iv.Clients) >= 0.9*g.most {
		iv.Failed = map[storage.Class]int64{storage.Other: iv.Done/50 + 1}
	}
}

// sample sets the use of the machines in this second.
func (g *limitRig) sample(x *monitor.Sample) {
	if x.Link != nil || x.Service != nil {
		return
	}
	if g.shared && x.Role == hosts.Client {
		*x = monitor.Sample{Time: x.Time, Seconds: 1, Host: "load.example.org", Role: "other", Step: x.Step}
		return
	}
	x.Cores = g.cores
	if x.Role == hosts.Client {
		g.clients(x)
		return
	}
	g.server(x)
}

// clients sets the machine of the generator.
func (g *limitRig) clients(x *monitor.Sample) {
	own := g.of(ResourceGenerator)
	x.CPU = &monitor.CPU{User: min(1, own+0.02), Idle: 1 - min(1, own+0.02)}
	x.Core = spreadOver(g, g.cores, x.CPU.User)
	x.Procs[0].User, x.Procs[0].System = own*float64(g.cores), 0
	x.TCP = &monitor.TCP{Established: int64(g.loads[x.Step-1])}
}

// server sets the machine of the service, and of the clients if they share it.
func (g *limitRig) server(x *monitor.Sample) {
	cores := float64(g.cores)
	foreign := g.seen(g.foreign)
	if g.foreign == 0 {
		foreign = 0
	}
	all := g.seen(min(1, g.use[ResourceCPU]*g.now+foreign))
	if g.want == ResourceCPU { // others get their share of a full CPU
		all = max(g.of(ResourceCPU), min(1, g.full*g.now+foreign*(1-g.now)))
	}
	own := max(0.01, all-foreign)
	thread := g.seen(g.use[ResourceCore] * g.now)
	x.Procs[0].AllowedCores = g.cores
	switch g.kind {
	case "one thread":
		thread = g.of(ResourceCore)
		own = (thread + g.between(0, 0.3)) / cores
		all = min(1, own+foreign+0.02)
	case "one core, by affinity":
		own = g.of(ResourceCore) / cores
		all, thread = min(1, own+foreign+0.02), own*cores/2
		x.Procs[0].AllowedCores = 1
	default:
		thread = min(thread, own*cores)
	}
	x.CPU = &monitor.CPU{User: all, Idle: 1 - all}
	x.Core = spreadOver(g, g.cores, all)
	p := &x.Procs[0]
	p.Threads, p.MeasuredThreads = 12, 12
	p.User, p.System, p.BusiestThread = own*cores, 0, min(1, thread)
	queue := g.use[ResourceDisk] * 2
	if g.want == ResourceDisk {
		queue = max(1, float64(g.loads[x.Step-1])-4) * 0.9
	}
	x.Disks = []monitor.Disk{{Name: "sda", Busy: g.of(ResourceDisk), Queue: queue, Read: 1e8}}
	x.Nets = []monitor.Net{{Name: "eth0", Sent: int64(g.of(ResourceSent) * 1.25e9), Received: 1e6, Speed: 1e10}}
	if g.shared {
		x.Role = "both"
		load := min(own/2, g.use[ResourceGenerator]*g.now)
		p.User = (own - load) * cores
		p.BusiestThread = min(p.BusiestThread, p.User)
		x.Procs = append(x.Procs, monitor.Proc{Name: "weir", Role: hosts.Client, Count: 1, Threads: 8, User: load * cores})
		p = &x.Procs[0]
		if g.kind == "one thread" || g.kind == "one core, by affinity" { // the clients come on top
			p.User, x.Procs[1].User = own*cores, load*cores
			all = min(1, all+load)
			x.CPU = &monitor.CPU{User: all, Idle: 1 - all}
			p.BusiestThread = min(1, thread)
		}
	}
	if g.kind == "limit of connections" {
		x.TCP = &monitor.TCP{Established: int64(min(float64(g.loads[x.Step-1]), g.most*g.alone)), ListenDrops: int64(2 * g.r.IntN(2))}
	}
}

// spreadOver distributes a machine's load unevenly over its cores.
func spreadOver(g *limitRig, cores int, share float64) []float64 {
	all := make([]float64, cores)
	for i := range all {
		all[i] = min(1, max(0, share*(1+0.2*g.r.NormFloat64())))
	}
	return all
}

// more returns the samples of an emulated link, and of a server that reports statistics.
func (g *limitRig) more(end time.Time, step int) []*monitor.Sample {
	n := float64(g.loads[step-1])
	switch g.kind {
	case "emulated link":
		busy := g.of(ResourceNetwork)
		return []*monitor.Sample{{Time: end, Seconds: 1, Host: "link", Role: "other", Step: step,
			Link: &monitor.Link{ToClients: link.Traffic{Bytes: int64(busy * 1.25e8), Packets: 1000, Busy: busy}},
			Nets: []monitor.Net{{Name: monitor.ToClients, Sent: int64(busy * 1.25e8), Speed: 1e9}}}}
	case "pool of threads":
		const pool = 16
		busy := min(pool, n*min(1, g.rate(n)*g.alone/n))
		v := &monitor.Service{Name: "store:1094", Program: "xrootd", Kind: monitor.DataServer, Threads: pool, Idle: pool - int(busy+0.5)}
		if g.rate(n) > 0.9*g.most {
			v.Idle = g.r.IntN(2)
			v.Queue, v.Limited = int(n/4)+1, 100
		}
		return []*monitor.Sample{{Time: end, Seconds: 1, Host: "store:1094", Role: "server", Step: step, Service: v}}
	}
	return nil
}
