package analysis

import (
	"fmt"
	"math"

	"weir/internal/unit"
)

// othersWarn is the share of a machine's CPU, used by neither side's processes, from which on others count as users
// of it.
const othersWarn = 0.2

// mostOfCPU is the share from which on the headline says that others used it.
const mostOfCPU = 0.5

// Bounds of the check whether the machines were left to the test.
const (
	saturated     = 0.9  // share of a machine's CPU that is busy where more load must wait for it
	almostFull    = 0.8  // the same where some of it begins to wait
	contendedWarn = 0.1  // share of it that others used in such seconds, over the whole hold
	stealWarn     = 0.05 // share that other guests of the hypervisor took
)

// checkQuiet asks whether others took CPU from the test while load was held: programs that were not watched, in
// seconds in which the CPU of the machine was used up, or other guests of its hypervisor. What they use while cores
// are idle takes nothing from the test. It needs hosts of which all sides' processes were watched. What others used
// is what the cores did and the watched processes did not, or, if that is more, what the other processes themselves
// show: many kernels count time in interrupts as the time of the process that was interrupted as well, so that the
// difference is too small.
func checkQuiet(f *Findings) Check {
	c := Check{Name: "quiet machines", Status: Skipped}
	var contended, others, steal float64
	var where, whom, except string
	for s := range each(f.Curve) {
		spare := s.spare()
		for h := range each(s.Hosts) {
			share, ok := h.others(s)
			if !ok || h.simulated { // a simulated service sleeps where a real one computes: others take little from it
				continue
			}
			lost, stolen := h.lost(s), value(h.Steal)
			if lost > spare {
				lost, except = spare, " and the link was not full"
			}
			stolen = min(stolen, spare-lost)
			if c.Status == Skipped || lost+stolen > contended+steal {
				contended, steal, where, whom = lost, stolen, f.at(s), h.Host
			}
			others = max(others, share)
			c.Status = OK
		}
	}
	if c.Status == Skipped {
		return c.unchecked("no host was monitored together with the processes under test", "name the server's machine and its processes in hosts")
	}
	c.Detail = fmt.Sprintf("other programs used at most %s of the CPU, and %s while no core was idle%s; "+
		"other guests of the hypervisor used %s", unit.Percent(others), unit.Percent(contended), except, unit.Percent(steal))
	if contended > contendedWarn || steal > stealWarn {
		c.Detail += fmt.Sprintf(" (%s, %s)", whom, where)
		c.worsen(Warn, "with the whole CPU this step might give up to %s: stop the other programs, or repeat the test later",
			gain(1/(1-math.Min(contended+steal, 0.99))))
	}
	return c
}

// gain says in words how many times as much something is.
func gain(factor float64) string {
	switch {
	case factor < 2:
		return fmt.Sprintf("%.0f%% more", 100*(factor-1))
	case factor > 10:
		return "many times as much"
	}
	return fmt.Sprintf("%.1f times as much", factor)
}

// others returns the share of h's CPU that programs used which are no watched process; what threads of the kernel did, such as those of
// encrypted disks and of NFS servers, they mostly did for the service. ok is false where the processes of a side that h
// has were not watched. Of jobs that are programs these count among the clients' processes, as does a simulated service. A folder is
// served by the clients' own system calls and the kernel: every program beside them is another one, unless hosts name it.
func (h *HostFigure) others(s *Step) (share float64, ok bool) {
	serves, loads := h.Role == server || h.Role == "both", h.Role == client || h.Role == "both"
	unwatched := serves && h.ServerCores == nil && !h.simulated && (!h.local || !loads) || loads && h.ClientCores == nil
	if h.userSystem == nil || h.Cores == 0 || !serves && !loads || unwatched {
		return 0, false
	}
	programs := ratio(h.programs(s), float64(h.Cores))
	watched := ratio(value(h.ServerCores)+value(h.ClientCores), float64(h.Cores))
	return max(0, *h.userSystem-watched-programs-h.kernel, h.unwatched-programs), true
}

// programs returns the cores that external client programs kept busy, which are no watched processes.
func (h *HostFigure) programs(s *Step) float64 {
	if s.programs || h.Role != client && h.Role != "both" {
		return 0
	}
	return s.ExternalCores
}

// lost returns the share of h's CPU that others used while it was used up.
func (h *HostFigure) lost(s *Step) float64 {
	if h.Contended == nil {
		return 0
	}
	return max(0, *h.Contended-h.saturated*ratio(h.programs(s), float64(h.Cores)))
}
