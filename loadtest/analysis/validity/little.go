package validity

import (
	"fmt"
	"math"
	"slices"

	"weir/loadtest/analysis/steps"
	"weir/loadtest/scenario"
)

// Bounds of the check by Little's law.
const (
	littleWarn = 0.05
	littleFail = 0.15
)

// judgeLittle says how far off a step is, and why.
func judgeLittle(s *steps.Working) (status, why string) {
	off := math.Abs(*s.Little - 1)
	if off <= littleWarn {
		return OK, ""
	}
	switch {
	case *s.Little > 1:
		why = "that is more time than the clients had: operations overlapped, or a clock is wrong"
	case s.Jobs == nil:
		why = "clients spent the rest neither in an operation nor in a pause: the load generator delayed them"
	case s.OneByOne:
		why = "clients spent the rest neither in an operation, nor computing, nor in a pause: the load generator delayed them"
	default:
		why = "clients spent the rest neither in a job nor in a pause: the load generator delayed them"
	}
	if off > littleFail {
		return Fail, why
	}
	return Warn, why
}

// checkLittle compares the clients that were active with those that the recorded times need. It catches lost clients,
// stalls of the generator between operations, hidden retries and wrong clocks.
func (d *Evidence) checkLittle(curve *steps.Curve) Check {
	c := Check{Name: "Little's law", Status: OK}
	if d.Run.Plan.Model == scenario.OpenModel {
		return c.Skip("the open model has no fixed number of clients")
	}
	if d.Run.Record {
		return c.Skip("a client is a transfer that runs")
	}
	if len(curve.Steps) == 0 {
		return c.Skip("no step counts")
	}
	if !slices.ContainsFunc(curve.Steps, func(s *steps.Working) bool { return s.Jobs != nil || s.BusySeconds > 0 || s.Done == 0 }) {
		return c.unchecked("this version of weir did not record how long clients were in operations", "measure again")
	}
	judged, worst, why := 0, -1, ""
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
		return c.unchecked(fmt.Sprintf("no step has %d operations per client", steps.LeastCycles), "measure longer (load.duration)")
	}
	c.Detail = fmt.Sprintf("N = X(R+Z) in %d of %d steps%s: %s explain %.1f%% of the time of the clients in the worst step (%s)", judged,
		len(curve.Steps), unjudged(len(curve.Steps)-judged), explained(curve.Steps[worst]), 100**curve.Steps[worst].Little,
		curve.At(curve.Steps[worst]))
	if why != "" {
		c.Detail += ": " + why
	}
	return c
}

// explained names what is held against the clients' time.
func explained(s *steps.Working) string {
	switch {
	case s.Jobs == nil:
		return "recorded times"
	case s.OneByOne:
		return "requests, computing and pauses"
	}
	return "jobs and pauses"
}

// unjudged says why not all steps were.
func unjudged(n int) string {
	if n == 0 {
		return ""
	}
	return fmt.Sprintf(" (%d have too few operations)", n)
}
