package analysis

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"weir/internal/say"
	"weir/internal/unit"
	"weir/link"
	"weir/loadtest/analysis/shape"
	"weir/loadtest/measure"
	"weir/loadtest/workload"
	"weir/storage"
)

// Bounds of outages.
const (
	leastOutage      = 1.0  // s without a success
	leastExpected    = 20.0 // successes that the rate of the other seconds promises in that time: by chance none of them happens once in 10^8
	fewestExpected   = 5.0  // the same where operations failed in that time
	leastCyclesAway  = 3.0  // cycles of one client (operation and pause): clients may all wait for the same slow answer
	repeatedStalls   = 3    // so many stalls without failures that last alike are how the service works, and exclude no step
	longestBurst     = 1.5  // s from burst to burst: a service that is stopped is away for longer
	burstShare       = 0.25 // of the seconds in which operations ended, between the first and the last of each: less of it is bursts
	leastBursts      = 3    // seconds to judge by
	outageShare      = 0.01 // of a step's measurement time: a step that lost more does not count
	leastFlow        = 0.05 // of a step's mean flow of payload: less of it, and no operation that ended, is what buffers still held
	leastWrong       = 5    // wrong payloads: fewer say little of all
	generatorStalled = 1.5  // s that an interval lasts which should last 1 s at most
)

// Values of Outage.Kind.
const (
	OutageFailed    = "failed"    // operations failed, none succeeded
	OutageStalled   = "stalled"   // operations waited, none failed and none succeeded
	OutageGenerator = "generator" // the load generator itself did not run, or had no ports or files left
)

// An Outage is a time in which clients tried and no operation succeeded.
type Outage struct {
	Kind    string        `json:"kind"` // OutageFailed, OutageStalled or OutageGenerator
	Step    int           `json:"step"` // in which it began
	From    time.Time     `json:"from"` // the last success before it
	To      time.Time     `json:"to"`   // the first success after it, or the end of the load
	Seconds float64       `json:"seconds"`
	Class   storage.Class `json:"class,omitzero"` // of most failures
	Error   string        `json:"error,omitempty"`
	Failed  int64         `json:"failed"` // operations that failed in the seconds that it touches
	Ended   bool          `json:"ended"`  // a success followed

	lost bool // no success followed in the whole run: the service was lost
}

// availability finds the outages of the run and excludes the steps that they touch, and those in which nearly all
// operations failed, from the curve.
func (d *data) availability(f *Findings) {
	f.Outages = []Outage{}
	if d.transfers == nil {
		f.Outages = append(f.Outages, d.withoutBursts(f, d.outages())...)
	}
	planned := d.plannedOutages()
	for s := range each(f.Curve) {
		var reason string
		for o := range each(f.Outages) {
			lost := d.heldWithin(s.Step, o.From, o.To)
			s.Unavailable += lost
			recurring := o.Kind == OutageStalled && f.stallsLike(o) >= repeatedStalls || planned
			if lost > outageShare*s.Duration && !recurring && reason == "" || lost > 0 && o.lost && !planned {
				reason = o.text()
			}
		}
		if wrong := s.BadBy()[storage.Checksummed]; reason == "" && wrong >= leastWrong &&
			float64(wrong) >= shape.MostErrors*float64(wrong+s.Verified) {
			reason = fmt.Sprintf("%d of %d checked payloads were wrong", wrong, wrong+s.Verified)
		}
		if reason == "" && !planned && s.Done+s.Errors > 0 && s.ErrorRatio >= shape.MostErrors {
			reason = fmt.Sprintf("%s of its operations failed (%s)", unit.Percent(s.ErrorRatio), classes(s.BadBy()))
		}
		s.Excluded = reason
	}
}

// stallsLike counts the stalls without failures that last at least half as long as o.
func (f *Findings) stallsLike(o *Outage) (n int) {
	for other := range each(f.Outages) {
		if other.Kind == OutageStalled && other.Seconds >= o.Seconds/2 {
			n++
		}
	}
	return n
}

// withoutBursts leaves out the stalls of steps in which the service works in bursts, as one does that grants bytes
// anew each second, and has the steps say so.
func (d *data) withoutBursts(f *Findings, all []Outage) []Outage {
	return slices.DeleteFunc(all, func(o Outage) bool {
		i := f.indexOf(o.Step)
		if o.Kind != OutageStalled || o.Seconds > longestBurst || i < 0 || !d.steps[o.Step].inBursts() {
			return false
		}
		f.Curve[i].burst = max(f.Curve[i].burst, o.Seconds)
		return true
	})
}

