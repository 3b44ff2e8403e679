package analysis

import (
	"cmp"
	"slices"
	"time"

	"weir/monitor"
)

// A usageSum gathers, beside what a hostSum does, what is needed to say how
// much of each resource of a host was used in one step. The zero value is empty.
type usageSum struct {
	cpu, clients       spread             // share of all cores; cores that clients used
	cores              []spread           // of each core
	busy               map[string]*spread // of each disk
	irq                mean
	queues             map[string]*mean // of each disk
	nets               map[string]*netSum
	groups             map[string]*groupSum // of the service's processes, by name
	drops, connections mean
	swap               [2]int64 // first and last seen
	first, last        time.Time
	memory, swapped    int64
	files              map[string]int // by role
}

type netSum struct {
	received, sent mean // bytes per second
	in, out        spread
	speed          float64
}

type groupSum struct {
	cores, busiest, other        spread // cores; of its busiest thread; that any other used at most
	threads, processes, measured int
	allowed                      int
}

// A groupFigure is a group of the service's processes in one step.
type groupFigure struct {
	name               string
	cores              ranged
	threads, processes int // most seen
	measured           int // threads whose CPU time was measured, most seen; 0: none
	busiest, other     ranged
	allowed            int // cores on which they may run; 0: not known
}

// add counts s with the weight of the time it shares with the hold.
func (u *usageSum) add(s *monitor.Sample, weight float64) {
	whole := weight >= inside*s.Seconds
	u.addProcs(s, weight, whole)
	if s.Service != nil {
		return // its host is another sample's
	}
	for i, busy := range s.Core {
		if i >= len(u.cores) {
			u.cores = append(u.cores, spread{})
		}
		u.cores[i].add(busy, weight, whole)
	}
	if s.CPU != nil {
		u.cpu.add(s.CPU.Busy(), weight, whole)
		u.irq.add(s.CPU.IRQ, weight)
	}
	for i := range s.Disks {
		entryOf(&u.queues, s.Disks[i].Name).add(s.Disks[i].Queue, weight)
		entryOf(&u.busy, s.Disks[i].Name).add(s.Disks[i].Busy, weight, whole)
	}
	for i := range s.Nets {
		n := &s.Nets[i]
		of := entryOf(&u.nets, n.Name)
		of.received.add(ratio(float64(n.Received), s.Seconds), weight)
		of.sent.add(ratio(float64(n.Sent), s.Seconds), weight)
		if of.speed = max(of.speed, n.Speed); of.speed > 0 {
			of.in.add(ratio(8*float64(n.Received), s.Seconds*of.speed), weight, whole)
			of.out.add(ratio(8*float64(n.Sent), s.Seconds*of.speed), weight, whole)
		}
	}
	if s.TCP != nil {
		u.drops.add(ratio(float64(s.TCP.ListenDrops), s.Seconds), weight)
		u.connections.add(float64(s.TCP.Established), weight)
	}
	if m := s.Memory; m != nil {
		if u.first.IsZero() || s.Time.Before(u.first) {
			u.swap[0], u.first = m.Swapped, s.Time
		}
		if u.last.IsZero() || !s.Time.Before(u.last) {
			u.swap[1], u.last = m.Swapped, s.Time
		}
		u.memory, u.swapped = max(u.memory, m.Total), max(u.swapped, m.Swapped)
	}
}

func entryOf[K comparable, T any](m *map[K]*T, name K) *T {
	if *m == nil {
		*m = map[K]*T{}
	}
	if (*m)[name] == nil {
		(*m)[name] = new(T)
	}
	return (*m)[name]
}

func (u *usageSum) addProcs(s *monitor.Sample, weight float64, whole bool) {
	var files [2]int
	clients, seen := 0.0, false
	for i := range s.Procs {
		p := &s.Procs[i]
		switch p.Role {
		case client:
			files[0] += p.Files
			clients, seen = clients+ratio(p.User+p.System, s.Seconds), true
		case server:
			files[1] += p.Files
			g := entryOf(&u.groups, p.Name)
			g.add(p, s.Seconds, weight, whole)
		}
	}
	if seen {
		u.clients.add(clients, weight, whole)
	}
	if len(s.Procs) > 0 {
		if u.files == nil {
			u.files = map[string]int{}
		}
		u.files[client], u.files[server] = max(u.files[client], files[0]), max(u.files[server], files[1])
	}
}

