package results

import (
	"time"

	"weir/loadtest/measure"
)

// A Progress describes the part of a run that was completed, over all parts of a resumed run.
type Progress struct {
	Steps []Begun
	Last  int             // largest number of a step, 0 if no step began
	Spent time.Duration   // of all phases, summed
	Done  int64           // operations that succeeded
	Moved int64           // payload bytes
	Ended *measure.Ending // nil: the run was killed, or is active
}

// A Begun is a step that began.
type Begun struct {
	Number   int
	Duration time.Duration // measured
	Want     time.Duration // planned
	Passed   bool          // the next step, or the run's own end, followed without an interruption
}

// Whole reports whether the step was held for its planned duration. The incomplete last second of
// an interrupted run is tolerated.
func (b Begun) Whole() bool {
	return b.Duration > 0 && float64(b.Duration) >= 0.95*float64(b.Want)-0.05*float64(time.Second)
}

// Progress reads the progress of the run. A damaged line is an error.
func (r *Run) Progress() (*Progress, error) {
	p := &Progress{}
	resumed := false
	var end measure.EndTracker
	for e, err := range r.Events() {
		if err != nil {
			return nil, err
		}
		end.Saw(e)
		switch e.Kind {
		case measure.EventStep:
			want := time.Duration(e.Duration * float64(time.Second))
			for _, s := range r.Plan.Steps {
				if want == 0 && s.Number == e.Step {
					want = time.Duration(s.Duration)
				}
			}
			if n := len(p.Steps); n > 0 {
				p.Steps[n-1].Passed = !resumed
			}
			resumed = false
			p.Steps = append(p.Steps, Begun{Number: e.Step, Want: want})
			p.Last = max(p.Last, e.Step)
		case measure.EventResume:
			resumed = true
		case measure.EventEnd:
			if n := len(p.Steps); n > 0 && e.Ending().Outcome == measure.Complete {
				p.Steps[n-1].Passed = true // its jobs may have ended before its measurement time was over
			}
		}
	}
	p.Ended = end.Ending()
	return p, p.count(r)
}

// Ending reads the end of the run. It returns nil if the run is active or was killed. A damaged
// line is an error.
func (r *Run) Ending() (*measure.Ending, error) {
	var end measure.EndTracker
	for e, err := range r.Events() {
		if err != nil {
			return nil, err
		}
		end.Saw(e)
	}
	return end.Ending(), nil
}

// count adds up the intervals.
func (p *Progress) count(r *Run) error {
	hold := map[int]time.Duration{}
	var last measure.Interval
	for v, err := range r.Intervals() {
		if err != nil {
			return err
		}
		p.Done += v.Done
		p.Moved += v.Moved
		p.Last = max(p.Last, v.Step)
		if v.Start.Equal(last.Start) && v.Step == last.Step && v.Phase == last.Phase {
			continue // another kind or server of the same second
		}
		last = *v
		span := time.Duration(v.Seconds * float64(time.Second))
		p.Spent += span
		if v.Phase == measure.Measured {
			hold[v.Step] += span
		}
	}
	for i := range p.Steps {
		p.Steps[i].Duration = hold[p.Steps[i].Number]
	}
	return nil
}

// Left returns the remaining part of the plan: first is the index in the plan of the first step to
// be held, broken is the number of the interrupted step, or 0 if no step was interrupted.
func (p *Progress) Left() (first, broken int) {
	for i, s := range p.Steps {
		switch {
		case s.Passed || s.Whole():
			first++
		case i == len(p.Steps)-1:
			broken = s.Number
		}
	}
	return first, broken
}
