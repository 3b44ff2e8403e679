package hosts

import (
	"time"

	"weir/internal/stats"
	"weir/loadtest/analysis/basics"
	"weir/monitor"
)

// A hostSum sums one host's samples in one step. The zero value is empty; maxima and minima are
// stored in its HostFigure.
type hostSum struct {
	HostFigure
	cpu, iowait, steal, core, serverCPU, clientCPU  Mean
	read, write, received, sent, loReceived, loSent Mean
	retransmits, drops, connections                 Mean
	UserSystem, interrupts, others, kernel          Mean
	contended, busy, waits                          Mean
	periods, throttled                              Mean     // of the quota, per second
	cores                                           []spread // of each core
	allCores, clients                               spread   // share of all cores; cores that clients used
	disks                                           map[string]*diskSum
	looks                                           []diskLook
	aside                                           map[string]bool // disks that are full at all loads, while others are at some
	nets                                            map[string]*netSum
	services                                        map[string]*groupSum // of the service's processes, by name
	firstSwap, lastSwap                             int64
	first, last                                     time.Time  // of firstSwap and lastSwap
	server                                          *serverSum // nil: no report of a server
	link                                            *linkSum   // nil: not an emulated link
	device                                          string     // of jobs' copies of files, if they may be here
}

type diskSum struct {
	busy, read, write, queue Mean
	spread                   spread // of busy
	looks                    int    // number of samples that it has counted
}

// A diskLook is a sample of a host's disks: its overlap with the hold in seconds, and whether it
// lies within the hold.
type diskLook struct {
	weight float64
	whole  bool
}

func (d *diskSum) add(disk *monitor.Disk, weight float64, whole bool) {
	d.busy.Add(disk.Busy, weight)
	d.read.Add(disk.Read, weight)
	d.write.Add(disk.Write, weight)
	d.queue.Add(disk.Queue, weight)
	d.spread.add(disk.Busy, weight, whole)
	d.looks++
}

// idle counts the samples that do not contain the disk: a loop device was idle, or a disk was
// absent.
func (d *diskSum) idle(looks []diskLook) {
	for _, l := range looks[d.looks:] {
		d.add(&monitor.Disk{}, l.weight, l.whole)
	}
}

type netSum struct {
	received, sent Mean // bytes per second
	in, out        spread
	speed          float64
}

type groupSum struct {
	GroupFigure
	used, top, rest spread // cores: all; busiest thread; maximum of any other thread
}

// add counts s with the weight of the time that it shares with the hold.
func (h *hostSum) add(s *monitor.Sample, weight float64) {
	k, whole := LookAt(s), weight >= Inside*s.Seconds
	h.Cores = max(h.Cores, s.Cores)
	h.cpu.Add(k.Cpu, weight)
	h.iowait.Add(k.Iowait, weight)
	h.steal.Add(k.Steal, weight)
	h.core.Add(k.Core, weight)
	h.serverCPU.Add(k.ServerCores, weight)
	h.clientCPU.Add(k.ClientCores, weight)
	h.ServerRSS, h.ClientRSS = max(h.ServerRSS, k.ServerRSS), max(h.ClientRSS, k.ClientRSS)
	if s.CPU != nil {
		h.UserSystem.Add(s.CPU.User+s.CPU.System, weight)
		h.contend(s, &k, weight)
	}
	if s.Memory != nil && (h.MemoryAvailable == 0 || k.Available < h.MemoryAvailable) {
		h.MemoryAvailable = k.Available
	}
	if q := s.Quota; q != nil {
		h.Quota, h.QuotaGroup = q.Cores, q.Group
		h.periods.Add(stats.Ratio(float64(q.Periods), s.Seconds), weight)
		h.throttled.Add(stats.Ratio(float64(q.Throttled), s.Seconds), weight)
	}
	if s.TCP != nil {
		h.retransmits.Add(k.Retransmits, weight)
	}
	if s.Link != nil {
		if h.link == nil {
			h.link = &linkSum{}
		}
		h.link.add(s, weight)
	}
	h.addProcs(s, weight, whole)
	if s.Service != nil { // another sample describes its host
		if h.server == nil {
			h.server = &serverSum{}
		}
		h.server.add(s, weight)
		return
	}
	h.addDevices(s, weight, whole)
	h.read.Add(k.DiskRead, weight)
	h.write.Add(k.DiskWrite, weight)
	h.received.Add(k.Received, weight)
	h.sent.Add(k.Sent, weight)
	h.loReceived.Add(k.Back, weight)
	h.loSent.Add(k.Looped, weight)
}

// Limits of the CPU of a machine.
const (
	saturated  = 0.9 // share of a machine's CPU that is busy from which more load must wait
	almostFull = 0.8 // the same from which some load begins to wait
)

