package analysis

import (
	"cmp"
	"maps"
	"math"
	"slices"
	"strings"
	"time"

	"weir/monitor"
	"weir/storage"
)

// Roles of hosts and of watched processes.
const (
	client = "client"
	server = "server"
)

// A mean is an average weighted by time. The zero value is empty.
type mean struct{ sum, weight float64 }

// add leaves out NaN, which is what is not known.
func (m *mean) add(x, weight float64) {
	if !math.IsNaN(x) {
		m.sum += x * weight
		m.weight += weight
	}
}

// or0 returns the average, 0 if nothing was added.
func (m *mean) or0() float64 { return ratio(m.sum, m.weight) }

// value returns the average, nil if nothing was added.
func (m *mean) value() *float64 {
	if m.weight <= 0 {
		return nil
	}
	return new(m.or0())
}

// A hostSum gathers one host's samples in one step. The zero value is empty; largest and smallest values are kept in
// its HostFigure.
type hostSum struct {
	HostFigure
	cpu, iowait, steal, core, serverCPU, clientCPU  mean
	read, write, received, sent, loReceived, loSent mean
	retransmits, drops, connections                 mean
	userSystem, interrupts, others, kernel          mean
	contended, busy, waits                          mean
	periods, throttled                              mean     // of the quota, a second
	cores                                           []spread // of each core
	allCores, clients                               spread   // share of all cores; cores that clients used
	disks                                           map[string]*diskSum
	looks                                           []diskLook
	aside                                           map[string]bool // disks that are full at all loads, while others are at some
	nets                                            map[string]*netSum
	services                                        map[string]*groupSum // of the service's processes, by name
	firstSwap, lastSwap                             int64
	first, last                                     time.Time  // of the samples that these are of
	server                                          *serverSum // nil: no server's report was seen
	link                                            *linkSum   // nil: it is no emulated link
	device                                          string     // that jobs' copies of files lie on, if they may be here
}

type diskSum struct {
	busy, read, write, queue mean
	spread                   spread // of busy
	looks                    int    // samples that it has counted
}

// A diskLook is a sample of a host's disks: the time that it shares with the hold, and whether that is all of it.
type diskLook struct {
	weight float64
	whole  bool
}

func (d *diskSum) add(disk *monitor.Disk, weight float64, whole bool) {
	d.busy.add(disk.Busy, weight)
	d.read.add(disk.Read, weight)
	d.write.add(disk.Write, weight)
	d.queue.add(disk.Queue, weight)
	d.spread.add(disk.Busy, weight, whole)
	d.looks++
}

// idle counts the samples that do not name the disk: a loop device that did nothing, or a disk that was not there.
func (d *diskSum) idle(looks []diskLook) {
	for _, l := range looks[d.looks:] {
		d.add(&monitor.Disk{}, l.weight, l.whole)
	}
}

type netSum struct {
	received, sent mean // bytes per second
	in, out        spread
	speed          float64
}

