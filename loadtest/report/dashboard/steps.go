package dashboard

import (
	"time"

	"weir/internal/say"
	"weir/loadtest/measure"
	"weir/storage"
)

// A stepTally contains the results of the measurement time of one step so far, and the errors of
// all its phases.
type stepTally struct {
	seq   int64
	begin time.Time
	last  time.Time // start of the newest interval of the hold
	held  bool      // an interval of the hold was read

	failures measure.Failures

	Step    int     `json:"step"`
	Clients int     `json:"clients"`
	Rate    float64 `json:"rate,omitempty"` // open model: planned arrivals per second
	Planned float64 `json:"planned"`        // seconds of hold
	Held    float64 `json:"held"`           // seconds of hold
	Broken  bool    `json:"broken,omitempty"`
	Moved   int64   `json:"moved"` // bytes
	Done    int64   `json:"done"`
	Errors  int64   `json:"errors"` // of all phases
	// failed share of the operations of the newest second, if it is above the share of the whole
	// step
	Failing float64 `json:"failing,omitempty"`
	P50     float64 `json:"p50,omitempty"` // seconds
	P90     float64 `json:"p90,omitempty"`
	P99     float64 `json:"p99,omitempty"`
}

// begin records that a step began.
func (h *history) begin(e *measure.Event) {
	s := h.step(e.Step)
	s.seq, s.begin = h.seq, e.Time
	if e.Clients > 0 || e.Duration > 0 { // otherwise the plan contains the values
		s.Clients, s.Rate, s.Planned = e.Clients, e.Rate, e.Duration
	}
}

// resumed records that the step was interrupted.
func (h *history) resumed(step int) {
	for _, s := range h.steps {
		if s.Step == step {
			s.Broken, s.seq = true, h.seq
		}
	}
}

// step returns the tally of a step.
func (h *history) step(number int) *stepTally {
	for i := len(h.steps) - 1; i >= 0; i-- {
		if h.steps[i].Step == number {
			return h.steps[i]
		}
	}
	p := h.planned[number]
	s := &stepTally{seq: h.seq, Step: number, Clients: p.Clients, Rate: float64(p.Rate), Planned: time.Duration(p.Duration).Seconds()}
	h.steps = append(h.steps, s)
	return s
}

// tally counts iv for its step.
func (h *history) tally(iv *measure.Interval) {
	s := h.step(iv.Step)
	if s.begin.IsZero() {
		s.begin = iv.Start
	}
	for class := range storage.Classes {
		if n := iv.BadOf(class); n > 0 && class.Failure() {
			h.errorOf(class).Count += n
		}
	}
	s.failures.Add(iv)
	s.Errors, s.Failing = s.failures.Count(), 0
	if failed, all, worse := s.failures.Worse(); worse {
		s.Failing = float64(failed) / float64(all)
	}
	if s.Errors > 0 {
		s.seq = h.seq
	}
	if iv.Phase != measure.Measured {
		return
	}
	s.seq = h.seq
	if !s.held || !iv.Start.Equal(s.last) { // all lines of a second have the same time
		s.Held += iv.Seconds
		s.last, s.held = iv.Start, true
	}
	s.Moved += iv.Moved
	s.Done += iv.Done
	if s != h.summed {
		h.summed = s
		h.stepSum.Reset()
	}
	if iv.Latency.Count() == 0 {
		return
	}
	h.stepSum.Merge(&iv.Latency)
	s.P50, s.P90, s.P99 = h.stepSum.Quantile(0.5), h.stepSum.Quantile(0.9), h.stepSum.Quantile(0.99)
}

// An errorTally is the data of the failures of one class.
type errorTally struct {
	seq   int64
	Class string      `json:"class"`
	Count int64       `json:"count"` // operations
	Texts []errorText `json:"texts"` // the newest first
}

type errorText struct {
	Time time.Time `json:"time"`
	Text string    `json:"text"`
}

// mostTexts is the number of error texts of one class that are kept.
const mostTexts = 5

func (h *history) errorOf(class storage.Class) *errorTally {
	e := h.errors[class]
	if e == nil {
		e = &errorTally{Class: say.Plain(class.String()), Texts: []errorText{}}
		h.errors[class] = e
	}
	e.seq = h.seq
	return e
}

// add adds text, and removes older texts that are equal.
func (e *errorTally) add(at time.Time, text string) {
	keep := []errorText{{at, text}}
	for _, t := range e.Texts {
		if t.Text != text && len(keep) < mostTexts {
			keep = append(keep, t)
		}
	}
	e.Texts = keep
}
