package validity

import (
	"weir/loadtest/analysis/basics"
	"weir/loadtest/analysis/fact"
	"weir/loadtest/analysis/limits"
	"weir/loadtest/analysis/steps"
)

// checkGenerator checks whether the load generator had capacity left. Steps beyond the best step
// can only warn: the result does not need their load.
func (d *Evidence) checkGenerator(curve *steps.Curve, best int) Check {
	c := Check{Name: "generator", Status: Skipped}
	var limited []fact.Fact
	var topCPU, topLate, burned float64
	seen, eachJob := false, false
	for _, s := range curve.Steps {
		state, reasons := limits.JudgeGenerator(s)
		status := map[limits.GeneratorState]string{limits.GeneratorUnknown: Skipped, limits.GeneratorFree: OK,
			limits.GeneratorNear: Warn, limits.GeneratorFull: Fail}[state]
		if status == Skipped {
			continue
		}
		seen = true
		if best >= 0 && curve.LoadOf(s) > curve.LoadOf(curve.Steps[best]) && status == Fail {
			status = Warn
		}
		c.Status = worse(c.Status, status)
		if status != OK {
			limited = append(limited, fact.New("check.generator.limit", "load", curve.At(s), "reasons", fact.List(reasons)))
		}
		topCPU, burned = max(topCPU, s.OwnCPU()), max(burned, s.Burned)
		eachJob = eachJob || s.EachJob
		if s.TimedStarts*limits.Timed >= s.Done && s.Burned == 0 {
			topLate = max(topLate, basics.Value(s.LateP99))
		}
	}
	if !seen {
		if len(curve.Steps) > 0 && curve.Steps[0].Programs {
			return c.unchecked(fact.New("check.generator.programs"))
		}
		return c.unchecked(fact.New("check.generator.unwatched"), fact.New("remedy.watch_clients"))
	}
	c.addFact("check.generator.cpu", "share", topCPU)
	if burned > 0 {
		c.addFact("check.generator.burned", "cores", burned)
	}
	for h := range basics.Each(curve.Steps[max(0, best)].Hosts) {
		if h.Quota > 0 && h.Quota < float64(h.Cores) {
			c.addFact("check.generator.quota", "group", h.QuotaGroup, "allowed", h.Quota, "cores", h.Cores)
		}
	}
	switch {
	case topLate > 0 && eachJob:
		c.addFact("check.generator.late_computing", "seconds", topLate)
	case topLate > 0:
		c.addFact("check.generator.late_starts", "seconds", topLate)
	}
	d.ranOut(&c)
	c.AddSome(limited)
	return c
}

// ranOut fails the check if operations failed because the machine of the generator had no ports or files left.
func (d *Evidence) ranOut(c *Check) {
	for i := range d.Outages {
		if what := d.Outages[i].Exhausted; what != "" {
			c.worsen(Fail, fact.New("effect.ran_out", "resource", what))
			break
		}
	}
}
