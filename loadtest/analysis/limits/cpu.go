package limits

import (
	"fmt"
	"strings"

	"weir/internal/stats"
	"weir/internal/unit"
	"weir/loadtest/analysis/basics"
	"weir/loadtest/analysis/hosts"
	"weir/loadtest/analysis/steps"
)

// othersWarn is the share of a machine's CPU, used by neither side's processes, from which on others count as users
// of it.
const othersWarn = 0.2

// cpuUses are of all cores, and of single ones.
func cpuUses(h *hosts.Host, s *steps.Working) []usage {
	if h.CPU == nil || h.Cores == 0 {
		return nil
	}
	v := h.Share(hosts.ResourceCPU, *h.CPU)
	u := use(hosts.ResourceCPU, h, v, "%s busy, %.2f of %d cores: %s", unit.Percent(v.Mean), v.Mean*float64(h.Cores), h.Cores, whoseCPU(h, s))
	u.foreign, u.own = basics.Value(h.Steal), *u.Share-basics.Value(h.Steal)
	others, known := h.Others(s.External())
	if known {
		u.foreign += others
		u.own = stats.Ratio(basics.Value(h.ServerCores)+basics.Value(h.ClientCores)+s.External(), float64(h.Cores)) + h.Kernel
	}
	all := []usage{u}
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
func whoseCPU(h *hosts.Host, s *steps.Working) string {
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
		cores(map[bool]string{true: "the clients and their programs", false: "the clients"}[s.Programs], *h.ClientCores)
		if s.Burned > 0 {
			parts[len(parts)-1] += fmt.Sprintf(" (including %.2f that their jobs burned on purpose)", min(s.BurnedOn(h), *h.ClientCores))
		}
		if s.ExternalCores > 0 && !s.Programs {
			cores("client programs", s.ExternalCores)
		}
	}
	all := float64(h.Cores)
	if others, ok := h.Others(s.External()); ok {
		cores("other programs", others*all)
	}
	cores("threads of the kernel", h.Kernel*all)
	cores("interrupts", basics.Value(h.IRQ)*all)
	cores("other guests of the hypervisor", basics.Value(h.Steal)*all)
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
func coreUse(h *hosts.Host, foreign float64) (best usage, thread bool) {
	best.ResourceUsage = &steps.ResourceUsage{}
	if h.Cores == 1 {
		return best, false
	}
	most, measured := 0.0, len(h.Groups) > 0
	take := func(u usage, is bool) {
		if best.Share == nil || *u.Share > *best.Share || u.reached && !best.reached {
			best, thread = u, is
		}
	}
	for g := range basics.Each(h.Groups) {
		v, text, known := busiestThread(g)
		measured = measured && known
		if known {
			u := use(hosts.ResourceCore, h, v, "%s, of %d", text, h.Cores)
			u.Side = hosts.Server
			u.clear = u.clear && min(g.Cores.High(), g.Other.High()) < boundOf(hosts.ResourceCore).clear
			most = max(most, *u.High)
			take(u, true)
		} else {
			most = max(most, min(1, g.Cores.High()))
		}
		if g.Allowed > 0 && g.Allowed < h.Cores {
			u := use(hosts.ResourceCore, h, g.Cores.Times(1/float64(g.Allowed)), "%s (%s) used %.2f of the %s on which it may run, of %d",
				g.Name, size(g), g.Cores.Mean, several(g.Allowed, "core", "cores"), h.Cores)
			u.Side = hosts.Server
			take(u, true)
		}
	}
	if h.MostUsedCore != nil && (!measured || basics.Value(h.IRQ)*float64(h.Cores) >= partOfCore) {
		v := h.Share(hosts.ResourceCore, *h.MostUsedCore)
		u := use(hosts.ResourceCore, h, v, "one of %d cores is %s busy, all cores together %s", h.Cores, unit.Percent(v.Mean),
			unit.Percent(*h.CPU))
		u.Side = h.CoreSide()
		u.reached = u.reached && foreign < partOfCore // else it may be theirs
		take(u, false)
	}
	if len(h.Groups) == 0 && h.Serves() { // its processes were not watched: a thread may use as much as all together
		most = max(most, min(1, h.Share(hosts.ResourceCPU, *h.CPU).High()*float64(h.Cores)))
	}
	limit := boundOf(hosts.ResourceCore).clear
	switch {
	case best.Share == nil && most < limit:
		return best, false
	case best.Share == nil:
		best = amount(hosts.ResourceCore, h, "the CPU time of its threads is unknown")
	case most > *best.High:
		best.Detail += "; the CPU time of some threads is unknown"
		best.High = &most
	}
	best.clear = best.clear && most < limit
	return best, thread
}

// busiestThread returns the share of a core that the busiest thread of a group used: as it was measured, or of
// processes known to have a single thread each what each of them used, less one that only directs the others unless
// it is seen to work. known is false where that cannot be determined.
func busiestThread(g *hosts.GroupFigure) (v hosts.Ranged, text string, known bool) {
	switch {
	case g.Measured > 0:
		v = hosts.Ranged{Mean: g.Busiest.Mean, Half: max(g.Busiest.Half, threadTicks)}
		return v, fmt.Sprintf("the busiest thread of %s (%s) used %.2f cores", g.Name, size(g), v.Mean), true
	case g.Processes > 0 && g.Threads == g.Processes:
		n := max(1, g.Processes-1)
		if g.Cores.Mean > float64(n)+threadTicks {
			n = g.Processes
		}
		v = g.Cores.Times(1 / float64(n))
		return v, fmt.Sprintf("each of %s of %s used %.2f cores", several(n, "process", "processes"), g.Name, v.Mean), true
	}
	return hosts.Ranged{}, "", false
}

func size(g *hosts.GroupFigure) string {
	return fmt.Sprintf("%s, %s", several(g.Processes, "process", "processes"), several(g.Threads, "thread", "threads"))
}
