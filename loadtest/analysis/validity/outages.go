package validity

import (
	"slices"
	"time"

	"weir/internal/stats"
	"weir/loadtest/analysis/basics"
	"weir/loadtest/analysis/fact"
	"weir/loadtest/analysis/steps"
	"weir/loadtest/measure"
	"weir/loadtest/workload"
	"weir/storage"
)

// Bounds of outages.
const (
	leastOutage      = 1.0  // s without a success
	leastExpected    = 20.0 // successes expected in that time from the rate of the other seconds: by chance all fail to occur once in 10^8
	fewestExpected   = 5.0  // the same if operations failed in that time
	leastCyclesAway  = 3.0  // cycles of a client (operation and pause): all may wait for one slow response
	repeatedStalls   = 3    // so many similar stalls without failures are normal, and exclude no step
	longestBurst     = 1.5  // s from burst to burst: a service that is stopped is away for longer
	burstShare       = 0.25 // of the seconds in which operations ended, between the first and the last of each: less of it is bursts
	leastBursts      = 3    // least number of seconds for a decision
	outageShare      = 0.01 // of a step's measurement time: a step that lost more does not count
	leastFlow        = 0.05 // of a step's mean flow: less, without an ended operation, is the rest of buffers
	leastWrong       = 5    // wrong payloads: fewer of them are not significant
	generatorStalled = 1.5  // s that an interval lasts which should last 1 s at most
)

// Values of Outage.Kind.
const (
	OutageFailed    = "failed"    // operations failed, and no operation succeeded
	OutageStalled   = "stalled"   // operations waited, and no operation failed or succeeded
	OutageGenerator = "generator" // the load generator itself did not run, or had no ports or files left
)

// An Outage is a time in which clients tried operations and no operation succeeded.
type Outage struct {
	Kind    string        `json:"kind"` // OutageFailed, OutageStalled or OutageGenerator
	Step    int           `json:"step"` // in which it began
	From    time.Time     `json:"from"` // the last success before it
	To      time.Time     `json:"to"`   // the first success after it, or the end of the load
	Seconds float64       `json:"seconds"`
	Class   storage.Class `json:"class,omitzero"` // of most failures
	Error   string        `json:"error,omitempty"`
	// the resource of the clients' machine that ran out: see measure.Event
	Exhausted string `json:"exhausted,omitempty"`
	Failed    int64  `json:"failed"` // failed operations in the seconds that overlap with it
	Ended     bool   `json:"ended"`  // a success followed

	lost bool // no success followed in the whole run: the service was lost
}

// A pace sums the completed work of a step, or of the run.
type pace struct{ done, moved, clientSeconds, seconds float64 }

func (p *pace) add(s *steps.Second) {
	p.done, p.moved = p.done+float64(s.Done), p.moved+float64(s.Moved)
	p.clientSeconds, p.seconds = p.clientSeconds+s.Clients*s.Seconds, p.seconds+s.Seconds
}

// without returns the operations per second, and the seconds that one client takes for an
// operation, outside of a time of this length with this number of clients.
func (p *pace) without(length, clients float64) (rate, cycle float64) {
	return stats.Ratio(p.done, max(0, p.seconds-length)), stats.Ratio(max(0, p.clientSeconds-length*clients), p.done)
}

// outages returns all outages of the run, by time.
func outages(d *steps.Run) []Outage {
	all, byStep := pace{}, map[int]*pace{}
	for s := range basics.Each(d.Seconds) {
		if byStep[s.Step] == nil {
			byStep[s.Step] = &pace{}
		}
		all.add(s)
		byStep[s.Step].add(s)
	}
	var found []Outage
	last, first := time.Time{}, 0 // the last sign of progress, and the index of its second
	for i := range d.Seconds {
		s := &d.Seconds[i]
		if s.Phase == measure.GracefulStop || s.Clients <= 0 && s.Done+s.Errors == 0 {
			last = time.Time{}
			continue
		}
		if last.IsZero() || s.Start.Sub(d.Seconds[i-1].End()).Seconds() > gap {
			last, first = s.Start, i
		}
		judge := func(end time.Time, ended bool) {
			if o := outage(d, first, i, last, end, ended, byStep[d.Seconds[first].Step], &all); o != nil {
				found = append(found, *o)
			}
		}
		from, to, any := progress(s, d.Plan.Work.Kind, byStep[s.Step])
		if any {
			if from.After(last) {
				judge(from, true)
			}
			last, first = to, i
		}
		if i+1 == len(d.Seconds) || d.Seconds[i+1].Phase == measure.GracefulStop {
			judge(s.End(), false)
		}
	}
	return found
}

// progress returns the span of a second in which the service made progress. step is the pace of its
// step. Programs of users may run for longer than any step.
func progress(s *steps.Second, kind workload.Kind, step *pace) (from, to time.Time, any bool) {
	flows := float64(s.Moved) > leastFlow*stats.Ratio(step.moved, step.seconds)*s.Seconds
	switch {
	case s.Done > 0 && !s.LastDone.IsZero():
		return s.FirstDone, s.LastDone, true
	case s.Done > 0, flows && s.Errors == 0, s.Work > 0, s.Events > 0, kind == "command-job" && s.Running > 0 && s.Errors == 0:
		return s.Start, s.End(), true
	}
	return s.Start, s.Start, false
}

