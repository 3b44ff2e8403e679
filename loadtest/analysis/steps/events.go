package steps

import (
	"slices"
	"time"

	"weir/loadtest/analysis/basics"
	"weir/loadtest/analysis/hosts"
	"weir/loadtest/measure"
)

// Ending returns the end of the run, or nil if the run continues or was killed.
func (d *Run) Ending() *measure.Ending {
	var end measure.EndTracker
	for _, e := range d.Events {
		end.Saw(e)
	}
	return end.Ending()
}

// Announced returns the event with which a step began, or nil if no event contains its load.
func (d *Run) Announced(step int) *measure.Event {
	for _, e := range d.Events {
		if e.Kind == measure.EventStep && e.Step == step && e.Clients > 0 {
			return e
		}
	}
	return nil
}

// Repeated reports whether a step was interrupted and, after the run was resumed, another step was
// held: the interrupted step is then not a point of the curve.
func (d *Run) Repeated(step int) bool {
	later := false
	for _, t := range d.Steps {
		later = later || t.Number > step && t.Span > 0
	}
	for _, e := range d.Events {
		if e.Kind == measure.EventResume && e.Step == step && step > 0 {
			return later
		}
	}
	return false
}

// Interrupted returns the sum of the times, in seconds, between the parts of a resumed run: from
// the last interval before each resume to the first interval after it.
func (d *Run) Interrupted() (seconds float64) {
	for _, e := range d.Events {
		if e.Kind != measure.EventResume {
			continue
		}
		for i := 1; i < len(d.Seconds); i++ {
			a, b := &d.Seconds[i-1], &d.Seconds[i]
			if a.Step != b.Step && !b.End().Before(e.Time) {
				seconds += max(0, b.Start.Sub(a.End()).Seconds())
				break
			}
		}
	}
	return seconds
}

// Search returns the last decision of a search, or "" if the run was not a search.
func (d *Run) Search() string {
	text := ""
	for _, e := range d.Events {
		if e.Kind == measure.EventSearch {
			text = e.Text
		}
	}
	return text
}

// LoadBegan returns the time at which the first step began.
func (d *Run) LoadBegan() time.Time {
	for _, e := range d.Events {
		if e.Kind == measure.EventStep {
			return e.Time
		}
	}
	return d.Begin()
}

// HoldEnds returns the time at which the hold of each step ended.
func (d *Run) HoldEnds() map[int]time.Time {
	ends := map[int]time.Time{}
	for s := range basics.Each(d.Seconds) {
		if s.Phase == measure.Measured {
			ends[s.Step] = s.End()
		}
	}
	return ends
}

// Processes returns the largest number of processes that ran the clients of a step on one machine.
func (d *Run) Processes() (most int) {
	for _, e := range d.Events {
		if e.Kind == measure.EventStep {
			most = max(most, e.Processes)
		}
	}
	return most
}

// HoldTimes returns the measurement times of all steps.
func (d *Run) HoldTimes() hosts.Holds {
	var all hosts.Holds
	for _, t := range d.Held() {
		for _, span := range t.Spans() {
			all = append(all, hosts.Hold{From: span[0], To: span[1], Step: t.Number})
		}
	}
	slices.SortStableFunc(all, func(a, b hosts.Hold) int { return a.From.Compare(b.From) })
	for i := range all {
		all[i].Last = all[i].To
		if i > 0 && all[i-1].Last.After(all[i].Last) {
			all[i].Last = all[i-1].Last
		}
	}
	return all
}

// Spans returns the contiguous parts of a step's measurement time.
func (t *Total) Spans() [][2]time.Time {
	var all [][2]time.Time
	for s := range basics.Each(t.Seconds) {
		if n := len(all); n > 0 && s.Start.Sub(all[n-1][1]) < 50*time.Millisecond {
			all[n-1][1] = s.End()
			continue
		}
		all = append(all, [2]time.Time{s.Start, s.End()})
	}
	return all
}
