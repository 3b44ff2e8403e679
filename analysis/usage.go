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
	cores              []mean // of each core
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
	speed          float64
}

type groupSum struct {
	cores              mean
	threads, processes int
}

// A groupFigure is a group of the service's processes in one step.
type groupFigure struct {
	name               string
	cores              float64
	threads, processes int // most seen
}

// add counts s with the weight of the time it shares with the hold.
func (u *usageSum) add(s *monitor.Sample, weight float64) {
	u.addProcs(s, weight)
	if s.Service != nil {
		return // its host is another sample's
	}
	for i, busy := range s.Core {
		if i >= len(u.cores) {
			u.cores = append(u.cores, mean{})
		}
		u.cores[i].add(busy, weight)
	}
	if s.CPU != nil {
		u.irq.add(s.CPU.IRQ, weight)
	}
	for i := range s.Disks {
		entryOf(&u.queues, s.Disks[i].Name).add(s.Disks[i].Queue, weight)
	}
	for i := range s.Nets {
		n := &s.Nets[i]
		of := entryOf(&u.nets, n.Name)
		of.received.add(ratio(float64(n.Received), s.Seconds), weight)
		of.sent.add(ratio(float64(n.Sent), s.Seconds), weight)
		of.speed = max(of.speed, n.Speed)
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

func entryOf[T any](m *map[string]*T, name string) *T {
	if *m == nil {
		*m = map[string]*T{}
	}
	if (*m)[name] == nil {
		(*m)[name] = new(T)
	}
	return (*m)[name]
}

func (u *usageSum) addProcs(s *monitor.Sample, weight float64) {
	var files [2]int
	for i := range s.Procs {
		p := &s.Procs[i]
		switch p.Role {
		case client:
			files[0] += p.Files
		case server:
			files[1] += p.Files
			g := entryOf(&u.groups, p.Name)
			g.cores.add(ratio(p.User+p.System, s.Seconds), weight)
			g.threads, g.processes = max(g.threads, p.Threads), max(g.processes, p.Count)
		}
	}
	if len(s.Procs) > 0 {
		if u.files == nil {
			u.files = map[string]int{}
		}
		u.files[client], u.files[server] = max(u.files[client], files[0]), max(u.files[server], files[1])
	}
}

// fill puts the figures into f, whose busiest disk is known.
func (u *usageSum) fill(f *HostFigure) {
	for i := range u.cores {
		if v := u.cores[i].value(); v != nil && (f.MostUsedCore == nil || *v > *f.MostUsedCore) {
			f.MostUsedCore = v
		}
	}
	if q := u.queues[f.Disk]; q != nil {
		f.DiskQueue = q.value()
	}
	u.fillNets(f)
	f.Connections, f.ListenDrops = u.connections.or0(), u.drops.or0()
	f.MemoryTotal, f.Swapped, f.swapGrowth = u.memory, u.swapped, u.swap[1]-u.swap[0]
	f.ServerFiles, f.ClientFiles = u.files[server], u.files[client]
	f.irq = u.irq.value()
	for name, g := range u.groups {
		f.groups = append(f.groups, groupFigure{name, g.cores.or0(), g.threads, g.processes})
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
		}
	}
}
