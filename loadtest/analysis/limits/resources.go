package limits

import (
	"cmp"
	"math"
	"slices"
	"strings"

	"weir/internal/stats"
	"weir/loadtest/analysis/basics"
	"weir/loadtest/analysis/fact"
	"weir/loadtest/analysis/hosts"
	"weir/loadtest/analysis/steps"
	"weir/monitor"
)

// A bound has the share from which a resource counts as used up, the share that heavier steps must
// have if it is to stay used up, and the share below which, by the upper end of its interval, it is
// certainly not the limit. Between these shares the result is undecided.
type bound struct{ reached, holds, clear float64 }

// doubtful is the largest difference by which the lower end of a share's interval may lie below the
// bound that the share reaches.
const doubtful = 0.05

// boundOf returns the bounds of the share of a resource. The counters of interfaces include neither
// preambles nor the gaps between frames, and some omit the headers of the frames into which they
// cut large packets: a full interface shows only 95% of its speed.
func boundOf(resource string) bound {
	switch resource {
	case hosts.ResourceCPU, hosts.ResourceCore, hosts.ResourceDisk, hosts.ResourceScratch, hosts.ResourceReceived,
		hosts.ResourceSent, hosts.ResourceNetwork:
		return bound{0.90, 0.80, 0.80}
	case hosts.ResourceGenerator:
		return bound{generatorFail, generatorWarn, generatorWarn}
	case hosts.ResourceFiles, hosts.ResourcePorts:
		return bound{0.98, 0.95, 0.95}
	}
	return bound{2, 2, 2} // never by its share alone
}

// Bounds that are not shares.
const (
	leastQueue   = 1.5   // requests at a disk: with fewer, a second one would hardly have waited
	deepQueue    = 32    // requests at a disk: enough to keep it busy, however many it serves in parallel
	queueGrows   = 1.25  // factor by which a disk's queue must grow with the load unless it is deep
	busyThreads  = 0.9   // share of a pool's threads, if jobs wait for a thread
	waitingJobs  = 0.5   // mean number of jobs that wait for a thread
	leastMemory  = 0.03  // share of the memory that is available
	swapGrew     = 0.005 // of the memory, in one step
	fewWaiting   = 0.1   // mean number of jobs waiting for a thread; below, threads are not scarce
	leastOnDisk  = 0.002 // of the payload that a disk must move to limit it: a slow disk takes a few hundred times as long as memory
	leastTraffic = 1e5   // bytes per second from which traffic is listed
	leastShare   = 0.001 // of an interface's speed, or of the time a link was sending, the same
	slowest      = 1e7   // bytes per second that an interface of unknown speed carries if it is full: the slowest have 100 Mbit/s
)

// A usage is the use of a resource in one step, with its judgment.
type usage struct {
	*steps.ResourceUsage
	reached, holds bool    // used up at this step, by the lower end; nearly so, as heavier steps need it
	near, clear    bool    // used up by the mean; not used up, by the upper end
	foreign        float64 // part of the use that certainly belongs to neither side
	own            float64 // part that may belong to a side, such as the time of interrupts
	depth          float64 // of a disk: its queue
	group          float64 // mean share of the disks that share its work, 0: it has no other disk
}

// Resources are the sampled resources of each step, the most used first, resources of unknown size
// last.
type Resources map[*steps.Working][]usage

// ResourcesOf fills in the use of every resource that was sampled in each step.
func ResourcesOf(d *steps.Run, curve *steps.Curve) Resources {
	all := Resources{}
	for _, s := range curve.Steps {
		var uses []usage
		for h := range basics.Each(s.Machines) {
			here := hostUses(h, s)
			ruleOut(d, here, h, s)
			uses = append(append(uses, here...), serviceUses(h)...)
		}
		uses = append(uses, generatorUses(d, s, uses)...)
		slices.SortStableFunc(uses, func(a, b usage) int {
			return cmp.Or(cmp.Compare(shareOf(b.Share), shareOf(a.Share)), cmp.Compare(a.Resource, b.Resource), cmp.Compare(a.Host, b.Host))
		})
		s.Resources = make([]steps.ResourceUsage, len(uses))
		for i := range uses {
			s.Resources[i] = *uses[i].ResourceUsage
			uses[i].ResourceUsage = &s.Resources[i]
		}
		all[s] = uses
	}
	return all
}

// ruleOut rules out the host's disk if it works for others: in the direction of the load it moves
// less than leastOnDisk of the payload, which then comes from a cache, or from other disks.
func ruleOut(d *steps.Run, uses []usage, h *hosts.Host, s *steps.Working) {
	moves := 0.0
	if d.Down+d.Copied > 0 { // a host of copies may be at either end
		moves += h.DiskRead
	}
	if d.Up+d.Copied > 0 {
		moves += h.DiskWrite
	}
	for u := range basics.Each(uses) {
		if u.Resource == hosts.ResourceDisk && moves < leastOnDisk*s.Throughput {
			u.reached, u.near, u.clear = false, false, true
			u.addFact("limit.use.disk.others")
		}
	}
}

