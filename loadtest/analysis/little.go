package analysis

import (
	"fmt"
	"math"
	"slices"

	"weir/loadtest/scenario"
	"weir/loadtest/workload"
)

// Bounds of the check by Little's law.
const (
	littleWarn   = 0.05
	littleFail   = 0.15
	leastCycles  = 20 // operations a client that pauses: fewer, and the pauses cut at the edges of the measurement weigh too much
	littleEnough = 1e-9
)

// little returns the share of the clients' time that recorded operations and pauses explain: N = X*(R+Z) with N the
// mean number of active clients, X*R the operations in progress (and sessions being closed after them) and X*Z the
// clients in pauses, which end late on a busy machine: how late is recorded, and the generator's check judges it.
// It is nil where that says nothing: in the open model, with few pauses a client, and in runs of versions that did
// not record the time of operations that a measurement cuts.
//
// Pauses, and the computing of jobs, count whole where they begin and end: in a steady state what the start of the
// measurement cuts and what its end cuts cancel but for about one part in the operations a client.
func (d *data) little(s *Step) *float64 {
	if d.plan.Model == scenario.OpenModel || s.ActiveClients < littleEnough {
		return nil
	}
	pauses := s.thinkSeconds + s.Paused + s.RetryAfter + s.closingSeconds
	if s.Jobs != nil && !s.oneByOne {
		return part(s.RunningJobs*s.Duration+pauses, s.Duration*s.ActiveClients)
	}
	cycles := ratio(float64(s.Done+s.Errors), s.ActiveClients)
	if s.busySeconds == 0 || s.thinkSeconds+s.computeSeconds > 0 && cycles < leastCycles {
		return nil
	}
	sum := s.busySeconds + pauses + s.computeSeconds
	if s.Jobs == nil {
		sum += s.lateSeconds
	}
	return part(sum, s.Duration*s.ActiveClients)
}

// inRequests reports whether a job's time is the sum of what its requests took and what it computed. It is not where it
// asks for the next events while it computes, reads from a copy, burns a CPU that it may have to share, or is a
// program: of these jobs as a whole are held against the clients' time.
func (d *data) inRequests() bool {
	j := d.plan.Work.Job
	return d.plan.Work.Kind == workload.JobWork && j != nil && j.Access != "staged" && j.Ahead == 0 && !j.Burn
}

// judgeLittle says how far off a step is, and why.
func judgeLittle(s *Step) (status, why string) {
	off := math.Abs(*s.Little - 1)
	if off <= littleWarn {
		return OK, ""
	}
	switch {
	case *s.Little > 1:
		why = "that is more time than the clients had: operations overlapped, or a clock is wrong"
	case s.Jobs == nil:
		why = "clients spent the rest neither in an operation nor in a pause: the load generator delayed them"
	case s.oneByOne:
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
func (d *data) checkLittle(f *Findings) Check {
	c := Check{Name: "Little's law", Status: OK}
	if d.plan.Model == scenario.OpenModel {
		return c.skip("the open model has no fixed number of clients")
	}
	if d.transfers != nil {
		return c.skip("a client is a transfer that runs")
	}
	if len(f.Curve) == 0 {
		return c.skip("no step counts")
	}
	if !slices.ContainsFunc(f.Curve, func(s Step) bool { return s.Jobs != nil || s.busySeconds > 0 || s.Done == 0 }) {
		return c.unchecked("this version of weir did not record how long clients were in operations", "measure again")
	}
	judged, worst, why := 0, -1, ""
	for i := range f.Curve {
		s := &f.Curve[i]
		if s.Little == nil {
			continue
		}
		judged++
		status, reason := judgeLittle(s)
		graver := worse(c.Status, status) != c.Status
		if worst < 0 || graver || status == c.Status && math.Abs(*s.Little-1) > math.Abs(*f.Curve[worst].Little-1) {
			c.Status, worst, why = status, i, reason
		}
	}
	if judged == 0 {
		return c.unchecked(fmt.Sprintf("no step has %d operations per client", leastCycles), "measure longer (load.duration)")
	}
	c.Detail = fmt.Sprintf("N = X(R+Z) in %d of %d steps%s: %s explain %.1f%% of the time of the clients in the worst step (%s)", judged,
		len(f.Curve), unjudged(len(f.Curve)-judged), explained(&f.Curve[worst]), 100**f.Curve[worst].Little, f.at(&f.Curve[worst]))
	if why != "" {
		c.Detail += ": " + why
	}
	return c
}

// explained names what is held against the clients' time.
func explained(s *Step) string {
	switch {
	case s.Jobs == nil:
		return "recorded times"
	case s.oneByOne:
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
