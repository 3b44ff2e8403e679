package validity

import (
	"math"
	"slices"

	"weir/loadtest/analysis/fact"
	"weir/loadtest/analysis/steps"
	"weir/loadtest/scenario"
)

// Bounds of the check by Little's law.
const (
	littleWarn = 0.05
	littleFail = 0.15
)

// judgeLittle returns the state of a step by its deviation from Little's law, and the reason.
func judgeLittle(s *steps.Working) (status string, why []fact.Fact) {
	off := math.Abs(*s.Little - 1)
	if off <= littleWarn {
		return OK, nil
	}
	switch {
	case *s.Little > 1:
		why = append(why, fact.New("check.little.overlapping"))
	case s.Jobs == nil:
		why = append(why, fact.New("check.little.delayed_operations"))
	case s.OneByOne:
		why = append(why, fact.New("check.little.delayed_computing"))
	default:
		why = append(why, fact.New("check.little.delayed_jobs"))
	}
	if off > littleFail {
		return Fail, why
	}
	return Warn, why
}

// checkLittle compares the number of active clients with the number that the recorded times
// require. It detects lost clients, stalls of the generator between operations, hidden retries and
// wrong clocks.
func (d *Evidence) checkLittle(curve *steps.Curve) Check {
	c := Check{Name: "Little's law", Status: OK}
	if d.Run.Plan.Model == scenario.OpenModel {
		return c.Skip(fact.New("check.little.open_model"))
	}
	if d.Run.Record {
		return c.Skip(fact.New("check.little.record"))
	}
	if len(curve.Steps) == 0 {
		return c.Skip(fact.New("check.little.no_step"))
	}
	if !slices.ContainsFunc(curve.Steps, func(s *steps.Working) bool { return s.Jobs != nil || s.BusySeconds > 0 || s.Done == 0 }) {
		return c.unchecked(fact.New("check.little.not_recorded"), fact.New("remedy.measure_again"))
	}
	judged, worst, why := 0, -1, []fact.Fact(nil)
	for i := range curve.Steps {
		s := curve.Steps[i]
		if s.Little == nil {
			continue
		}
		judged++
		status, reason := judgeLittle(s)
		graver := worse(c.Status, status) != c.Status
		if worst < 0 || graver || status == c.Status && math.Abs(*s.Little-1) > math.Abs(*curve.Steps[worst].Little-1) {
			c.Status, worst, why = status, i, reason
		}
	}
	if judged == 0 {
		return c.unchecked(fact.New("check.little.few_operations", "least", steps.LeastCycles), fact.New("remedy.measure_longer"))
	}
	c.explain(curve, curve.Steps[worst], judged)
	if n := len(curve.Steps) - judged; n > 0 {
		c.addFact("check.little.unjudged", "steps", n)
	}
	c.Add(why...)
	return c
}

// explain adds the explained share of the clients' time in the worst step.
func (c *Check) explain(curve *steps.Curve, worst *steps.Working, judged int) {
	n, share, at := len(curve.Steps), *worst.Little, curve.At(worst)
	switch {
	case worst.Jobs == nil:
		c.addFact("check.little.operations", "judged", judged, "steps", n, "share", share, "load", at)
	case worst.OneByOne:
		c.addFact("check.little.computing", "judged", judged, "steps", n, "share", share, "load", at)
	default:
		c.addFact("check.little.jobs", "judged", judged, "steps", n, "share", share, "load", at)
	}
}