// shareOf returns the value of p, or less than any share if p is nil.
func shareOf(p *float64) float64 {
	if p == nil {
		return -1
	}
	return *p
}

// addFact adds a fact to the detail of u, see fact.New.
func (u *usage) addFact(code string, pairs ...any) {
	u.Facts = append(u.Facts, fact.New(code, pairs...))
	u.Detail = strings.Join(fact.Texts(u.Facts), "; ")
}

// use returns the usage of a share, judged by its interval and the bounds of the resource.
func use(resource string, h *hosts.Host, v hosts.Ranged, f fact.Fact) usage {
	share, low, high := max(0, stats.OrZero(v.Mean)), max(0, stats.OrZero(v.Low())), max(0, stats.OrZero(v.High()))
	b := boundOf(resource)
	return usage{ResourceUsage: &steps.ResourceUsage{Resource: resource, Host: h.Host, Side: h.Side(), Share: &share, Low: &low, High: &high,
		Detail: f.Text, Facts: []fact.Fact{f}},
		reached: share >= b.reached && low >= b.reached-doubtful, near: share >= b.reached, holds: share >= b.holds, clear: high < b.clear}
}

// amount returns the usage of a resource without a known limit.
func amount(resource string, h *hosts.Host, f fact.Fact) usage {
	return usage{ResourceUsage: &steps.ResourceUsage{Resource: resource, Host: h.Host, Side: h.Side(), Detail: f.Text, Facts: []fact.Fact{f}},
		clear: true}
}

func hostUses(h *hosts.Host, s *steps.Working) []usage {
	all := cpuUses(h, s)
	if h.IOWait != nil && *h.IOWait >= 0.005 {
		u := use(hosts.ResourceIOWait, h, hosts.Ranged{Mean: *h.IOWait}, fact.New("limit.use.iowait", "share", *h.IOWait))
		u.clear = *h.IOWait*float64(h.Cores) < partOfCore || !h.Serves()
		all = append(all, u)
	}
	if h.MemoryTotal > 0 && h.MemoryAvailable > 0 {
		all = append(all, memoryUse(h))
	}
	apart := h.Scratch != nil && h.Scratch.Busy != nil && !h.Serves()
	if apart && *h.Scratch.Busy >= 0.005 {
		all = append(all, scratchUse(h))
	}
	if h.DiskBusy != nil && *h.DiskBusy >= 0.005 && (!apart || h.Scratch.Disk != h.Disk) {
		all = append(all, diskUse(h))
	}
	all = append(all, netUses(h)...)
	if h.ListenDrops > 0 {
		all = append(all, amount(hosts.ResourceListen, h, fact.New("limit.use.listen", "rate", h.ListenDrops)))
	}
	if h.Retransmits >= 0.5 {
		all = append(all, amount(hosts.ResourceRetransmits, h, fact.New("limit.use.retransmits", "rate", h.Retransmits)))
	}
	return all
}

// memoryUse returns the use of the memory, which is used up if almost no memory is available and
// pages are swapped out.
func memoryUse(h *hosts.Host) usage {
	left := stats.Ratio(float64(h.MemoryAvailable), float64(h.MemoryTotal))
	u := use(hosts.ResourceMemory, h, hosts.Ranged{Mean: 1 - left},
		fact.New("limit.use.memory", "available", h.MemoryAvailable, "all", h.MemoryTotal))
	if h.Swapped > 0 {
		u.addFact("limit.use.memory.swapped", "swapped", h.Swapped)
	}
	u.reached = left < leastMemory && float64(h.SwapGrowth) > swapGrew*float64(h.MemoryTotal)
	u.near, u.holds = u.reached, left < 2*leastMemory
	u.clear = left >= 2*leastMemory || h.SwapGrowth <= 0
	return u
}

// diskUse returns the use of the disk, which is used up if the disk is busy and has a queue;
// whether the queue grows with the load is judged across steps.
func diskUse(h *hosts.Host) usage {
	u := oneDisk(hosts.ResourceDisk, h, &hosts.DiskFigure{Disk: h.Disk, Busy: h.DiskBusy, Read: h.DiskRead, Write: h.DiskWrite,
		Queue: h.DiskQueue})
	if h.DisksInUse > 1 {
		u.group = *h.DisksBusy
		u.addFact("limit.use.disk.busiest", "disks", h.DisksInUse, "share", u.group, "full", h.DisksFull)
	}
	if h.Scratch != nil && h.Scratch.Disk == h.Disk {
		u.addFact("limit.use.disk.copies")
	}
	return u
}

