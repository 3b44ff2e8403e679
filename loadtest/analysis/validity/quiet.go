package validity

import (
	"fmt"
	"math"

	"weir/internal/unit"
	"weir/loadtest/analysis/basics"
	"weir/loadtest/analysis/steps"
)

// Bounds of the check whether the machines were left to the test.
const (
	contendedWarn = 0.1  // share of a machine's CPU that others used while it was used up, over the whole hold
	stealWarn     = 0.05 // share that other guests of the hypervisor took
)

// checkQuiet asks whether others took CPU from the test while load was held: programs that were not watched, in
// seconds in which the CPU of the machine was used up, or other guests of its hypervisor. What they use while cores
// are idle takes nothing from the test. It needs hosts of which all sides' processes were watched. What others used
// is what the cores did and the watched processes did not, or, if that is more, what the other processes themselves
// show: many kernels count time in interrupts as the time of the process that was interrupted as well, so that the
// difference is too small.
func checkQuiet(curve *steps.Curve) Check {
	c := Check{Name: "quiet machines", Status: Skipped}
	var contended, others, steal float64
	var where, whom, except string
	for _, s := range curve.Steps {
		spare := s.Spare()
		for h := range basics.Each(s.Machines) {
			share, ok := h.Others(s.External())
			if !ok || h.Simulated { // a simulated service sleeps where a real one computes: others take little from it
				continue
			}
			lost, stolen := h.Lost(s.External()), basics.Value(h.Steal)
			if lost > spare {
				lost, except = spare, " and the link was not full"
			}
			stolen = min(stolen, spare-lost)
			if c.Status == Skipped || lost+stolen > contended+steal {
				contended, steal, where, whom = lost, stolen, curve.At(s), h.Host
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
