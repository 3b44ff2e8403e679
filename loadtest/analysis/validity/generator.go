package validity

import (
	"fmt"
	"strings"

	"weir/internal/unit"
	"weir/loadtest/analysis/basics"
	"weir/loadtest/analysis/limits"
	"weir/loadtest/analysis/steps"
)

// checkGenerator asks whether the load generator had room left. Steps beyond the best one can only warn: their load
// was more than any result needs.
func (d *Evidence) checkGenerator(curve *steps.Curve, best int) Check {
	c := Check{Name: "generator", Status: Skipped}
	var notes []string
	var topCPU, topLate, burned float64
	what := "starts were"
	seen := false
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
			notes = append(notes, curve.At(s)+": "+strings.Join(reasons, ", "))
		}
		topCPU, burned = max(topCPU, s.OwnCPU()), max(burned, s.Burned)
		if s.EachJob {
			what = "computing ended"
		}
		if s.TimedStarts*limits.Timed >= s.Done && s.Burned == 0 {
			topLate = max(topLate, basics.Value(s.LateP99))
		}
	}
	if !seen {
		why, remedy := "its CPU was not monitored, and it had no planned start times", "name the clients' machines in hosts"
		if len(curve.Steps) > 0 && curve.Steps[0].Programs {
			why, remedy = "its CPU time cannot be separated from that of the programs it starts, and it had no planned start times", ""
		}
		return c.unchecked(why, remedy)
	}
	c.Detail = fmt.Sprintf("it used at most %s of the CPU of its machine", unit.Percent(topCPU))
	if burned > 0 {
		c.Detail += fmt.Sprintf(", in addition to at most %s cores that its jobs burned on purpose", unit.Significant(burned))
	}
	for h := range basics.Each(curve.Steps[max(0, best)].Hosts) {
		if h.Quota > 0 && h.Quota < float64(h.Cores) {
			c.Detail += fmt.Sprintf("; control group %s allows it %.3g of %d cores", h.QuotaGroup, h.Quota, h.Cores)
		}
	}
	if topLate > 0 {
		c.Detail += fmt.Sprintf("; %s late by at most %s (p99)", what, unit.Seconds(topLate))
	}
	d.ranOut(&c)
	if len(notes) > 0 {
		c.Detail += "; it may have been the limit: " + strings.Join(basics.Head(notes, 3), "; ")
	}
	return c
}

// ranOut fails the check if operations failed because the machine of the generator had no ports or files left.
func (d *Evidence) ranOut(c *Check) {
	for i := range d.Outages {
		if what := limits.RanOut(d.Outages[i].Error); what != "" {
			c.worsen(Fail, "operations failed because it had no %s left: use more machines, or several addresses on them", what)
			break
		}
	}
}