type groupSum struct {
	groupFigure
	used, top, rest spread // cores; of its busiest thread; that any other thread used at most
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
func (h *hostSum) add(s *monitor.Sample, weight float64) {
	k, whole := lookAt(s), weight >= inside*s.Seconds
	h.Cores = max(h.Cores, s.Cores)
	h.cpu.add(k.cpu, weight)
	h.iowait.add(k.iowait, weight)
	h.steal.add(k.steal, weight)
	h.core.add(k.core, weight)
	h.serverCPU.add(k.serverCores, weight)
	h.clientCPU.add(k.clientCores, weight)
	h.ServerRSS, h.ClientRSS = max(h.ServerRSS, k.serverRSS), max(h.ClientRSS, k.clientRSS)
	if s.CPU != nil {
		h.userSystem.add(s.CPU.User+s.CPU.System, weight)
		h.contend(s, &k, weight)
	}
	if s.Memory != nil && (h.MemoryAvailable == 0 || k.available < h.MemoryAvailable) {
		h.MemoryAvailable = k.available
	}
	if q := s.Quota; q != nil {
		h.Quota, h.QuotaGroup = q.Cores, q.Group
		h.periods.add(ratio(float64(q.Periods), s.Seconds), weight)
		h.throttled.add(ratio(float64(q.Throttled), s.Seconds), weight)
	}
	if s.TCP != nil {
		h.retransmits.add(k.retransmits, weight)
	}
	if s.Link != nil {
		if h.link == nil {
			h.link = &linkSum{}
		}
		h.link.add(s, weight)
	}
	h.addProcs(s, weight, whole)
	if s.Service != nil { // its host is another sample's
		if h.server == nil {
			h.server = &serverSum{}
		}
		h.server.add(s, weight)
		return
	}
	h.addDevices(s, weight, whole)
	h.read.add(k.diskRead, weight)
	h.write.add(k.diskWrite, weight)
	h.received.add(k.received, weight)
	h.sent.add(k.sent, weight)
	h.loReceived.add(k.back, weight)
	h.loSent.add(k.looped, weight)
}

// contend adds what processes used that were not watched, as far as s found the CPU used up: from almostFull on in
// part, from saturated on as a whole.
func (h *hostSum) contend(s *monitor.Sample, k *look, weight float64) {
	h.others.add(k.others, weight)
	h.kernel.add(k.kernel, weight)
	if s.Waits != nil {
		h.waits.add(*s.Waits, weight)
	}
	full, watched := min(max(0, (k.cpu-almostFull)/(saturated-almostFull)), 1), 0.0
	for p := range each(s.Procs) {
		watched += ratio(p.User+p.System, s.Seconds)
	}
	h.busy.add(full, weight)
	h.contended.add(full*max(s.CPU.User+s.CPU.System-ratio(watched, float64(s.Cores))-k.kernel, k.others, 0), weight)
}

// addProcs adds what the watched processes used.
func (h *hostSum) addProcs(s *monitor.Sample, weight float64, whole bool) {
	clientFiles, serverFiles, clients, seen := 0, 0, 0.0, false
	for p := range each(s.Procs) {
		switch p.Role {
		case client:
			clientFiles += p.Files
			clients, seen = clients+ratio(p.User+p.System, s.Seconds), true
		case server:
			serverFiles += p.Files
			entryOf(&h.services, p.Name).add(p, s.Seconds, weight, whole)
		}
	}
	if seen {
		h.clients.add(clients, weight, whole)
	}
	h.ServerFiles, h.ClientFiles = max(h.ServerFiles, serverFiles), max(h.ClientFiles, clientFiles)
}

func (g *groupSum) add(p *monitor.Proc, seconds, weight float64, whole bool) {
	g.used.add(ratio(p.User+p.System, seconds), weight, whole)
	g.threads, g.processes, g.allowed = max(g.threads, p.Threads), max(g.processes, p.Count), max(g.allowed, p.AllowedCores)
	if p.MeasuredThreads > 0 {
		g.measured = max(g.measured, p.MeasuredThreads)
		g.top.add(ratio(p.BusiestThread, seconds), weight, whole)
		g.rest.add(ratio(p.UnmeasuredThread, seconds), weight, whole)
	}
}

// addDevices adds what cores, disks, interfaces and memory went through.
func (h *hostSum) addDevices(s *monitor.Sample, weight float64, whole bool) {
	for i, busy := range s.Core {
		if i >= len(h.cores) {
			h.cores = append(h.cores, spread{})
		}
		h.cores[i].add(busy, weight, whole)
	}
	if s.CPU != nil {
		h.allCores.add(s.CPU.Busy(), weight, whole)
		h.interrupts.add(s.CPU.IRQ, weight)
	}
	for disk := range each(s.Disks) {
		d := entryOf(&h.disks, disk.Name)
		d.idle(h.looks)
		d.add(disk, weight, whole)
	}
	for _, name := range s.LeftOutDisks() { // it may have been busy
		d := entryOf(&h.disks, name)
		d.idle(h.looks)
		d.looks++
	}
	if len(s.Disks)+len(s.LeftOutDisks()) > 0 {
		h.looks = append(h.looks, diskLook{weight, whole})
	}
	for n := range each(s.Nets) {
		of := entryOf(&h.nets, n.Name)
		of.received.add(ratio(float64(n.Received), s.Seconds), weight)
		of.sent.add(ratio(float64(n.Sent), s.Seconds), weight)
		if of.speed = max(of.speed, n.Speed); of.speed > 0 {
			of.in.add(ratio(8*float64(n.Received), s.Seconds*of.speed), weight, whole)
			of.out.add(ratio(8*float64(n.Sent), s.Seconds*of.speed), weight, whole)
		}
	}
	if s.TCP != nil {
		h.drops.add(ratio(float64(s.TCP.ListenDrops), s.Seconds), weight)
		h.connections.add(float64(s.TCP.Established), weight)
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

// throttledShare returns the share of periods in which the clients' CPU quota was used up, nil if they have none.
func (h *hostSum) throttledShare() *float64 {
	if h.Quota <= 0 {
		return nil
	}
	return new(ratio(h.throttled.or0(), h.periods.or0()))
}

func (h *hostSum) figure() HostFigure {
	f := h.HostFigure
	f.spreads = map[string]ranged{}
	f.CPU, f.IOWait, f.Steal, f.BusiestCore = h.cpu.value(), h.iowait.value(), h.steal.value(), h.core.value()
	f.CPUWaits, f.irq, f.Throttled = h.waits.value(), h.interrupts.value(), h.throttledShare()
	f.userSystem, f.unwatched, f.kernel = h.userSystem.value(), h.others.or0(), h.kernel.or0()
	f.Contended, f.saturated = h.contended.value(), h.busy.or0()
	f.ServerCores, f.ClientCores = h.serverCPU.value(), h.clientCPU.value()
	for name, d := range h.disks {
		d.idle(h.looks)
		if v := d.busy.value(); v != nil && !h.aside[name] && (f.DiskBusy == nil || *v > *f.DiskBusy || *v == *f.DiskBusy && name < f.Disk) {
			f.Disk, f.DiskBusy, f.DiskQueue = name, v, d.queue.value()
			f.keep(ResourceDisk, &d.spread)
		}
	}
	h.fillDisks(&f)
	if f.scratch = h.scratch(); f.scratch != nil {
		f.keep(ResourceScratch, &h.disks[f.scratch.Disk].spread)
	}
	var most *spread
	for core := range each(h.cores) {
		if mean, ok := core.mean(); ok && (f.MostUsedCore == nil || mean > *f.MostUsedCore) {
			f.MostUsedCore, most = &mean, core
		}
	}
	if most != nil {
		f.keep(ResourceCore, most)
	}
	f.keep(ResourceCPU, &h.allCores)
	f.keep(ResourceGenerator, &h.clients)
	f.DiskRead, f.DiskWrite = h.read.or0(), h.write.or0()
	f.NetReceived, f.NetSent = max(h.received.or0(), h.loReceived.or0()), max(h.sent.or0(), h.loSent.or0())
	f.Retransmits, f.ListenDrops, f.Connections = h.retransmits.or0(), h.drops.or0(), h.connections.or0()
	f.swapGrowth = h.lastSwap - h.firstSwap
	h.fillNets(&f)
	for _, name := range slices.Sorted(maps.Keys(h.services)) {
		g := h.services[name]
		g.name = name
		g.cores, _ = g.used.interval()
		g.busiest, _ = g.top.interval()
		g.other, _ = g.rest.interval()
		f.groups = append(f.groups, g.groupFigure)
	}
	if h.server != nil {
		f.Service = h.server.figure()
	}
	if h.link != nil {
		f.Link = h.link.figure()
	}
	return f
}

// leastShare is the part of the busiest disk's traffic that a disk in use has at least.
const leastShare = 0.1

// fillDisks describes the disks that share the busiest one's work: those of its kind (loop devices repeat what lies
// below them) with a part of its traffic that matters.
func (h *hostSum) fillDisks(f *HostFigure) {
	busiest := h.disks[f.Disk]
	if busiest == nil {
		return
	}
	var mean mean
	full, used := 0, 0
	for _, name := range slices.Sorted(maps.Keys(h.disks)) { // the same sum each time
		d := h.disks[name]
		kind := (&monitor.Disk{Name: name}).Repeats() == (&monitor.Disk{Name: f.Disk}).Repeats()
		if kind && !h.aside[name] && d.busy.or0() >= 0.01 && d.read.or0()+d.write.or0() >= leastShare*(busiest.read.or0()+busiest.write.or0()) {
			used++
			mean.add(d.busy.or0(), 1)
			if d.busy.or0() >= boundOf(ResourceDisk).reached {
				full++
			}
		}
	}
	if used > 1 {
		f.DisksInUse, f.DisksBusy, f.DisksFull = used, mean.value(), full
	}
}

// fillNets picks the interface that is nearest to its speed.
func (h *hostSum) fillNets(f *HostFigure) {
	most := -1.0
	for name, n := range h.nets {
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

// keep notes the interval of a resource's share; what was noted before is dropped.
func (h *HostFigure) keep(resource string, s *spread) {
	delete(h.spreads, resource)
	if v, ok := s.interval(); ok {
		h.spreads[resource] = v
	}
}

// share returns what is known of a resource's share: mean itself, without an interval, where there are no samples.
func (h *HostFigure) share(resource string, mean float64) ranged {
	if v, ok := h.spreads[resource]; ok {
		return v
	}
	return ranged{mean: mean}
}

// scratch returns the disk that jobs' copies of files lie on, nil if it is none of the host's disks.
func (h *hostSum) scratch() *DiskFigure {
	for _, name := range slices.Sorted(maps.Keys(h.disks)) {
		if d := h.disks[name]; h.device != "" && liesOn(h.device, name) {
			return &DiskFigure{Host: h.Host, Disk: name, Busy: d.busy.value(), Read: d.read.or0(), Write: d.write.or0(), Queue: d.queue.value(),
				IOWait: h.iowait.value()}
		}
	}
	return nil
}

// liesOn reports whether a device is the disk of that name, or a partition of it: sda1 of sda, nvme0n1p2 of nvme0n1.
func liesOn(device, disk string) bool {
	rest, ok := strings.CutPrefix(strings.TrimPrefix(device, "/dev/"), disk)
	if !ok || disk == "" {
		return false
	}
	if last := disk[len(disk)-1]; last >= '0' && last <= '9' && rest != "" {
		if rest, ok = strings.CutPrefix(rest, "p"); !ok || rest == "" {
			return false
		}
	}
	return strings.Trim(rest, "0123456789") == ""
}

// hosts fills in what the hosts went through in t's measurement time.
func (d *data) hosts(s *Step, t *total) {
	s.Hosts = []HostFigure{}
	for _, h := range d.watched.steps[t.number] {
		f := h.figure()
		f.simulated, f.local = d.plan.Driver == storage.Simulated, d.plan.Driver == storage.Local
		if f.Link != nil {
			f.Link.Over = d.plan.Links.Over(strings.TrimPrefix(f.Host, "link "))
		}
		s.Hosts = append(s.Hosts, f)
		if one := h.scratch(); one != nil && s.Jobs != nil {
			s.ScratchDisks = append(s.ScratchDisks, *one)
		}
	}
	slices.SortFunc(s.ScratchDisks, func(a, b DiskFigure) int {
		return cmp.Or(cmp.Compare(value(b.Busy), value(a.Busy)), cmp.Compare(a.Host, b.Host))
	})
	if len(s.ScratchDisks) > 0 {
		s.Scratch = &s.ScratchDisks[0]
	}
	slices.SortFunc(s.Hosts, func(a, b HostFigure) int {
		return cmp.Or(cmp.Compare(a.Role, b.Role), cmp.Compare(a.Host, b.Host))
	})
	shareServers(s.Hosts)
	s.ServerCores, s.ServerCPU, s.serverByHost = sideCPU(s.Hosts, server, func(h *HostFigure) *float64 { return h.ServerCores })
	s.ServerEach = s.serverEach()
	s.ClientCores, s.ClientCPU, _ = sideCPU(s.Hosts, client, func(h *HostFigure) *float64 { return h.ClientCores })
}

// serverEach returns the service's CPU time for each operation that succeeded: of its watched processes, or of what its
// servers report of themselves if that is more, for some of them may be watched late or not at all.
func (s *Step) serverEach() *float64 {
	cores, reported := s.ServerCores, 0.0
	for h := range each(s.Hosts) {
		if h.Service != nil {
			reported += h.Service.Cores
		}
	}
	if s.serverByHost {
		cores = nil // other programs are in it
	}
	if cores == nil && reported == 0 || s.Operations <= 0 {
		return nil
	}
	spent := max(value(cores), reported) / s.Operations
	return &spent
}

// sideCPU returns how many cores one side used and which share that is of its hosts' cores: of the watched processes
// where there are any, else of whole hosts that have this role alone. The share is also of whole hosts where it is
// not known how many cores the hosts of the processes have.
func sideCPU(hosts []HostFigure, role monitor.Role, procs func(*HostFigure) *float64) (cores, share *float64, byHost bool) {
	sum := func(of func(*HostFigure) *float64) (cores, share *float64) {
		var used, all float64
		found, known := false, true
		for h := range each(hosts) {
			if c := of(h); c != nil {
				used, all, found = used+*c, all+float64(h.Cores), true
				known = known && h.Cores > 0
			}
		}
		switch {
		case !found:
			return nil, nil
		case all <= 0 || !known:
			return &used, nil
		}
		return &used, new(min(1, ratio(used, all)))
	}
	if cores, share = sum(procs); share != nil {
		return cores, share, false
	}
	whole, of := sum(func(h *HostFigure) *float64 {
		if h.Role != role || h.CPU == nil {
			return nil
		}
		return new(*h.CPU * max(1, float64(h.Cores)))
	})
	if of == nil && cores != nil {
		return cores, nil, false
	}
	return whole, of, true
}

// A look is what one sample says of its host: what hostSum averages and tables and plots show. Unknown figures are
// NaN.
type look struct {
	cpu, iowait, steal, core     float64 // shares
	serverCores, clientCores     float64
	others                       float64 // share of the CPU that programs used which were seen and not watched
	kernel                       float64 // that threads of the kernel used
	serverRSS, clientRSS         int64
	available                    int64
	diskBusy                     float64 // of the busiest
	diskRead, diskWrite          float64 // per second
	received, sent, looped, back float64 // per second; the latter two through loopback: sent and received
	retransmits                  float64 // per second
}

func lookAt(s *monitor.Sample) look {
	unknown := math.NaN()
	k := look{cpu: unknown, iowait: unknown, steal: unknown, core: unknown, diskBusy: unknown}
	if s.CPU != nil {
		k.cpu, k.iowait, k.steal = s.CPU.Busy(), s.CPU.IOWait, s.CPU.Steal
	}
	if len(s.Core) > 0 {
		k.core = slices.Max(s.Core)
	}
	if s.Memory != nil {
		k.available = s.Memory.Available
	}
	if s.TCP != nil {
		k.retransmits = ratio(float64(s.TCP.Retransmits), s.Seconds)
	}
	cores := float64(max(1, s.Cores))
	k.others = min(ratio(s.Others/cores, s.Seconds), k.cpu) // a process that begins to work is seen late, with all it used
	k.kernel = min(ratio(s.Kernel/cores, s.Seconds), k.cpu)
	k.serverCores, k.serverRSS = processes(s, server)
	k.clientCores, k.clientRSS = processes(s, client)
	if s.Service == nil {
		k.devices(s)
	}
	return k
}

// processes sums the processes of one role; cores is NaN if there are none.
func processes(s *monitor.Sample, role monitor.Role) (cores float64, resident int64) {
	found := false
	for p := range each(s.Procs) {
		if p.Role == role {
			found = true
			cores += ratio(p.User+p.System, s.Seconds)
			resident += p.RSS
		}
	}
	if !found {
		return math.NaN(), 0
	}
	return cores, max(0, resident)
}

func (k *look) devices(s *monitor.Sample) {
	for d := range each(s.Disks) {
		if !(k.diskBusy >= d.Busy) {
			k.diskBusy = d.Busy
		}
		if !d.Repeats() {
			k.diskRead, k.diskWrite = k.diskRead+d.Read, k.diskWrite+d.Write
		}
	}
	for n := range each(s.Nets) {
		if n.Name == loopback {
			k.back, k.looped = ratio(float64(n.Received), s.Seconds), ratio(float64(n.Sent), s.Seconds)
			continue
		}
		k.received, k.sent = k.received+float64(n.Received), k.sent+float64(n.Sent)
	}
	k.received, k.sent = ratio(k.received, s.Seconds), ratio(k.sent, s.Seconds)
	for _, what := range s.LeftOut {
		switch {
		case strings.HasPrefix(what, monitor.LeftOutDisk):
			k.diskRead, k.diskWrite = math.NaN(), math.NaN()
		case what == monitor.LeftOutNet+loopback:
			k.back, k.looped = math.NaN(), math.NaN()
		case strings.HasPrefix(what, monitor.LeftOutNet):
			k.received, k.sent = math.NaN(), math.NaN()
		}
	}
}
