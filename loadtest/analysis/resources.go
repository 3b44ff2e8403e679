package analysis

import (
	"cmp"
	"fmt"
	"math"
	"slices"

	"weir/internal/unit"
)

// Values of ResourceUsage.Resource.
const (
	ResourceCPU         = "cpu"  // of all cores of a host
	ResourceCore        = "core" // one core, or the cores that processes of one thread each can use, while others idle
	ResourceIOWait      = "iowait"
	ResourceMemory      = "memory"
	ResourceDisk        = "disk"
	ResourceScratch     = "scratch disk" // of jobs, on a machine that has no part of the service
	ResourceReceived    = "network received"
	ResourceSent        = "network sent"
	ResourceNetwork     = "network" // of an emulated link, and of an interface whose speed is not known
	ResourceThreads     = "threads"
	ResourceQueue       = "queue"
	ResourceConnections = "connections"
	ResourceListen      = "listen queue"
	ResourceRetransmits = "retransmits"
	ResourceGenerator   = "generator"
	ResourceFiles       = "open files"
	ResourcePorts       = "ports"
)

// A bound says from which share on a resource counts as used up, what share heavier steps must have for it to stay
// so, and below which share, by the upper end of its interval, it is certainly not what limits. In between it cannot
// be told.
type bound struct{ reached, holds, clear float64 }

// doubtful is by how much the lower end of the interval of a share may be below the bound that the share reaches.
const doubtful = 0.05

// bounds of the shares. Interfaces count neither preambles nor the gaps between frames, and some not the headers of
// the frames that they cut large packets into: 95% of the speed is all that can be seen of it.
func boundOf(resource string) bound {
	switch resource {
	case ResourceCPU, ResourceCore, ResourceDisk, ResourceScratch, ResourceReceived, ResourceSent, ResourceNetwork:
		return bound{0.90, 0.80, 0.80}
	case ResourceGenerator:
		return bound{generatorFail, generatorWarn, generatorWarn}
	case ResourceFiles, ResourcePorts:
		return bound{0.98, 0.95, 0.95}
	}
	return bound{2, 2, 2} // never by its share alone
}

// Bounds that are no shares.
const (
	leastQueue   = 1.5   // requests at a disk: with fewer a second one would hardly have waited
	deepQueue    = 32    // requests at a disk: as many as make it busy, however many it serves at a time
	queueGrows   = 1.25  // factor by which a disk's queue must grow with the load unless it is deep
	busyThreads  = 0.9   // share of a pool's threads, if jobs wait for one
	waitingJobs  = 0.5   // mean number of jobs that wait for a thread
	leastMemory  = 0.03  // share of the memory that is available
	swapGrew     = 0.005 // of the memory, in one step
	fewWaiting   = 0.1   // mean number of jobs that wait for a thread, below which none is wanting
	leastOnDisk  = 0.002 // of the payload that a disk must move to limit it: a slow one takes a few hundred times as long as memory
	leastTraffic = 1e5   // bytes per second that are worth a line
	slowest      = 1e7   // bytes per second that an interface of unknown speed carries if it is full: the slowest have 100 Mbit/s
)

// resources fills in the use of every resource that was seen in each step, the most used first, those of unknown size
// last.
func (d *data) resources(f *Findings) {
	for s := range each(f.Curve) {
		s.Resources = []ResourceUsage{}
		for h := range each(s.Hosts) {
			uses := hostUses(h, s)
			d.ruleOut(uses, h, s)
			s.Resources = append(s.Resources, uses...)
			s.Resources = append(s.Resources, serviceUses(h)...)
		}
		s.Resources = append(s.Resources, d.generatorUses(s)...)
		slices.SortStableFunc(s.Resources, func(a, b ResourceUsage) int {
			return cmp.Or(cmp.Compare(shareOf(b.Share), shareOf(a.Share)), cmp.Compare(a.Resource, b.Resource), cmp.Compare(a.Host, b.Host))
		})
	}
}