// inBursts reports whether operations ended in a small part of each second only, so many that by chance they would be
// spread over it.
func (t *total) inBursts() bool {
	n, active, seconds := 0, 0.0, 0.0
	for s := range each(t.seconds) {
		if s.done >= leastExpected && !s.lastDone.IsZero() {
			n, active, seconds = n+1, active+s.lastDone.Sub(s.firstDone).Seconds(), seconds+s.seconds
		}
	}
	return n >= leastBursts && active < burstShare*seconds
}

// plannedOutages reports whether the plan itself cuts a link: what comes of that is what the run is to show.
func (d *data) plannedOutages() bool {
	return slices.ContainsFunc(d.plan.Links, func(l link.Named) bool { return len(l.Spec.Outages) > 0 })
}

// heldWithin returns how many seconds of a step's measurement time lie between from and to.
func (d *data) heldWithin(step int, from, to time.Time) (sum float64) {
	for x := range each(d.steps[step].seconds) {
		sum += secondsShared(x.start, x.end(), from, to)
	}
	return sum
}

// A pace sums what a step, or the run, got done.
type pace struct{ done, moved, clientSeconds, seconds float64 }

func (p *pace) add(s *second) {
	p.done, p.moved = p.done+float64(s.done), p.moved+float64(s.moved)
	p.clientSeconds, p.seconds = p.clientSeconds+s.clients*s.seconds, p.seconds+s.seconds
}

// without returns the operations per second, and the seconds that one client takes for one of them, outside of so
// long a time with so many clients.
func (p *pace) without(length, clients float64) (rate, cycle float64) {
	return ratio(p.done, max(0, p.seconds-length)), ratio(max(0, p.clientSeconds-length*clients), p.done)
}

// outages returns all of the run, by time.
func (d *data) outages() []Outage {
	all, byStep := pace{}, map[int]*pace{}
	for s := range each(d.seconds) {
		if byStep[s.step] == nil {
			byStep[s.step] = &pace{}
		}
		all.add(s)
		byStep[s.step].add(s)
	}
	var found []Outage
	last, first := time.Time{}, 0 // the last sign of progress, and the place of its second
	for i := range d.seconds {
		s := &d.seconds[i]
		if s.phase == measure.GracefulStop || s.clients <= 0 && s.done+s.errors == 0 {
			last = time.Time{}
			continue
		}
		if last.IsZero() || s.start.Sub(d.seconds[i-1].end()).Seconds() > gap {
			last, first = s.start, i
		}
		judge := func(end time.Time, ended bool) {
			if o := d.outage(first, i, last, end, ended, byStep[d.seconds[first].step], &all); o != nil {
				found = append(found, *o)
			}
		}
		from, to, any := s.progress(d.plan.Work.Kind, byStep[s.step])
		if any {
			if from.After(last) {
				judge(from, true)
			}
			last, first = to, i
		}
		if i+1 == len(d.seconds) || d.seconds[i+1].phase == measure.GracefulStop {
			judge(s.end(), false)
		}
	}
	return found
}

// progress returns the span of a second in which the service got something done. step is the pace of its step.
// Programs of the user's may run for longer than any step.
func (s *second) progress(kind workload.Kind, step *pace) (from, to time.Time, any bool) {
	flows := float64(s.moved) > leastFlow*ratio(step.moved, step.seconds)*s.seconds
	switch {
	case s.done > 0 && !s.lastDone.IsZero():
		return s.firstDone, s.lastDone, true
	case s.done > 0, flows && s.errors == 0, s.work > 0, s.events > 0, kind == "command-job" && s.running > 0 && s.errors == 0:
		return s.start, s.end(), true
	}
	return s.start, s.start, false
}

