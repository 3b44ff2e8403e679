package analysis

import (
	"fmt"
	"strings"

	"weir/internal/unit"
)

// cpuUses are of all cores, and of single ones.
func cpuUses(h *HostFigure, s *Step, threads map[groupName]int) []Use {
	if h.CPU == nil || h.Cores == 0 {
		return nil
	}
	u := use(ResourceCPU, h, *h.CPU, "%s busy, %.2f of %d cores: %s", unit.Percent(*h.CPU), *h.CPU*float64(h.Cores), h.Cores, h.whoseCPU(s))
	u.foreign, u.own = value(h.Steal), *u.Share-value(h.Steal)
	if others, ok := h.others(s); ok {
		u.foreign += others
		u.own = ratio(value(h.ServerCores)+value(h.ClientCores)+map[bool]float64{false: s.ExternalCores}[s.programs], float64(h.Cores))
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
		cores(map[bool]string{true: "the clients and their programs", false: "the clients"}[s.programs], *h.ClientCores)
		if s.burned > 0 {
			parts[len(parts)-1] += fmt.Sprintf(" (of these their jobs burned %.2f on purpose)", min(s.burnedOn(h), *h.ClientCores))
		}
		if s.ExternalCores > 0 && !s.programs {
			cores("client programs", s.ExternalCores)
		}
	}
	all := float64(h.Cores)
	if others, ok := h.others(s); ok {
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