// ruleOut rules the host's disk out that works for others: in the direction of the load it moves less than leastOnDisk of the
// payload, which then comes from a cache, or from other disks.
func (d *data) ruleOut(uses []ResourceUsage, h *HostFigure, s *Step) {
	moves := 0.0
	if d.down > 0 {
		moves += h.DiskRead
	}
	if d.up > 0 {
		moves += h.DiskWrite
	}
	for u := range each(uses) {
		if u.Resource == ResourceDisk && moves < leastOnDisk*s.Throughput {
			u.reached, u.near, u.clear = false, false, true
			u.Detail += ": hardly any of it for this load"
		}
	}
}

// shareOf is p's value, and less than any share where it is nil.
func shareOf(p *float64) float64 {
	if p == nil {
		return -1
	}
	return *p
}

// use makes the ResourceUsage of a share, and judges it by its interval and the resource's bounds.
func use(resource string, h *HostFigure, v ranged, format string, args ...any) ResourceUsage {
	share, low, high := max(0, finite(v.mean)), max(0, finite(v.low())), max(0, finite(v.high()))
	b := boundOf(resource)
	return ResourceUsage{Resource: resource, Host: h.Host, Side: h.side(), Share: &share, Low: &low, High: &high,
		Detail:  fmt.Sprintf(format, args...),
		reached: share >= b.reached && low >= b.reached-doubtful, near: share >= b.reached, holds: share >= b.holds, clear: high < b.clear}
}

// amount makes the ResourceUsage of what has no limit that is known.
func amount(resource string, h *HostFigure, format string, args ...any) ResourceUsage {
	return ResourceUsage{Resource: resource, Host: h.Host, Side: h.side(), Detail: fmt.Sprintf(format, args...), clear: true}
}

// side tells whose host it is, by its role or by the processes seen there.
func (h *HostFigure) side() string {
	switch {
	case h.Role == "both" || h.ServerCores != nil && h.ClientCores != nil:
		return "both"
	case h.Role == server || h.Role == client:
		return string(h.Role)
	case h.ServerCores != nil:
		return server
	case h.ClientCores != nil:
		return client
	}
	return "other"
}

func hostUses(h *HostFigure, s *Step) []ResourceUsage {
	all := cpuUses(h, s)
	if h.IOWait != nil && *h.IOWait >= 0.005 {
		u := use(ResourceIOWait, h, ranged{mean: *h.IOWait}, "cores were idle for %s of the time while waiting for a disk",
			unit.Percent(*h.IOWait))
		u.clear = *h.IOWait*float64(h.Cores) < partOfCore || !h.serves()
		all = append(all, u)
	}
	if h.MemoryTotal > 0 && h.MemoryAvailable > 0 {
		all = append(all, memoryUse(h))
	}
	apart := h.scratch != nil && h.scratch.Busy != nil && !h.serves()
	if apart && *h.scratch.Busy >= 0.005 {
		all = append(all, scratchUse(h))
	}
	if h.DiskBusy != nil && *h.DiskBusy >= 0.005 && (!apart || h.scratch.Disk != h.Disk) {
		all = append(all, diskUse(h))
	}
	all = append(all, netUses(h)...)
	if h.ListenDrops > 0 {
		all = append(all, amount(ResourceListen, h, "a full listen queue dropped %s connections/s", unit.Count(h.ListenDrops)))
	}
	if h.Retransmits >= 0.5 {
		all = append(all, amount(ResourceRetransmits, h, "%s TCP segments/s were retransmitted", unit.Count(h.Retransmits)))
	}
	return all
}

func several(n int, one, many string) string {
	if n == 1 {
		return "1 " + one
	}
	return fmt.Sprintf("%d %s", n, many)
}

// memoryUse is reached where almost none is left and pages are swapped out.
func memoryUse(h *HostFigure) ResourceUsage {
	left := ratio(float64(h.MemoryAvailable), float64(h.MemoryTotal))
	u := use(ResourceMemory, h, ranged{mean: 1 - left}, "%s of %s were available", unit.Bytes(float64(h.MemoryAvailable)),
		unit.Bytes(float64(h.MemoryTotal)))
	if h.Swapped > 0 {
		u.Detail += fmt.Sprintf(", %s swapped out", unit.Bytes(float64(h.Swapped)))
	}
	u.reached = left < leastMemory && float64(h.swapGrowth) > swapGrew*float64(h.MemoryTotal)
	u.near, u.holds = u.reached, left < 2*leastMemory
	u.clear = left >= 2*leastMemory || h.swapGrowth <= 0
	return u
}

