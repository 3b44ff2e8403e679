// Package search chooses the next load in the search for the load with the highest throughput: a
// ladder of loads until throughput has clearly stopped growing, then steps around the peak, each at
// the load that narrows the optimum's interval most.
//
// It is a pure function of the steps held so far: it measures nothing, has no clock and keeps no
// state, so that a search that was interrupted continues from the contents of its run directory.
// The method is described in docs/methods.md.
package search

import (
	"math"
	"time"

	"weir/internal/stats"
	"weir/loadtest/analysis/fact"
	"weir/loadtest/analysis/shape"
)

// Limits bound the loads and the time of a search.
type Limits struct {
	Min, Max int     // clients; 1 <= Min <= Max
	Within   float64 // the interval is tight enough if its upper end is <= 1+Within times the lower

	Duration time.Duration // of a step, above 0
	Longest  time.Duration // of a step that large files or noise make longer
	Around   time.Duration // time of a step besides its hold: ramp, settle, drain, rest
}

// A Step is the result of one step.
type Step struct {
	Clients  int
	Yield    float64 // bytes or operations per second, mean of the hold
	Error    float64 // standard error of Yield; 0 is unknown
	Batches  int     // independent means that Error stands on; 0: taken as many
	Failed   float64 // share of its operations, 0 to 1
	Latency  float64 // mean of its operations, seconds; 0 is unknown
	Done     int64   // operations that ended well
	Duration float64 // seconds
}

// A Decision is the next step, or the end.
type Decision struct {
	End      Reason        // the reason for the end of the search; "": it goes on
	Clients  int           // of the next step
	Duration time.Duration // of the next step
	Why      fact.Fact     // of the step or of the end

	Optimum *Optimum // by the steps so far; nil: nothing was moved yet
}

// A Reason is the reason for the end of a search.
type Reason string

// Reasons.
const (
	Narrow   Reason = "narrow"  // the interval of the peak is as narrow as requested
	Flat     Reason = "flat"    // the top is flat
	Edge     Reason = "edge"    // the neighbors of the best load give less
	Rising   Reason = "rising"  // no maximum was found up to the heaviest load
	TimeUp   Reason = "time"    // no time is left for another step
	Enough   Reason = "steps"   // no search takes more steps
	Gone     Reason = "gone"    // the service serves no more
	NoResult Reason = "nothing" // no step moved anything without errors
)

// An Optimum is shape.OptimumOf the steps, as package analysis reports it.
type Optimum struct {
	Clients   int  // the least load that gives as much as any
	Low, High int  // lightest and heaviest load that cannot be distinguished from the best
	Inside    bool // the heaviest load certainly gives less
}

// A search never takes more steps than this.
const mostSteps = 100

// Next decides on the step after the steps done, in the order in which they were held, with so much
// time left.
func (l Limits) Next(done []Step, left time.Duration) Decision {
	s := &state{Limits: l, done: done, left: left, points: merge(done)}
	s.best = s.highest()
	d := s.decide()
	if d.End == "" {
		d.Clients = min(max(d.Clients, l.Min), l.Max)
		d.Duration = s.hold(d.Clients)
		switch {
		case d.Duration < l.Duration:
			d = end(TimeUp, fact.New("search.end.time"))
		case len(done) >= mostSteps:
			d = end(Enough, fact.New("search.end.steps", "steps", mostSteps))
		}
	}
	d.Optimum = s.optimum()
	return d
}

// state is the input of a decision.
type state struct {
	Limits
	done   []Step
	left   time.Duration
	points []point // by load
	best   int     // place in points of the highest point with few errors, -1 if not found
}

func (s *state) decide() Decision {
	if len(s.done) == 0 {
		return Decision{Clients: s.Min, Why: fact.New("search.start")}
	}
	if served := s.gone(); served > 0 {
		return end(Gone, fact.New("search.end.gone", "clients", s.done[len(s.done)-1].Clients, "served", served))
	}
	if next, why := s.ladder(); next > 0 {
		return Decision{Clients: next, Why: why}
	}
	if s.best < 0 {
		return end(NoResult, fact.New("search.end.nothing"))
	}
	if n := s.cliff(); n > 0 {
		return Decision{Clients: n, Why: fact.New("search.break_down")}
	}
	if s.open() {
		return s.rise()
	}
	return s.refine()
}

// gone returns the number of clients that were served before, if the service does not serve any
// more: the last step, of this load or a lighter load, had failures only.
func (s *state) gone() (served int) {
	last := len(s.done) - 1
	if last < 0 || s.done[last].Done > 0 || s.done[last].Yield > 0 || s.done[last].Failed < 1 {
		return 0
	}
	for _, x := range s.done[:last] {
		if x.Done > 0 && x.Clients >= s.done[last].Clients {
			return x.Clients
		}
	}
	return 0
}

func end(r Reason, why fact.Fact) Decision { return Decision{End: r, Why: why} }

// optimum returns the optimum of the steps done that count, by the rule of package analysis.
func (s *state) optimum() *Optimum {
	var points []shape.Point
	for _, step := range s.done {
		if step.Failed < shape.MostErrors {
			points = append(points, step.point())
		}
	}
	o, ok := shape.OptimumOf(points)
	if !ok {
		return nil
	}
	at := func(i int) int { return int(points[i].Load) }
	return &Optimum{Clients: at(o.Least), Low: at(o.Low()), High: at(o.High()), Inside: o.Inside}
}

// point converts the step to a point of package shape.
func (s Step) point() shape.Point {
	p := shape.Point{Load: float64(s.Clients), Yield: s.Yield, Batches: s.Batches, Latency: s.Latency, Errors: s.Failed}
	if s.Error > 0 {
		degrees := math.Inf(1)
		if s.Batches > 1 {
			degrees = float64(s.Batches - 1)
		}
		half := stats.Student(degrees) * s.Error
		p.Low, p.High = new(max(0, s.Yield-half)), new(s.Yield+half)
	}
	return p
}

func (s *state) heaviest() int { return s.points[len(s.points)-1].clients }
