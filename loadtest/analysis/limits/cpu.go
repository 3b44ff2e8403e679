package limits

import (
	"strings"

	"weir/internal/stats"
	"weir/loadtest/analysis/basics"
	"weir/loadtest/analysis/fact"
	"weir/loadtest/analysis/hosts"
	"weir/loadtest/analysis/steps"
)

// othersWarn is the share of a machine's CPU from which the processes of neither side count as its
// users.
const othersWarn = 0.2

// cpuUses returns the use of all cores together and of single cores.
func cpuUses(h *hosts.Host, s *steps.Working) []usage {
	if h.CPU == nil || h.Cores == 0 {
		return nil
	}
	v := h.Share(hosts.ResourceCPU, *h.CPU)
	u := use(hosts.ResourceCPU, h, v, fact.New("limit.use.cpu", "share", v.Mean, "used", v.Mean*float64(h.Cores), "cores", h.Cores,
		"users", strings.Join(fact.Texts(cpuUsers(h, s)), ", ")))
	u.foreign, u.own = basics.Value(h.Steal), *u.Share-basics.Value(h.Steal)
	others, known := h.Others(s.External())
	if known {
		u.foreign += others
		u.own = stats.Ratio(basics.Value(h.ServerCores)+basics.Value(h.ClientCores)+s.External(), float64(h.Cores)) + h.Kernel
	}
	all := []usage{u}
	if core, thread := coreUse(h, others*float64(h.Cores)); core.Resource != "" {
		// all cores are full; but a thread that has a core has all it can use, if others fill the
		// other cores
		if u.reached && (!thread || u.foreign < othersWarn || u.Side == "both") {
			core.reached = false
		}
		all = append(all, core)
	}
	return all
}

// leastCores is the number of cores from which a user of the CPU is listed.
const leastCores = 0.005

// cpuUsers lists the users of the CPU with the number of cores that each of them used.
func cpuUsers(h *hosts.Host, s *steps.Working) []fact.Fact {
	all := float64(h.Cores)
	others, _ := h.Others(s.External())
	external := 0.0
	if h.ClientCores != nil && !s.Programs {
		external = s.ExternalCores
	}
	kernel, interrupts, guests := h.Kernel*all, basics.Value(h.IRQ)*all, basics.Value(h.Steal)*all
	users := []struct {
		cores float64
		fact  fact.Fact
	}{
		{basics.Value(h.ServerCores), fact.New("limit.use.cpu.service", "cores", basics.Value(h.ServerCores))},
		{basics.Value(h.ClientCores), clientUse(h, s)},
		{external, fact.New("limit.use.cpu.external", "cores", external)},
		{others * all, fact.New("limit.use.cpu.others", "cores", others*all)},
		{kernel, fact.New("limit.use.cpu.kernel", "cores", kernel)},
		{interrupts, fact.New("limit.use.cpu.interrupts", "cores", interrupts)},
		{guests, fact.New("limit.use.cpu.guests", "cores", guests)},
	}
	var facts []fact.Fact
	for _, u := range users {
		if u.cores >= leastCores {
			facts = append(facts, u.fact)
		}
	}
	if len(facts) == 0 {
		return []fact.Fact{fact.New("limit.use.cpu.unwatched")}
	}
	return facts
}

// clientUse returns the clients' use of a CPU.
func clientUse(h *hosts.Host, s *steps.Working) fact.Fact {
	cores := basics.Value(h.ClientCores)
	switch {
	case s.Burned > 0:
		return fact.New("limit.use.cpu.jobs", "cores", cores, "burned", min(s.BurnedOn(h), cores))
	case s.Programs:
		return fact.New("limit.use.cpu.programs", "cores", cores)
	}
	return fact.New("limit.use.cpu.clients", "cores", cores)
}

// Numbers of cores too small to fill a core.
const (
	partOfCore  = 0.5  // of other programs, and of interrupts: with less they cannot fill a core
	threadTicks = 0.02 // possible deficit of a thread's CPU time in ticks, each second
)

// coreUse returns the largest of three uses: of the busiest measured thread, of the cores on which
// the service's processes may run, and of the busiest core, if no thread was measured or interrupts
// may fill it. foreign is the number of cores that other programs used. thread reports whether the
// result is a thread of the service, which can use at most one core wherever it runs. If the CPU
// time of threads is not known, the upper end of the interval is the most that a thread may have
// used.
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
		v, busiest, known := busiestThread(g, h.Cores)
		measured = measured && known
		if known {
			u := use(hosts.ResourceCore, h, v, busiest)
			u.Side = hosts.Server
			u.clear = u.clear && min(g.Cores.High(), g.Other.High()) < boundOf(hosts.ResourceCore).clear
			most = max(most, *u.High)
			take(u, true)
		} else {
			most = max(most, min(1, g.Cores.High()))
		}
		if g.Allowed > 0 && g.Allowed < h.Cores {
			u := use(hosts.ResourceCore, h, g.Cores.Times(1/float64(g.Allowed)), fact.New("limit.use.core.allowed", "group", g.Name,
				"processes", g.Processes, "threads", g.Threads, "used", g.Cores.Mean, "allowed", g.Allowed, "cores", h.Cores))
			u.Side = hosts.Server
			take(u, true)
		}
	}
	if h.MostUsedCore != nil && (!measured || basics.Value(h.IRQ)*float64(h.Cores) >= partOfCore) {
		v := h.Share(hosts.ResourceCore, *h.MostUsedCore)
		u := use(hosts.ResourceCore, h, v, fact.New("limit.use.core", "cores", h.Cores, "share", v.Mean, "all", *h.CPU))
		u.Side = h.CoreSide()
		u.reached = u.reached && foreign < partOfCore // otherwise other programs may fill it
		take(u, false)
	}
	if len(h.Groups) == 0 && h.Serves() { // not watched: one thread may use as much as all
		most = max(most, min(1, h.Share(hosts.ResourceCPU, *h.CPU).High()*float64(h.Cores)))
	}
	limit := boundOf(hosts.ResourceCore).clear
	switch {
	case best.Share == nil && most < limit:
		return best, false
	case best.Share == nil:
		best = amount(hosts.ResourceCore, h, fact.New("limit.use.core.unknown"))
	case most > *best.High:
		best.addFact("limit.use.core.partly")
		best.High = &most
	}
	best.clear = best.clear && most < limit
	return best, thread
}

// busiestThread returns the share of a core that the busiest thread of a group used: the measured
// share, or the share of each process if all processes have a single thread. In the second case it
// leaves out one process that may only direct the others, unless that process evidently works.
// known is false if the share cannot be determined.
func busiestThread(g *hosts.GroupFigure, cores int) (v hosts.Ranged, use fact.Fact, known bool) {
	switch {
	case g.Measured > 0:
		v = hosts.Ranged{Mean: g.Busiest.Mean, Half: max(g.Busiest.Half, threadTicks)}
		return v, fact.New("limit.use.core.thread", "group", g.Name, "processes", g.Processes, "threads", g.Threads, "used", v.Mean,
			"cores", cores), true
	case g.Processes > 0 && g.Threads == g.Processes:
		n := max(1, g.Processes-1)
		if g.Cores.Mean > float64(n)+threadTicks {
			n = g.Processes
		}
		v = g.Cores.Times(1 / float64(n))
		return v, fact.New("limit.use.core.processes", "processes", n, "group", g.Name, "used", v.Mean, "cores", cores), true
	}
	return hosts.Ranged{}, fact.Fact{}, false
}
