package analysis

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strings"

	"weir/internal/unit"
)

// Values of Use.Resource.
const (
	ResourceCPU         = "cpu"  // of all cores of a host
	ResourceCore        = "core" // one core, or the cores that processes of one thread each can use, while others idle
	ResourceIOWait      = "iowait"
	ResourceMemory      = "memory"
	ResourceDisk        = "disk"
	ResourceReceived    = "network received"
	ResourceSent        = "network sent"
	ResourceNetwork     = "network" // of an interface whose speed is not known
	ResourceThreads     = "threads"
	ResourceQueue       = "queue"
	ResourceConnections = "connections"
	ResourceListen      = "listen queue"
	ResourceRetransmits = "retransmits"
	ResourceGenerator   = "generator"
	ResourceFiles       = "open files"
	ResourcePorts       = "ports"
)

// A bound says from which share on a resource counts as used up, and what
// share heavier steps must have for it to stay so.
type bound struct{ reached, holds float64 }

// bounds of the shares. Interfaces count neither preambles nor the gaps
// between frames, and some not the headers of the frames that they cut large
// packets into: 95% of the speed is all that can be seen of it.
func boundOf(resource string) bound {
	switch resource {
	case ResourceCPU:
		return bound{0.90, 0.80}
	case ResourceReceived, ResourceSent:
		return bound{0.90, 0.80}
	case ResourceCore, ResourceDisk:
		return bound{0.95, 0.85}
	case ResourceFiles, ResourcePorts:
		return bound{0.98, 0.95}
	}
	return bound{2, 2} // never by its share alone
}

// Bounds that are no shares.
const (
	leastQueue   = 2     // requests at a disk: fewer, and a second one would not have waited
	deepQueue    = 32    // requests at a disk: as many as make it busy, however many it serves at a time
	queueGrows   = 1.25  // factor by which a disk's queue must grow with the load unless it is deep
	busyThreads  = 0.9   // share of a pool's threads, if jobs wait for one
	waitingJobs  = 0.5   // mean number of jobs that wait for a thread
	leastMemory  = 0.03  // share of the memory that is available
	swapGrew     = 0.005 // of the memory, in one step
	oneCore      = 1.08  // cores that a group of processes uses at most if one thread is its limit; ticks are coarse
	leastTraffic = 1e5   // bytes per second that are worth a line
)

// resources fills in the use of every resource that was seen in each step,
// the most used first, those of unknown size last. The emulated link of a
// scenario belongs here, too, once there is one: a Use with the bounds of an
// interface.
func (d *data) resources(f *Findings) {
	threads := threadsOf(f)
	for i := range f.Curve {
		s := &f.Curve[i]
		s.Resources = []Use{}
		for k := range s.Hosts {
			h := &s.Hosts[k]
			s.Resources = append(s.Resources, hostUses(h, s, threads)...)
			s.Resources = append(s.Resources, serviceUses(h)...)
		}
		s.Resources = append(s.Resources, d.generatorUses(s)...)
		slices.SortStableFunc(s.Resources, func(a, b Use) int {
			return cmp.Or(cmp.Compare(shareOf(b.Share), shareOf(a.Share)), cmp.Compare(a.Resource, b.Resource), cmp.Compare(a.Host, b.Host))
		})
	}
}

// shareOf is p's value, and less than any share where it is nil.
func shareOf(p *float64) float64 {
	if p == nil {
		return -1
	}
	return *p
}

// use makes the Use of a share; it is reached by the resource's bounds.
func use(resource string, h *HostFigure, share float64, format string, args ...any) Use {
	share = max(0, finite(share))
	b := boundOf(resource)
	return Use{Resource: resource, Host: h.Host, Side: h.side(), Share: &share, Detail: fmt.Sprintf(format, args...),
		reached: share >= b.reached, holds: share >= b.holds}
}

// amount makes the Use of what has no limit that is known.
func amount(resource string, h *HostFigure, format string, args ...any) Use {
	return Use{Resource: resource, Host: h.Host, Side: h.side(), Detail: fmt.Sprintf(format, args...)}
}

// side tells whose host it is, by its role or by the processes seen there.
func (h *HostFigure) side() string {
	switch {
	case h.Role == "both" || h.ServerCores != nil && h.ClientCores != nil:
		return "both"
	case h.Role == server || h.Role == client:
		return h.Role
	case h.ServerCores != nil:
		return server
	case h.ClientCores != nil:
		return client
	}
	return "other"
}

