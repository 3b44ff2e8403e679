// Package search says which load to hold next in order to find the one that
// gives most: a ladder of loads until throughput has clearly stopped growing,
// then steps around the peak, each where it narrows the optimum's interval most.
//
// It is a pure function of the steps held so far: it measures nothing, knows no
// clock and keeps nothing in mind, so that a search that was interrupted goes on
// from what its run directory holds. docs/methods.md says how it decides.
package search

import (
	"fmt"
	"time"

	"weir/internal/say"
)

// Limits say how far and how long a search goes.
type Limits struct {
	Min, Max int     // clients; 1 <= Min <= Max
	Within   float64 // the interval is tight enough when its upper end is at most 1+Within times the lower one

	Hold    time.Duration // of a step, above 0
	Longest time.Duration // of a step that large files or noise make longer
	Around  time.Duration // what a step takes besides its hold: ramp, settle, drain, rest
}

// A Step is what one step gave.
type Step struct {
	Clients int
	Yield   float64 // bytes or operations per second, mean of the hold
	Error   float64 // standard error of Yield; 0 is unknown
	Failed  float64 // share of its operations, 0 to 1
	Latency float64 // mean of its operations, seconds; 0 is unknown
	Done    int64   // operations that ended well
	Hold    float64 // seconds
}

// A Decision is the next step, or the end.
type Decision struct {
	End     bool
	Clients int           // of the next step
	Hold    time.Duration // of the next step
	Why     string        // of the step or of the end, in words

	Optimum *Optimum // as far as it is known; nil: nothing was moved yet
}

// An Optimum is the load that gives most.
type Optimum struct {
	Clients   int
	Low, High int  // 95% interval, or the range whose throughput cannot be told apart
	Flat      bool // Low to High is such a range
	Open      bool // no maximum was found up to High
}

// A search never takes more steps than this.
const mostSteps = 100

// Next decides what comes after the steps done, in the order in which they were
// held, with so much time left.
func (l Limits) Next(done []Step, left time.Duration) Decision {
	s := &state{Limits: l, done: done, left: left, points: merge(done)}
	s.best = s.highest()
	if why := s.gone(); why != "" {
		return s.end(nil, why)
	}
	d := s.decide()
	if d.End {
		return d
	}
	d.Clients = min(max(d.Clients, l.Min), l.Max)
	d.Hold = s.hold(d.Clients)
	switch {
	case d.Hold < l.Hold:
		return s.end(d.Optimum, "the time is up: "+s.sofar(d.Optimum))
	case len(done) >= mostSteps:
		return s.end(d.Optimum, fmt.Sprintf("%d steps are enough: %s", mostSteps, s.sofar(d.Optimum)))
	}
	return d
}

// state is what a decision is made of.
type state struct {
	Limits
	done   []Step
	left   time.Duration
	points []point // by load
	best   int     // place in points of the highest of those with few errors, -1 if there is none
}

func (s *state) decide() Decision {
	if len(s.done) == 0 {
		return Decision{Clients: s.Min, Why: "the ladder begins"}
	}
	if next, why := s.ladder(); next > 0 {
		return Decision{Clients: next, Why: why, Optimum: s.tested()}
	}
	if s.best < 0 {
		return s.end(nil, "no step moved anything without errors")
	}
	if n := s.cliff(); n > 0 {
		return Decision{Clients: n, Why: "where it breaks down", Optimum: s.tested()}
	}
	if s.open() {
		return s.rise()
	}
	return s.refine()
}

// gone tells that the service does not serve any more: the last step had
// failures only, at a load that was served before, or at a lighter one.
func (s *state) gone() string {
	last := len(s.done) - 1
	if last < 0 || s.done[last].Done > 0 || s.done[last].Yield > 0 || s.done[last].Failed < 1 {
		return ""
	}
	for _, x := range s.done[:last] {
		if x.Done > 0 && x.Clients >= s.done[last].Clients {
			return fmt.Sprintf("the service serves no more: with %s all operations failed, while %s were served before; search again when it is back",
				clients(s.done[last].Clients), clients(x.Clients))
		}
	}
	return ""
}

func (s *state) end(o *Optimum, why string) Decision {
	return Decision{End: true, Why: why, Optimum: o}
}

// tested is the optimum before anything was fitted: the best load, and its
// neighbors as what is known of it.
func (s *state) tested() *Optimum {
	if s.best < 0 {
		return nil
	}
	o := &Optimum{Clients: s.points[s.best].clients}
	o.Low, o.High = o.Clients, o.Clients
	if s.best > 0 {
		o.Low = s.points[s.best-1].clients
	}
	if s.best < len(s.points)-1 {
		o.High = s.points[s.best+1].clients
	}
	o.Open = s.best == len(s.points)-1
	return o
}

// sofar says what is known when a search ends before it is done.
func (s *state) sofar(o *Optimum) string {
	switch {
	case o == nil:
		return "nothing was moved"
	case o.Open:
		return fmt.Sprintf("no maximum up to %s", clients(s.heaviest()))
	case o.Low == o.High:
		return "the optimum is " + clients(o.Clients)
	}
	return fmt.Sprintf("the optimum is between %d and %s", o.Low, clients(o.High))
}

func (s *state) heaviest() int { return s.points[len(s.points)-1].clients }

func clients(n int) string { return say.Plural(n, "client") }
