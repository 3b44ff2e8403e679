package analysis

import (
	"fmt"
	"strings"

	"weir/internal/unit"
)

// cpuUses are of all cores, and of single ones.
func cpuUses(h *HostFigure, s *Step) []ResourceUsage {
	if h.CPU == nil || h.Cores == 0 {
		return nil
	}
	v := h.share(ResourceCPU, *h.CPU)
	u := use(ResourceCPU, h, v, "%s busy, %.2f of %d cores: %s", unit.Percent(v.mean), v.mean*float64(h.Cores), h.Cores, h.whoseCPU(s))
	u.foreign, u.own = value(h.Steal), *u.Share-value(h.Steal)
	others, known := h.others(s)
	if known {
		u.foreign += others
		u.own = ratio(value(h.ServerCores)+value(h.ClientCores)+map[bool]float64{false: s.ExternalCores}[s.programs], float64(h.Cores)) + h.kernel
	}
	all := []ResourceUsage{u}
	if core, thread := coreUse(h, others*float64(h.Cores)); core.Resource != "" {
		// all cores are full; but a thread that has one has all it can use, if others fill the rest
		if u.reached && (!thread || u.foreign < othersWarn || u.Side == "both") {
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
		cores(map[bool]string{true: "the clients and their programs", false: "the clients"}[s.programs], *h.ClientCores)
		if s.burned > 0 {
			parts[len(parts)-1] += fmt.Sprintf(" (including %.2f that their jobs burned on purpose)", min(s.burnedOn(h), *h.ClientCores))
		}
		if s.ExternalCores > 0 && !s.programs {
			cores("client programs", s.ExternalCores)
		}
	}
	all := float64(h.Cores)
	if others, ok := h.others(s); ok {
		cores("other programs", others*all)
	}
	cores("threads of the kernel", h.kernel*all)
	cores("interrupts", value(h.irq)*all)
	cores("other guests of the hypervisor", value(h.Steal)*all)
	if len(parts) == 0 {
		return "no processes were monitored"
	}
	return strings.Join(parts, ", ")
}

// Cores that are too few to fill one.
const (
	partOfCore  = 0.5  // of other programs, and of interrupts: they cannot be what fills a core
	threadTicks = 0.02 // what a thread's CPU time in ticks may lack, each second
)

// coreUse is the fullest of: the busiest thread that was measured, the cores on which the service's processes may
// run, and the core that was busy for longest, if no thread was measured or interrupts may fill it. foreign is how
// many cores other programs used. thread reports whether it is a thread of the service, which can use no more than one
// core wherever it runs. Where the CPU time of threads is not known the upper end of the interval is what it may be.
func coreUse(h *HostFigure, foreign float64) (best ResourceUsage, thread bool) {
	if h.Cores == 1 {
		return best, false
	}
	most, measured := 0.0, len(h.groups) > 0
	take := func(u ResourceUsage, is bool) {
		if best.Share == nil || *u.Share > *best.Share || u.reached && !best.reached {
			best, thread = u, is
		}
	}
	for g := range each(h.groups) {
		v, text, known := g.busiestThread()
		measured = measured && known
		if known {
			u := use(ResourceCore, h, v, "%s, of %d", text, h.Cores)
			u.Side = server
			u.clear = u.clear && min(g.cores.high(), g.other.high()) < boundOf(ResourceCore).clear
			most = max(most, *u.High)
			take(u, true)
		} else {
			most = max(most, min(1, g.cores.high()))
		}
		if g.allowed > 0 && g.allowed < h.Cores {
			u := use(ResourceCore, h, g.cores.times(1/float64(g.allowed)), "%s (%s) used %.2f of the %s on which it may run, of %d",
				g.name, g.size(), g.cores.mean, several(g.allowed, "core", "cores"), h.Cores)
			u.Side = server
			take(u, true)
		}
	}
	if h.MostUsedCore != nil && (!measured || value(h.irq)*float64(h.Cores) >= partOfCore) {
		v := h.share(ResourceCore, *h.MostUsedCore)
		u := use(ResourceCore, h, v, "one of %d cores is %s busy, all cores together %s", h.Cores, unit.Percent(v.mean), unit.Percent(*h.CPU))
		u.Side = h.coreSide()
		u.reached = u.reached && foreign < partOfCore // else it may be theirs
		take(u, false)
	}
	if len(h.groups) == 0 && h.serves() { // its processes were not watched: a thread may use as much as all together
		most = max(most, min(1, h.share(ResourceCPU, *h.CPU).high()*float64(h.Cores)))
	}
	limit := boundOf(ResourceCore).clear
	switch {
	case best.Share == nil && most < limit:
		return ResourceUsage{}, false
	case best.Share == nil:
		best = amount(ResourceCore, h, "the CPU time of its threads is unknown")
	case most > *best.High:
		best.Detail += "; the CPU time of some threads is unknown"
		best.High = &most
	}
	best.clear = best.clear && most < limit
	return best, thread
}

// serves reports whether the service runs on h, as far as its role tells.
func (h *HostFigure) serves() bool { return h.side() == server || h.side() == "both" }

// busiestThread returns the share of a core that the busiest thread of a group used: as it was measured, or of
// processes known to have a single thread each what each of them used, less one that only directs the others unless
// it is seen to work. known is false where that cannot be determined.
func (g *groupFigure) busiestThread() (v ranged, text string, known bool) {
	switch {
	case g.measured > 0:
		v = ranged{g.busiest.mean, max(g.busiest.half, threadTicks)}
		return v, fmt.Sprintf("the busiest thread of %s (%s) used %.2f cores", g.name, g.size(), v.mean), true
	case g.processes > 0 && g.threads == g.processes:
		n := max(1, g.processes-1)
		if g.cores.mean > float64(n)+threadTicks {
			n = g.processes
		}
		v = g.cores.times(1 / float64(n))
		return v, fmt.Sprintf("each of %s of %s used %.2f cores", several(n, "process", "processes"), g.name, v.mean), true
	}
	return ranged{}, "", false
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

func (g *groupFigure) size() string {
	return fmt.Sprintf("%s, %s", several(g.processes, "process", "processes"), several(g.threads, "thread", "threads"))
}
