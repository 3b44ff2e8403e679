package analysis

import (
	"fmt"
	"math"
)

// Bounds of the check by Little's law.
const (
	littleWarn   = 0.05
	littleFail   = 0.15
	leastCycles  = 20   // operations a client: fewer, and those cut at the edges of the hold weigh too much
	mostUntimed  = 0.01 // errors of all operations: the time that failed ones take is not recorded
	littleEnough = 1e-9
)

// little returns the share of the clients' time that the recorded operations
// and pauses explain: N = X*(R+Z) with N the mean number of active clients, X*R
// the operations in progress (latencies summed over the hold time) and X*Z the
// clients in pauses. It is nil where that says nothing: in the open model, with
// few operations a client, and where failed operations take unrecorded time.
//
// The latencies are summed rather than averaged, so it does not matter how
// many operations a task has. Operations cut by the start of the hold count
// whole, those cut by its end not at all: in a steady state the two cancel but
// for about one part in the operations a client.
func (d *data) little(s *Step) *float64 {
	cycles := ratio(float64(s.Done+s.Errors), s.ActiveClients)
	if d.plan.Model == "open" || s.ActiveClients < littleEnough || cycles < leastCycles || s.ErrorRatio > mostUntimed {
		return nil
	}
	share := ratio(s.latencySeconds+s.thinkSeconds, s.Hold*s.ActiveClients)
	return &share
}

// checkLittle compares the clients that were active with those that the
// recorded times need. It catches lost clients, stalls of the generator between
// operations, hidden retries and wrong clocks.
func (d *data) checkLittle(f *Findings) Check {
	c := Check{Name: "Little's law", Status: OK}
	if d.plan.Model == "open" {
		c.Status, c.Detail = Skipped, "the open model has no fixed number of clients"
		return c
	}
	judged, worst := 0, -1
	for i := range f.Curve {
		if f.Curve[i].Little == nil {
			continue
		}
		judged++
		if worst < 0 || math.Abs(*f.Curve[i].Little-1) > math.Abs(*f.Curve[worst].Little-1) {
			worst = i
		}
	}
	if judged == 0 {
		c.Status, c.Detail = Skipped, fmt.Sprintf("no step has %d operations a client with at most %.0f%% errors", leastCycles, 100*mostUntimed)
		return c
	}
	share := *f.Curve[worst].Little
	c.Detail = fmt.Sprintf("N = X(R+Z) in %d of %d steps: recorded times explain %.1f%% of the clients' time at worst (%s)", judged, len(f.Curve), 100*share, f.at(&f.Curve[worst]))
	off := math.Abs(share - 1)
	if off > littleWarn {
		c.Status = Warn
	}
	if off > littleFail {
		c.Status = Fail
	}
	switch {
	case c.Status != OK && share < 1:
		c.Detail += ": clients spent the rest neither in an operation nor in a pause, so the generator held them up"
	case c.Status != OK:
		c.Detail += ": more time than the clients had, so operations overlapped or a clock is wrong"
	}
	return c
}
