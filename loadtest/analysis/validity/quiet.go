package validity

import (
	"math"

	"weir/loadtest/analysis/basics"
	"weir/loadtest/analysis/fact"
	"weir/loadtest/analysis/steps"
)

// Bounds of the check whether only the test used the machines.
const (
	contendedWarn = 0.1  // share of a machine's CPU that others used while it was used up, over the whole hold
	stealWarn     = 0.05 // share that other guests of the hypervisor took
)

// checkQuiet checks whether others took CPU from the test while load was held: programs that were
// not watched, in seconds in which the CPU of the machine was used up, or other guests of its
// hypervisor. Programs that use idle cores take nothing from the test. The check needs hosts on
// which the processes of all sides were watched. The CPU of others is the use of the cores minus
// the use of the watched processes, or, if it is more, the measured use of the other processes:
// many kernels also charge the time of interrupts to the interrupted process, so that the
// difference is too small.
func checkQuiet(curve *steps.Curve) Check {
	return checkOthers(curve, func(s *steps.Working, host string, lost float64) (most, effect fact.Fact) {
		return fact.New("check.quiet.most", "host", host, "load", curve.At(s)), gain(1 / (1 - math.Min(lost, 0.99)))
	})
}

// checkOthers is checkQuiet. worst returns the facts on the step and the host of which others took
// the largest share, and on its effect.
func checkOthers(curve *steps.Curve, worst func(s *steps.Working, host string, lost float64) (most, effect fact.Fact)) Check {
	c := Check{Name: "quiet machines", Status: Skipped}
	var contended, others, steal float64
	var where *steps.Working
	whom := ""
	linkFull := true
	for _, s := range curve.Steps {
		spare := s.Spare()
		for h := range basics.Each(s.Machines) {
			share, ok := h.Others(s.External())
			if !ok || h.Simulated { // a simulated service sleeps where a real service computes: others take little
				continue
			}
			lost, stolen := h.Lost(s.External()), basics.Value(h.Steal)
			if lost > spare {
				lost, linkFull = spare, false
			}
			stolen = min(stolen, spare-lost)
			if c.Status == Skipped || lost+stolen > contended+steal {
				contended, steal, where, whom = lost, stolen, s, h.Host
			}
			others = max(others, share)
			c.Status = OK
		}
	}
	if c.Status == Skipped {
		return c.unchecked(fact.New("check.quiet.unwatched"), fact.New("remedy.watch_both"))
	}
	if linkFull {
		c.addFact("check.quiet.other_programs", "used", others, "contended", contended, "stolen", steal)
	} else {
		c.addFact("check.quiet.other_programs_link", "used", others, "contended", contended, "stolen", steal)
	}
	if contended > contendedWarn || steal > stealWarn {
		most, effect := worst(where, whom, contended+steal)
		c.Add(most)
		c.worsen(Warn, effect)
	}
	return c
}

// gain returns the effect of a lack of CPU: the factor by which the yield of the step might grow.
func gain(factor float64) fact.Fact {
	switch {
	case factor < 2:
		return fact.New("effect.cpu_lacked", "share", math.Round(100*(factor-1))/100)
	case factor > 10:
		return fact.New("effect.cpu_lacked_much")
	}
	return fact.New("effect.cpu_lacked_times", "factor", factor)
}