// contend adds the CPU use of unwatched processes while s has the CPU used up: from almostFull on
// in part, from saturated on as a whole.
func (h *hostSum) contend(s *monitor.Sample, k *Look, weight float64) {
	h.others.Add(k.others, weight)
	h.kernel.Add(k.kernel, weight)
	if s.Waits != nil {
		h.waits.Add(*s.Waits, weight)
	}
	full, watched := min(max(0, (k.Cpu-almostFull)/(saturated-almostFull)), 1), 0.0
	for p := range basics.Each(s.Procs) {
		watched += stats.Ratio(p.User+p.System, s.Seconds)
	}
	h.busy.Add(full, weight)
	h.contended.Add(full*max(s.CPU.User+s.CPU.System-stats.Ratio(watched, float64(s.Cores))-k.kernel, k.others, 0), weight)
}

// addProcs adds the CPU use, files and memory of the watched processes.
func (h *hostSum) addProcs(s *monitor.Sample, weight float64, whole bool) {
	clientFiles, serverFiles, clients, seen := 0, 0, 0.0, false
	for p := range basics.Each(s.Procs) {
		switch p.Role {
		case Client:
			clientFiles += p.Files
			clients, seen = clients+stats.Ratio(p.User+p.System, s.Seconds), true
		case Server:
			serverFiles += p.Files
			basics.EntryOf(&h.services, p.Name).add(p, s.Seconds, weight, whole)
		}
	}
	if seen {
		h.clients.add(clients, weight, whole)
	}
	h.ServerFiles, h.ClientFiles = max(h.ServerFiles, serverFiles), max(h.ClientFiles, clientFiles)
}

func (g *groupSum) add(p *monitor.Proc, seconds, weight float64, whole bool) {
	g.used.add(stats.Ratio(p.User+p.System, seconds), weight, whole)
	g.Threads, g.Processes, g.Allowed = max(g.Threads, p.Threads), max(g.Processes, p.Count), max(g.Allowed, p.AllowedCores)
	if p.MeasuredThreads > 0 {
		g.Measured = max(g.Measured, p.MeasuredThreads)
		g.top.add(stats.Ratio(p.BusiestThread, seconds), weight, whole)
		g.rest.add(stats.Ratio(p.UnmeasuredThread, seconds), weight, whole)
	}
}

// addDevices adds the samples of cores, disks, interfaces and memory.
func (h *hostSum) addDevices(s *monitor.Sample, weight float64, whole bool) {
	for i, busy := range s.Core {
		if i >= len(h.cores) {
			h.cores = append(h.cores, spread{})
		}
		h.cores[i].add(busy, weight, whole)
	}
	if s.CPU != nil {
		h.allCores.add(s.CPU.Busy(), weight, whole)
		h.interrupts.Add(s.CPU.IRQ, weight)
	}
	for disk := range basics.Each(s.Disks) {
		d := basics.EntryOf(&h.disks, disk.Name)
		d.idle(h.looks)
		d.add(disk, weight, whole)
	}
	for _, name := range s.LeftOutDisks() { // its load is unknown
		d := basics.EntryOf(&h.disks, name)
		d.idle(h.looks)
		d.looks++
	}
	if len(s.Disks)+len(s.LeftOutDisks()) > 0 {
		h.looks = append(h.looks, diskLook{weight, whole})
	}
	for n := range basics.Each(s.Nets) {
		of := basics.EntryOf(&h.nets, n.Name)
		of.received.Add(stats.Ratio(float64(n.Received), s.Seconds), weight)
		of.sent.Add(stats.Ratio(float64(n.Sent), s.Seconds), weight)
		if of.speed = max(of.speed, n.Speed); of.speed > 0 {
			of.in.add(stats.Ratio(8*float64(n.Received), s.Seconds*of.speed), weight, whole)
			of.out.add(stats.Ratio(8*float64(n.Sent), s.Seconds*of.speed), weight, whole)
		}
	}
	if s.TCP != nil {
		h.drops.Add(stats.Ratio(float64(s.TCP.ListenDrops), s.Seconds), weight)
		h.connections.Add(float64(s.TCP.Established), weight)
	}
	if m := s.Memory; m != nil {
		if h.first.IsZero() || s.Time.Before(h.first) {
			h.firstSwap, h.first = m.Swapped, s.Time
		}
		if h.last.IsZero() || !s.Time.Before(h.last) {
			h.lastSwap, h.last = m.Swapped, s.Time
		}
		h.MemoryTotal, h.Swapped = max(h.MemoryTotal, m.Total), max(h.Swapped, m.Swapped)
	}
}