// scratchUse returns the use of the disk with the copies of files.
func scratchUse(h *hosts.Host) usage { return oneDisk(hosts.ResourceScratch, h, h.Scratch) }

func oneDisk(resource string, h *hosts.Host, d *hosts.DiskFigure) usage {
	v := h.Share(resource, *d.Busy)
	f := fact.New("limit.use.disk", "disk", d.Disk, "share", v.Mean, "read", d.Read, "written", d.Write)
	if d.Queue != nil {
		f = fact.New("limit.use.disk.queue", "disk", d.Disk, "share", v.Mean, "read", d.Read, "written", d.Write, "queue", *d.Queue)
	}
	u := use(resource, h, v, f)
	u.depth = basics.Value(d.Queue)
	u.reached, u.near = u.reached && u.depth >= leastQueue, u.near && u.depth >= leastQueue
	u.clear = u.clear || d.Queue != nil && u.depth < leastQueue/2
	return u
}

func netUses(h *hosts.Host) []usage {
	if h.Link != nil {
		return linkUses(h)
	}
	var all []usage
	speed := h.NetSpeed / 8
	if x := basics.Value(h.ReceivedShare); x >= leastShare {
		v := h.Share(hosts.ResourceReceived, x)
		all = append(all, use(hosts.ResourceReceived, h, v,
			fact.New("limit.use.network.received", "interface", h.Interface, "rate", v.Mean*speed, "speed", speed)))
	}
	if x := basics.Value(h.SentShare); x >= leastShare {
		v := h.Share(hosts.ResourceSent, x)
		all = append(all, use(hosts.ResourceSent, h, v,
			fact.New("limit.use.network.sent", "interface", h.Interface, "rate", v.Mean*speed, "speed", speed)))
	}
	if h.UnknownTraffic >= leastTraffic {
		u := amount(hosts.ResourceNetwork, h, fact.New("limit.use.network", "interface", h.UnknownName, "rate", h.UnknownTraffic))
		u.clear = h.UnknownTraffic < slowest
		all = append(all, u)
	}
	return all
}

// linkUses returns the use of the busier direction of an emulated link.
func linkUses(h *hosts.Host) []usage {
	var all []usage
	for i, w := range []*hosts.WayFigure{&h.Link.ToClients, &h.Link.FromClients} {
		way := []string{monitor.ToClients, monitor.FromClients}[i]
		switch {
		case basics.Value(w.Busy) >= leastShare:
			u := use(hosts.ResourceNetwork, h, w.Share(), fact.New("limit.use.link", "link", h.Link.What(), "direction", way,
				"share", w.Share().Mean, "rate", w.Carried, "speed", w.Rate/8))
			if w.Dropped > 0 {
				u.addFact("limit.use.link.dropped", "rate", w.Dropped)
				// it is idle between bursts, or before and after the load, but not enough
				u.reached = *u.Low >= boundOf(hosts.ResourceNetwork).holds-doubtful && u.holds
			}
			all = append(all, u)
		case w.Busy == nil && w.Carried >= leastTraffic:
			all = append(all, amount(hosts.ResourceNetwork, h, fact.New("limit.use.link.unlimited", "rate", w.Carried, "direction", way)))
		}
	}
	if len(all) == 2 && shareOf(all[1].Share) > shareOf(all[0].Share) { // the fuller direction counts
		all[0] = all[1]
	}
	return all[:min(len(all), 1)]
}

// serviceUses returns the use of the resources that a server reports in its own statistics.
func serviceUses(h *hosts.Host) []usage {
	v := h.Service
	if v == nil {
		return nil
	}
	name := cmp.Or(v.Kind, "server")
	var all []usage
	if v.Threads > 0 {
		u := use(hosts.ResourceThreads, h, hosts.Ranged{Mean: stats.Ratio(v.Busy, v.Threads)}, fact.New("limit.use.threads", "busy", v.Busy,
			"threads", v.Threads, "server", name, "waiting", v.QueueMean, "most", v.Queue))
		if v.Limited > 0 {
			u.addFact("limit.use.threads.limited", "rate", v.Limited)
		}
		waiting := v.QueueMean >= waitingJobs || v.Limited > 0
		u.reached = *u.Share >= busyThreads && waiting
		u.near, u.holds = u.reached, waiting || *u.Share >= busyThreads
		u.clear = v.QueueMean < fewWaiting && v.Limited == 0
		all = append(all, u)
	}
	if v.Connections > 0 {
		all = append(all, amount(hosts.ResourceConnections, h, fact.New("limit.use.connections", "server", name, "connections",
			math.Round(v.Connections))))
	}
	if h.CPU == nil && v.Cores >= 0.005 {
		all = append(all, amount(hosts.ResourceCPU, h, fact.New("limit.use.cpu.reported", "server", name, "used", v.Cores)))
	}
	return all
}