// outage judges the time from begin to end without a success, which lies in the seconds first to last; nil if it is
// none.
func (d *data) outage(first, last int, begin, end time.Time, ended bool, step, all *pace) *Outage {
	length := end.Sub(begin).Seconds()
	lost, waited := false, 0.0
	if !ended {
		lost, waited = d.lostAfter(last)
	}
	if length < leastOutage && !lost {
		return nil
	}
	o := Outage{Kind: OutageStalled, Step: d.seconds[first].step, From: begin, To: end, Seconds: length, Ended: ended, lost: lost}
	var failed [storage.Classes]int64
	clients, stalled := 0.0, 0.0
	for i := first; i <= last; i++ {
		s := &d.seconds[i]
		clients += s.clients
		if s.seconds > generatorStalled {
			stalled += s.seconds
		}
		for class, n := range s.failed {
			failed[class] += n
			o.Failed += n
		}
	}
	clients /= float64(last - first + 1)
	rate, cycle := step.without(length, clients)
	if rate == 0 { // nothing else was done in this step
		rate, cycle = all.without(length, clients)
	}
	if cycle > 0 { // fewer clients than in the rest get less done
		rate = min(rate, clients/cycle)
	}
	switch {
	case stalled >= length/2 && length >= leastOutage:
		o.Kind = OutageGenerator
		return &o
	case o.Failed > 0:
		o.Kind, o.Class = OutageFailed, storage.Class(slices.Index(failed[:], slices.Max(failed[:])))
		o.Error = d.errorWithin(o.Class, begin, end)
		if rate*length < fewestExpected && float64(o.Failed) < fewestExpected {
			return nil
		}
		if length < leastOutage && (!unreachable(o.Class) || float64(o.Failed) < fewestExpected || rate*length < leastExpected) {
			return nil
		}
		if ranOut(o.Error) != "" {
			o.Kind = OutageGenerator
		}
	case rate*length < leastExpected || length < leastCyclesAway*cycle || length+waited < leastOutage:
		return nil
	}
	o.lost = lost && o.Kind != OutageGenerator
	return &o
}

// lostAfter reports whether no operation succeeded after a second until the run was over, and for how long clients waited for the last
// operations.
func (d *data) lostAfter(last int) (lost bool, waited float64) {
	for s := range each(d.seconds[last+1:]) {
		if s.done > 0 || s.phase != measure.GracefulStop {
			return false, 0
		}
		if s.clients > 0 {
			waited += s.seconds
		}
	}
	return !d.goesOn, waited
}

// unreachable reports whether failures of a class are those of a service that does not respond.
func unreachable(c storage.Class) bool {
	return c == storage.Refused || c == storage.Timeout || c == storage.Reset
}

// errorWithin returns the first error of a class that was recorded between from and to, "" if none was.
func (d *data) errorWithin(class storage.Class, from, to time.Time) string {
	for _, e := range d.events {
		if e.Kind == measure.EventError && e.Class == class && !e.Time.Before(from.Add(-time.Second)) && !e.Time.After(to.Add(time.Second)) {
			return e.Text
		}
	}
	return ""
}

// text says when the service was away, and why.
func (o *Outage) text() string {
	span := fmt.Sprintf("from %s to %s", o.From.UTC().Format("15:04:05"), o.To.UTC().Format("15:04:05"))
	if !o.Ended {
		span = fmt.Sprintf("from %s on", o.From.UTC().Format("15:04:05"))
	}
	length := unit.Seconds(o.Seconds)
	switch o.Kind {
	case OutageGenerator:
		if what := ranOut(o.Error); what != "" {
			return fmt.Sprintf("the load generator had no %s left %s UTC (%s)", what, span, length)
		}
		return fmt.Sprintf("the load generator did not run %s UTC (%s)", span, length)
	case OutageStalled:
		return fmt.Sprintf("no operation was completed %s UTC (%s; none failed)", span, length)
	}
	if unreachable(o.Class) || o.Class == storage.Busy {
		return fmt.Sprintf("the service did not respond %s UTC (%s; %s)", span, length, classText(o.Class))
	}
	return fmt.Sprintf("all operations failed %s UTC (%s; %s)", span, length, classText(o.Class))
}

// classText says what failures of a class are, for a sentence.
func classText(c storage.Class) string {
	return cmp.Or(map[storage.Class]string{
		storage.Refused: "connection refused", storage.Timeout: "timeout", storage.Reset: "connection broken",
		storage.Busy: "service busy", storage.Other: "errors",
	}[c], c.String())
}

// Counting returns a copy of f whose curve has only the steps that count, or f itself if all do. The curve is empty
// if too few are left to show anything.
func (f *Findings) Counting() *Findings {
	if len(f.excluded()) == 0 {
		return f
	}
	g := *f
	g.Curve = slices.DeleteFunc(slices.Clone(f.Curve), func(s Step) bool { return s.Excluded != "" })
	if len(g.Curve) < 2 && len(f.Curve) > 1 {
		g.Curve = g.Curve[:0] // one step that is left shows no maximum and no limit
	}
	return &g
}