func (g *groupSum) add(p *monitor.Proc, seconds, weight float64, whole bool) {
	g.cores.add(ratio(p.User+p.System, seconds), weight, whole)
	g.threads, g.processes = max(g.threads, p.Threads), max(g.processes, p.Count)
	g.allowed = max(g.allowed, p.AllowedCores)
	if p.MeasuredThreads > 0 {
		g.measured = max(g.measured, p.MeasuredThreads)
		g.busiest.add(ratio(p.BusiestThread, seconds), weight, whole)
		g.other.add(ratio(p.UnmeasuredThread, seconds), weight, whole)
	}
}

func (g *groupSum) figure(name string) groupFigure {
	f := groupFigure{name: name, threads: g.threads, processes: g.processes, measured: g.measured, allowed: g.allowed}
	f.cores, _ = g.cores.interval()
	f.busiest, _ = g.busiest.interval()
	f.other, _ = g.other.interval()
	return f
}

// fill puts the figures into f, whose busiest disk is known.
func (u *usageSum) fill(f *HostFigure) {
	f.spreads = map[string]ranged{}
	for i := range u.cores {
		if v, ok := u.cores[i].interval(); ok && (f.MostUsedCore == nil || v.mean > *f.MostUsedCore) {
			f.MostUsedCore = &v.mean
			f.spreads[ResourceCore] = v
		}
	}
	if q := u.queues[f.Disk]; q != nil {
		f.DiskQueue = q.value()
		f.keep(ResourceDisk, u.busy[f.Disk])
	}
	f.keep(ResourceCPU, &u.cpu)
	f.keep(ResourceGenerator, &u.clients)
	u.fillNets(f)
	f.Connections, f.ListenDrops = u.connections.or0(), u.drops.or0()
	f.MemoryTotal, f.Swapped, f.swapGrowth = u.memory, u.swapped, u.swap[1]-u.swap[0]
	f.ServerFiles, f.ClientFiles = u.files[server], u.files[client]
	f.irq = u.irq.value()
	for name, g := range u.groups {
		f.groups = append(f.groups, g.figure(name))
	}
	slices.SortFunc(f.groups, func(a, b groupFigure) int { return cmp.Compare(a.name, b.name) })
}

// fillNets picks the interface that is nearest to its speed.
func (u *usageSum) fillNets(f *HostFigure) {
	most := -1.0
	for name, n := range u.nets {
		if name == loopback {
			continue
		}
		received, sent := n.received.or0(), n.sent.or0()
		if n.speed <= 0 {
			if top := max(received, sent); top > f.unknownTraffic || top == f.unknownTraffic && name < f.unknownName {
				f.unknownTraffic, f.unknownName = top, name
			}
			continue
		}
		in, out := ratio(8*received, n.speed), ratio(8*sent, n.speed)
		if top := max(in, out); top > most || top == most && name < f.Interface {
			most = top
			f.Interface, f.NetSpeed, f.ReceivedShare, f.SentShare = name, n.speed, &in, &out
			f.keep(ResourceReceived, &n.in)
			f.keep(ResourceSent, &n.out)
		}
	}
}

// keep notes how far the samples of a resource's share lie apart.
func (h *HostFigure) keep(resource string, s *spread) {
	if h.spreads == nil {
		h.spreads = map[string]ranged{}
	}
	if v, ok := s.interval(); ok {
		h.spreads[resource] = v
	}
}

// share returns what is known of a resource's share: mean itself, without an
// interval, where there are no samples.
func (h *HostFigure) share(resource string, mean float64) ranged {
	if v, ok := h.spreads[resource]; ok {
		return v
	}
	return ranged{mean: mean}
}