func hostUses(h *HostFigure, s *Step, threads map[groupName]int) []Use {
	all := cpuUses(h, s, threads)
	if h.IOWait != nil && *h.IOWait >= 0.005 {
		all = append(all, use(ResourceIOWait, h, *h.IOWait, "cores idled for %s of the time while a disk was awaited", unit.Percent(*h.IOWait)))
	}
	if h.MemoryTotal > 0 && h.MemoryAvailable > 0 {
		all = append(all, memoryUse(h))
	}
	if h.DiskBusy != nil && *h.DiskBusy >= 0.005 {
		all = append(all, diskUse(h))
	}
	all = append(all, netUses(h)...)
	if h.ListenDrops > 0 {
		all = append(all, amount(ResourceListen, h, "a full listen queue refused %s connections/s", unit.Count(h.ListenDrops)))
	}
	if h.Retransmits >= 0.5 {
		all = append(all, amount(ResourceRetransmits, h, "%s TCP segments/s were sent again", unit.Count(h.Retransmits)))
	}
	return all
}

// cpuUses are of all cores, and of single ones.
func cpuUses(h *HostFigure, s *Step, threads map[groupName]int) []Use {
	if h.CPU == nil || h.Cores == 0 {
		return nil
	}
	u := use(ResourceCPU, h, *h.CPU, "%s busy, %.2f of %d cores: %s", unit.Percent(*h.CPU), *h.CPU*float64(h.Cores), h.Cores, h.whoseCPU(s))
	u.foreign, u.own = value(h.Steal), *u.Share-value(h.Steal)
	if others, ok := h.others(s.ExternalCores); ok {
		u.foreign += others
		u.own = ratio(value(h.ServerCores)+value(h.ClientCores)+s.ExternalCores, float64(h.Cores))
	}
	all := []Use{u}
	if core, thread := coreUse(h, threads, u.foreign >= othersWarn); core.Share != nil {
		if u.reached && (!thread || u.foreign < othersWarn) { // all cores are full; but a thread that has one has all it can use, if others fill the rest
			core.reached = false
		}
		all = append(all, core)
	}
	return all
}

// whoseCPU tells who used the CPU.
func (h *HostFigure) whoseCPU(s *Step) string {
	var parts []string
	cores := func(who string, n float64) {
		if n >= 0.005 {
			parts = append(parts, fmt.Sprintf("%s %.2f", who, n))
		}
	}
	if h.ServerCores != nil {
		cores("the service's processes", *h.ServerCores)
	}
	if h.ClientCores != nil {
		cores("the clients", *h.ClientCores)
		if s.ExternalCores > 0 {
			cores("client programs", s.ExternalCores)
		}
	}
	all := float64(h.Cores)
	if others, ok := h.others(s.ExternalCores); ok {
		cores("other programs", others*all)
	}
	cores("interrupts", value(h.irq)*all)
	cores("other guests of the hypervisor", value(h.Steal)*all)
	if len(parts) == 0 {
		return "nobody's processes were watched"
	}
	return strings.Join(parts, ", ")
}

// coreUse is the core that was busy for longest, or the processes of the
// service that have as many threads as they kept cores busy: a thread that
// moves from core to core fills none of them, and is full all the same; thread
// tells whether it is these. Where others crowd the cores, how busy those are
// tells nothing.
func coreUse(h *HostFigure, threads map[groupName]int, crowded bool) (best Use, thread bool) {
	if h.MostUsedCore != nil && h.Cores > 1 {
		best = use(ResourceCore, h, *h.MostUsedCore, "one of %d cores is %s busy, all together %s", h.Cores, unit.Percent(*h.MostUsedCore), unit.Percent(*h.CPU))
		best.Side = h.coreSide()
	}
	for i := range h.groups {
		g := &h.groups[i]
		n := threads[groupName{h.Host, g.name}]
		if n == 0 || n >= h.Cores {
			continue
		}
		if share := g.cores / float64(n); best.Share == nil || share > *best.Share || crowded && !thread {
			best = use(ResourceCore, h, min(1, share), "%s (%s) used %.2f of %d cores, and %s can use %d", g.name, g.size(), g.cores, h.Cores, g.atWork(n), n)
			best.Side, thread = server, true
		}
	}
	return best, thread
}

// A groupName names a group of the service's processes.
type groupName struct{ host, name string }

// threadsOf returns, for each group of the service's processes, how many cores
// it can use, by the most that it had and used in any step; groups of which
// that cannot be told are left out.
func threadsOf(f *Findings) map[groupName]int {
	most := map[groupName]groupFigure{}
	for i := range f.Curve {
		for k := range f.Curve[i].Hosts {
			h := &f.Curve[i].Hosts[k]
			for _, g := range h.groups {
				m := most[groupName{h.Host, g.name}]
				most[groupName{h.Host, g.name}] = groupFigure{cores: max(m.cores, g.cores), threads: max(m.threads, g.threads), processes: max(m.processes, g.processes)}
			}
		}
	}
	all := map[groupName]int{}
	for name, g := range most {
		if n := g.most(); n > 0 {
			all[name] = n
		}
	}
	return all
}