// excluded returns the steps that do not count.
func (f *Findings) excluded() (all []*Step) {
	for s := range each(f.Curve) {
		if s.Excluded != "" {
			all = append(all, s)
		}
	}
	return all
}

// indexOf returns where in the curve the step of that number is, -1 if nowhere.
func (f *Findings) indexOf(number int) int {
	return slices.IndexFunc(f.Curve, func(s Step) bool { return s.Step == number })
}

// checkAvailability asks whether the service answered all the time.
func (f *Findings) checkAvailability(left int) Check {
	c := Check{Name: "availability", Status: OK}
	if len(f.Curve) == 0 {
		return c.skip("no step was measured")
	}
	var texts []string
	for i := range f.Outages {
		texts = append(texts, f.Outages[i].text())
	}
	n := len(f.excluded())
	switch {
	case n > 0 && left == 0 || slices.ContainsFunc(f.Outages, func(o Outage) bool { return o.lost && o.Class == storage.Refused }):
		c.Status = Fail
	case n > 0:
		c.Status = Warn
	case len(texts) > 0:
		c.worsen(Warn, "all steps count: they lost little of their measurement, or the service always stalls, or the plan cuts a link")
	default:
		c.Detail = fmt.Sprintf("operations succeeded at all times: there was no %s without a success", unit.Seconds(leastOutage))
		if at, longest := f.bursts(); longest > 0 {
			c.Detail = fmt.Sprintf("the service works in bursts (%s): no operation is completed for up to %s", at, unit.Seconds(longest))
		}
		return c
	}
	if n > 0 {
		texts = append(head(texts, 3), f.exclusions())
	}
	c.Detail = strings.Join(head(texts, 4), "; ")
	return c
}

// bursts names the loads at which the service works in bursts, and returns how long it takes from one to the next at
// most, 0 if there are none.
func (f *Findings) bursts() (at string, longest float64) {
	var loads []string
	for s := range each(f.Curve) {
		if s.burst > 0 {
			loads, longest = append(loads, f.at(s)), max(longest, s.burst)
		}
	}
	return strings.Join(head(loads, 3), ", "), longest
}

// exclusions names the steps that do not count by their loads.
func (f *Findings) exclusions() string {
	var loads []string
	for _, s := range f.excluded() {
		loads = append(loads, f.at(s))
	}
	if len(loads) == 1 {
		return "the step with " + loads[0] + " is excluded"
	}
	return fmt.Sprintf("%d of %d steps are excluded (%s)", len(loads), len(f.Curve), strings.Join(head(loads, 3), ", "))
}

// reportOutages puts what was not available in front of the headline and the verdict of the steps that count, of which
// there are left, and adds what pauses after errors did.
func (f *Findings) reportOutages(left int) {
	lines := []string{f.Verdict}
	if away := f.outageHeadline(left); away != "" {
		f.Headline = away
		lines = []string{away}
		if left > 0 {
			lines = append(lines, say.Capital(f.exclusions())+".", f.Verdict)
		}
	}
	if paused := f.pauseText(); paused != "" {
		lines = append(lines, paused)
	}
	if asked := f.askedText(); asked != "" {
		lines = append(lines, asked)
	}
	f.Verdict = strings.Join(lines, "\n")
}

// outageHeadline is the headline of a run in which steps do not count, "" if all do. left is how many count.
func (f *Findings) outageHeadline(left int) string {
	if len(f.excluded()) == 0 {
		return ""
	}
	const none = "no capacity can be stated"
	if right, bad, by := counts(f); right == 0 && bad > 0 {
		return fitting(fmt.Sprintf("All %d operations failed (%s): %s", bad, classes(by), none),
			fmt.Sprintf("All %d operations failed: %s", bad, none))
	}
	why := f.firstExclusion()
	if left == 0 {
		return fitting(why+": "+none, why)
	}
	return fitting(why+": "+f.exclusions(), why)
}

// firstExclusion says why the first step that does not count does not: with the moments of an outage, if there was
// one in which operations failed.
func (f *Findings) firstExclusion() string {
	for o := range each(f.Outages) {
		if o.Kind == OutageFailed {
			return say.Capital(o.text())
		}
	}
	return say.Capital(f.excluded()[0].Excluded)
}
