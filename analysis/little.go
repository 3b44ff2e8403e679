package analysis

import (
	"fmt"
	"math"
	"time"

	"weir/measure"
	"weir/scenario"
	"weir/storage"
	"weir/workload"
)

// Bounds of the check by Little's law.
const (
	littleWarn   = 0.05
	littleFail   = 0.15
	leastCycles  = 20   // operations a client: fewer, and those cut at the edges of the hold weigh too much
	mostUntimed  = 0.01 // errors of all operations: the time that failed ones take is not recorded
	littleEnough = 1e-9
)

// little returns the share of the clients' time that the recorded operations and pauses explain: N = X*(R+Z) with N
// the mean number of active clients, X*R the operations in progress (latencies summed over the measurement time, and closing
// sessions after them) and X*Z the clients in pauses, which end late on a busy machine: how late is recorded, and the
// generator's check judges it. It is nil where that says nothing: in the open model, with few operations a client,
// and, in runs that do not record the time of failed operations, where more than a few failed.
//
// The latencies are summed rather than averaged, so it does not matter how many operations a task has. Operations cut
// by the start of the hold count whole, those cut by its end not at all: in a steady state the two cancel but for
// about one part in the operations a client.
func (d *data) little(s *Step) *float64 {
	if s.Jobs != nil && d.plan.Model != scenario.OpenModel && s.ActiveClients >= littleEnough && !s.oneByOne {
		return part(s.RunningJobs*s.Duration+s.thinkSeconds+s.Paused+s.closingSeconds, s.Duration*s.ActiveClients)
	}
	cycles := ratio(float64(s.Done+s.Errors), s.ActiveClients)
	if d.plan.Model == scenario.OpenModel || s.ActiveClients < littleEnough || cycles < leastCycles || s.ErrorRatio > mostUntimed &&
		s.failedSeconds == 0 {
		return nil
	}
	failed := s.failedSeconds
	if failed == 0 && s.Jobs != nil { // runs of weir before it recorded the time of failed operations
		failed = float64(s.ErrorsBy[storage.Timeout]) * time.Duration(d.plan.Work.Timeout).Seconds()
	}
	sum := s.latencySeconds + failed + s.thinkSeconds + s.Paused + s.computeSeconds + s.closingSeconds
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

// uncertainty returns what part of the clients' time the hold could have more, or less, of than is recorded, for reasons
// that are known: an operation that the start of the hold cut counts whole, so there may be too much by the longest
// one of each client; and one that failed counts nothing, nor does the one that a client was at when the hold ended,
// so if any failed there may be too little by the time limit of each.
func (d *data) uncertainty(s *Step) (more, less float64) {
	if s.Latency != nil {
		more = ratio(s.Latency.Max, s.Duration)
	}
	if s.Errors > 0 {
		limit := time.Duration(d.plan.Work.Timeout).Seconds()
		untimed := s.ActiveClients // those that the end of the hold cut
		if s.failedSeconds == 0 {
			untimed += float64(s.Errors)
		}
		less = ratio(untimed*limit, s.Duration*s.ActiveClients)
	}
	return more, less
}

// unfinished returns the share of the clients' time in s that they then spent in operations which the end of the
// measurement had cut. In a steady state an operation that is cut has lasted as long, on average, as it still lasts.
func (d *data) unfinished(s *Step) float64 {
	sum := 0.0
	for i := range d.seconds {
		if x := &d.seconds[i]; x.step == s.Step && x.phase == measure.GracefulStop {
			sum += x.clients * x.seconds
		}
	}
	return ratio(sum, s.Duration*s.ActiveClients)
}

// judgeLittle says how far off a step is, and why where that is known.
func (d *data) judgeLittle(s *Step) (status, why string) {
	off := math.Abs(*s.Little - 1)
	more, less := d.uncertainty(s)
	switch {
	case off <= littleWarn:
		return OK, ""
	case *s.Little > 1 && off <= more: // as it must be, which says nothing
		return OK, fmt.Sprintf("the recorded times exceed the time of the clients: operations of up to %.3g s began before the measurement, "+
			"which is short in comparison", s.Latency.Max)
	case *s.Little < 1 && off <= littleWarn+d.unfinished(s):
		return OK, "operations were cut by the end of the measurement, which is short in comparison; recorded times are those of others"
	case *s.Little < 1 && off <= less:
		return Warn, fmt.Sprintf("the rest may be the time of %d failed operations, up to %s each", s.Errors, d.plan.Work.Timeout)
	case s.Jobs != nil && !s.oneByOne:
		why = "clients spent the rest neither in a job nor in a pause: the load generator delayed them"
	case *s.Little > 1:
		why = "that is more time than the clients had: operations overlapped, or a clock is wrong"
	default:
		why = "clients spent the rest neither in an operation" + map[bool]string{true: ", nor computing,"}[s.Jobs != nil] +
			" nor in a pause: the load generator delayed them"
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
	if len(f.Curve) == 0 {
		return c.skip("no step counts")
	}
	judged, worst, why := 0, -1, ""
	for i := range f.Curve {
		s := &f.Curve[i]
		if s.Little == nil {
			continue
		}
		judged++
		status, reason := d.judgeLittle(s)
		graver := worse(c.Status, status) != c.Status
		if worst < 0 || graver || status == c.Status && math.Abs(*s.Little-1) > math.Abs(*f.Curve[worst].Little-1) {
			c.Status, worst, why = status, i, reason
		}
	}
	if judged == 0 {
		return c.unchecked(fmt.Sprintf("no step has %d operations per client with at most %.0f%% errors", leastCycles, 100*mostUntimed),
			"measure longer (load.duration)")
	}
	c.Detail = fmt.Sprintf("N = X(R+Z) in %d of %d steps%s: %s explain %.1f%% of the time of the clients in the worst step (%s)", judged,
		len(f.Curve), unjudged(len(f.Curve)-judged), explained(&f.Curve[worst]), 100**f.Curve[worst].Little, f.at(&f.Curve[worst]))
	switch {
	case why != "" && c.Status != OK:
		c.Detail += ": " + why
	case why != "":
		c.note(fmt.Sprintf("whether clients lost time at %s: %s", f.at(&f.Curve[worst]), why), "measure longer (load.duration)")
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
	return fmt.Sprintf(" (%d have too few operations or too many errors)", n)
}