// coreSide guesses whose core it is.
func (h *HostFigure) coreSide() string {
	if h.side() != "both" || h.ServerCores == nil || h.ClientCores == nil {
		return h.side()
	}
	switch {
	case *h.ServerCores >= 0.9 && *h.ClientCores < 0.9:
		return server
	case *h.ClientCores >= 0.9 && *h.ServerCores < 0.9:
		return client
	}
	return "both"
}

// most returns how many cores a group can use: with one thread in each
// process as many as it has processes, less one that only directs the others
// unless it is seen to work, too; with more threads one, if it never used
// more. It is 0 where that cannot be told.
func (g *groupFigure) most() int {
	if g.processes > 0 && g.threads == g.processes {
		n := max(1, g.processes-1)
		if g.cores > oneCore*float64(n) {
			n = g.processes
		}
		return n
	}
	if g.cores <= oneCore {
		return 1
	}
	return 0
}

func (g *groupFigure) size() string {
	return fmt.Sprintf("%s, %s", several(g.processes, "process", "processes"), several(g.threads, "thread", "threads"))
}

func (g *groupFigure) atWork(n int) string {
	if g.threads == g.processes {
		return several(n, "such process", "such processes")
	}
	return several(n, "thread", "threads")
}

func several(n int, one, many string) string {
	if n == 1 {
		return "1 " + one
	}
	return fmt.Sprintf("%d %s", n, many)
}

// memoryUse is reached where almost none is left and pages are swapped out.
func memoryUse(h *HostFigure) Use {
	left := ratio(float64(h.MemoryAvailable), float64(h.MemoryTotal))
	u := use(ResourceMemory, h, 1-left, "%s of %s were available", unit.Bytes(float64(h.MemoryAvailable)), unit.Bytes(float64(h.MemoryTotal)))
	if h.Swapped > 0 {
		u.Detail += fmt.Sprintf(", %s swapped out", unit.Bytes(float64(h.Swapped)))
	}
	u.reached = left < leastMemory && float64(h.swapGrowth) > swapGrew*float64(h.MemoryTotal)
	u.holds = left < 2*leastMemory
	return u
}

// diskUse is reached where the disk is busy and has a queue; whether that
// grows with the load is judged across steps.
func diskUse(h *HostFigure) Use {
	u := use(ResourceDisk, h, *h.DiskBusy, "%s is %s busy, reads %s/s, writes %s/s", h.Disk, unit.Percent(*h.DiskBusy), unit.Bytes(h.DiskRead), unit.Bytes(h.DiskWrite))
	if h.DiskQueue != nil {
		u.depth = *h.DiskQueue
		u.Detail += fmt.Sprintf(", with %.3g requests in it or waiting", u.depth)
	}
	u.reached = u.reached && u.depth >= leastQueue
	return u
}

func netUses(h *HostFigure) []Use {
	var all []Use
	for _, way := range []struct {
		resource, verb string
		share          *float64
	}{{ResourceReceived, "received", h.ReceivedShare}, {ResourceSent, "sent", h.SentShare}} {
		if way.share != nil && *way.share >= 0.001 {
			all = append(all, use(way.resource, h, *way.share, "%s %s %s, headers included, of %s", h.Interface, way.verb, unit.Bits(*way.share*h.NetSpeed/8), unit.Bits(h.NetSpeed/8)))
		}
	}
	if h.unknownTraffic >= leastTraffic {
		all = append(all, amount(ResourceNetwork, h, "%s carried %s in one direction; its speed is not known", h.unknownName, unit.Bits(h.unknownTraffic)))
	}
	return all
}

// serviceUses is what a server tells of itself.
func serviceUses(h *HostFigure) []Use {
	v := h.Service
	if v == nil {
		return nil
	}
	name := cmp.Or(v.Kind, "server")
	var all []Use
	if v.Threads > 0 {
		u := use(ResourceThreads, h, ratio(v.Busy, v.Threads), "%.3g of the %.3g threads of this %s were busy, %.3g jobs waited for one (%d at most)", v.Busy, v.Threads, name, v.QueueMean, v.Queue)
		if v.Limited > 0 {
			u.Detail += fmt.Sprintf("; it met its limit of threads %s times/s", unit.Count(v.Limited))
		}
		waiting := v.QueueMean >= waitingJobs || v.Limited > 0
		u.reached = *u.Share >= busyThreads && waiting
		u.holds = waiting || *u.Share >= busyThreads
		all = append(all, u)
	}
	if v.Connections > 0 {
		all = append(all, amount(ResourceConnections, h, "this %s had %s connections", name, unit.Count(math.Round(v.Connections))))
	}
	if h.CPU == nil && v.Cores >= 0.005 {
		all = append(all, amount(ResourceCPU, h, "this %s used %.3g cores; how many its machine has is not known", name, v.Cores))
	}
	return all
}