// diskUse is reached where the disk is busy and has a queue; whether that grows with the load is judged across steps.
func diskUse(h *HostFigure) ResourceUsage {
	u := oneDisk(ResourceDisk, h, &DiskFigure{Disk: h.Disk, Busy: h.DiskBusy, Read: h.DiskRead, Write: h.DiskWrite, Queue: h.DiskQueue})
	if h.DisksInUse > 1 {
		u.group = *h.DisksBusy
		u.Detail += fmt.Sprintf("; it is the busiest of %d disks in use, which are %s busy on average, %d of them at least 90%%",
			h.DisksInUse, unit.Percent(u.group), h.DisksFull)
	}
	if h.scratch != nil && h.scratch.Disk == h.Disk {
		u.Detail += "; the copies of staged jobs lie on it as well"
	}
	return u
}

// scratchUse is that of the disk that copies of files lie on.
func scratchUse(h *HostFigure) ResourceUsage { return oneDisk(ResourceScratch, h, h.scratch) }

func oneDisk(resource string, h *HostFigure, d *DiskFigure) ResourceUsage {
	v := h.share(resource, *d.Busy)
	u := use(resource, h, v, "%s is %s busy, reads %s/s, writes %s/s", d.Disk, unit.Percent(v.mean), unit.Bytes(d.Read), unit.Bytes(d.Write))
	if d.Queue != nil {
		u.depth = *d.Queue
		u.Detail += fmt.Sprintf(", with %.3g requests in service or waiting", u.depth)
	}
	u.reached, u.near = u.reached && u.depth >= leastQueue, u.near && u.depth >= leastQueue
	u.clear = u.clear || d.Queue != nil && u.depth < leastQueue/2
	return u
}

func netUses(h *HostFigure) []ResourceUsage {
	if h.Link != nil {
		return linkUses(h)
	}
	var all []ResourceUsage
	for _, way := range []struct {
		resource, verb string
		share          *float64
	}{{ResourceReceived, "received", h.ReceivedShare}, {ResourceSent, "sent", h.SentShare}} {
		if way.share != nil && *way.share >= 0.001 {
			v := h.share(way.resource, *way.share)
			all = append(all, use(way.resource, h, v, "%s %s %s, headers included, of %s", h.Interface, way.verb, unit.Bits(v.mean*h.NetSpeed/8),
				unit.Bits(h.NetSpeed/8)))
		}
	}
	if h.unknownTraffic >= leastTraffic {
		u := amount(ResourceNetwork, h, "%s carried %s in one direction; its speed is unknown", h.unknownName, unit.Bits(h.unknownTraffic))
		u.clear = h.unknownTraffic < slowest
		all = append(all, u)
	}
	return all
}

// serviceUses is what a server reports on itself.
func serviceUses(h *HostFigure) []ResourceUsage {
	v := h.Service
	if v == nil {
		return nil
	}
	name := cmp.Or(v.Kind, "server")
	var all []ResourceUsage
	if v.Threads > 0 {
		u := use(ResourceThreads, h, ranged{mean: ratio(v.Busy, v.Threads)}, "%.3g of the %.3g threads of this %s were busy, "+
			"%.3g jobs waited for a thread (at most %d)", v.Busy, v.Threads, name, v.QueueMean, v.Queue)
		if v.Limited > 0 {
			u.Detail += fmt.Sprintf("; it reached its thread limit %s times/s", unit.Count(v.Limited))
		}
		waiting := v.QueueMean >= waitingJobs || v.Limited > 0
		u.reached = *u.Share >= busyThreads && waiting
		u.near, u.holds = u.reached, waiting || *u.Share >= busyThreads
		u.clear = v.QueueMean < fewWaiting && v.Limited == 0
		all = append(all, u)
	}
	if v.Connections > 0 {
		all = append(all, amount(ResourceConnections, h, "this %s had %s connections", name, unit.Count(math.Round(v.Connections))))
	}
	if h.CPU == nil && v.Cores >= 0.005 {
		all = append(all, amount(ResourceCPU, h, "this %s used %.3g cores; the number of cores of its machine is unknown", name, v.Cores))
	}
	return all
}