// outage judges the time from begin to end without a success, which lies in the seconds first to
// last. It returns nil if the time is not an outage.
func outage(d *steps.Run, first, last int, begin, end time.Time, ended bool, step, all *pace) *Outage {
	length := end.Sub(begin).Seconds()
	lost, waited := false, 0.0
	if !ended {
		lost, waited = lostAfter(d, last)
	}
	if length < leastOutage && !lost {
		return nil
	}
	o := Outage{Kind: OutageStalled, Step: d.Seconds[first].Step, From: begin, To: end, Seconds: length, Ended: ended, lost: lost}
	var failed [storage.Classes]int64
	clients, stalled := 0.0, 0.0
	for i := first; i <= last; i++ {
		s := &d.Seconds[i]
		clients += s.Clients
		if s.Seconds > generatorStalled {
			stalled += s.Seconds
		}
		for class, n := range s.Failed {
			failed[class] += n
			o.Failed += n
		}
	}
	clients /= float64(last - first + 1)
	rate, cycle := step.without(length, clients)
	if rate == 0 { // no other work was done in this step
		rate, cycle = all.without(length, clients)
	}
	if cycle > 0 { // fewer clients than in the rest of the step do less work
		rate = min(rate, clients/cycle)
	}
	switch {
	case stalled >= length/2 && length >= leastOutage:
		o.Kind = OutageGenerator
		return &o
	case o.Failed > 0:
		o.Kind, o.Class = OutageFailed, storage.Class(slices.Index(failed[:], slices.Max(failed[:])))
		o.Error, o.Exhausted = errorWithin(d, o.Class, begin, end)
		if rate*length < fewestExpected && float64(o.Failed) < fewestExpected {
			return nil
		}
		if length < leastOutage && (!unreachable(o.Class) || float64(o.Failed) < fewestExpected || rate*length < leastExpected) {
			return nil
		}
		if o.Exhausted != "" {
			o.Kind = OutageGenerator
		}
	case rate*length < leastExpected || length < leastCyclesAway*cycle || length+waited < leastOutage:
		return nil
	}
	o.lost = lost && o.Kind != OutageGenerator
	return &o
}

// lostAfter reports whether no operation succeeded after a second until the run was over, and
// returns the time for which clients waited for the last operations.
func lostAfter(d *steps.Run, last int) (lost bool, waited float64) {
	for s := range basics.Each(d.Seconds[last+1:]) {
		if s.Done > 0 || s.Phase != measure.GracefulStop {
			return false, 0
		}
		if s.Clients > 0 {
			waited += s.Seconds
		}
	}
	return !d.GoesOn, waited
}

// unreachable reports whether failures of a class mean that the service does not respond.
func unreachable(c storage.Class) bool {
	return c == storage.Refused || c == storage.Timeout || c == storage.Reset
}

// errorWithin returns the first error of a class that was recorded between from and to, and the
// resource of the clients' machine that ran out; "" without such an error.
func errorWithin(d *steps.Run, class storage.Class, from, to time.Time) (text, exhausted string) {
	for _, e := range d.Events {
		if e.Kind == measure.EventError && e.Class == class && !e.Time.Before(from.Add(-time.Second)) && !e.Time.After(to.Add(time.Second)) {
			return e.Text, e.Exhausted
		}
	}
	return "", ""
}

// Fact returns the time and the cause of the outage.
func (o *Outage) Fact() fact.Fact {
	from, to := fact.As(o.From, o.From.UTC().Format(time.TimeOnly)), fact.As(o.To, o.To.UTC().Format(time.TimeOnly+" MST"))
	if !o.Ended {
		to.Text = "the end of the measurement"
	}
	switch {
	case o.Kind == OutageGenerator && o.Exhausted != "":
		return fact.New("outage.generator_ran_out", "resource", o.Exhausted, "from", from, "to", to, "seconds", o.Seconds)
	case o.Kind == OutageGenerator:
		return fact.New("outage.generator_stalled", "from", from, "to", to, "seconds", o.Seconds)
	case o.Kind == OutageStalled:
		return fact.New("outage.stalled", "from", from, "to", to, "seconds", o.Seconds)
	}
	switch o.Class {
	case storage.Refused:
		return fact.New("outage.refused", "from", from, "to", to, "seconds", o.Seconds)
	case storage.Timeout:
		return fact.New("outage.timeout", "from", from, "to", to, "seconds", o.Seconds)
	case storage.Reset:
		return fact.New("outage.reset", "from", from, "to", to, "seconds", o.Seconds)
	case storage.Busy:
		return fact.New("outage.busy", "from", from, "to", to, "seconds", o.Seconds)
	case storage.Other:
		return fact.New("outage.errors", "from", from, "to", to, "seconds", o.Seconds)
	}
	return fact.New("outage.failed", "from", from, "to", to, "seconds", o.Seconds, "class", o.Class.String())
}
