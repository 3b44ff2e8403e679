package main

import (
	"time"

	"weir/analysis/stats"
	"weir/measure"
	"weir/results"
	"weir/search"
	"weir/storage"
)

// held sums the hold of one step.
type held struct {
	begun       results.Begun
	clients     int
	moved, rate []stats.Point // second by second
	at          time.Time
	bytes, done int64
	failed      int64
	latency     float64 // seconds, summed
	seconds     float64
}

// stepsOf returns what the steps of a search gave that were held to their ends,
// as those of the given numbers were for sure. They are compared by payload, or by
// operations where none was moved.
func stepsOf(run *results.Run, sure func(number int) bool) ([]search.Step, error) {
	p, err := run.Progress()
	if err != nil {
		return nil, err
	}
	all := map[int]*held{}
	for _, b := range p.Steps {
		all[b.Number] = &held{begun: b}
	}
	for e, err := range run.Events() {
		if err != nil {
			return nil, err
		}
		if h := all[e.Step]; e.Kind == "step" && h != nil {
			h.clients = e.Clients
		}
	}
	moved := false
	for v, err := range run.Intervals() {
		if err != nil {
			return nil, err
		}
		if h := all[v.Step]; h != nil && v.Phase == measure.Hold {
			h.add(v)
			moved = moved || v.Moved > 0
		}
	}
	var steps []search.Step
	for _, b := range p.Steps {
		if h := all[b.Number]; (b.Whole() || b.Passed || sure(b.Number)) && h.seconds > 0 && h.clients > 0 {
			steps = append(steps, h.step(moved))
		}
	}
	return steps, nil
}

func (h *held) add(v *measure.Interval) {
	if !v.Start.Equal(h.at) || len(h.moved) == 0 {
		h.at = v.Start
		h.moved = append(h.moved, stats.Point{Weight: v.Seconds})
		h.rate = append(h.rate, stats.Point{Weight: v.Seconds})
		h.seconds += v.Seconds
	}
	last := len(h.moved) - 1
	h.moved[last].Value += float64(v.Moved) // divided below
	h.rate[last].Value += float64(v.Done)
	h.bytes += v.Moved
	h.done += v.Done
	h.latency += v.Latency.Sum()
	for class, n := range v.Failed {
		if class != storage.Canceled {
			h.failed += n
		}
	}
}

// A step's spread is known from so many batches of half a second or more.
const (
	mostBatches = 20
	leastBatch  = 0.5
)

func (h *held) step(moved bool) search.Step {
	s := search.Step{Clients: h.clients, Done: h.done, Hold: h.seconds}
	series, sum := h.rate, float64(h.done)
	if moved {
		series, sum = h.moved, float64(h.bytes)
	}
	s.Yield = sum / h.seconds
	points := make([]stats.Point, 0, len(series))
	for _, p := range series {
		if p.Weight > 0 {
			points = append(points, stats.Point{Value: p.Value / p.Weight, Weight: p.Weight})
		}
	}
	batches := stats.Batch(points, mostBatches, leastBatch)
	if _, v, ok := stats.BatchInterval(batches); ok {
		s.Error = (v.High - v.Low) / 2 / stats.Student(float64(len(batches)-1))
	}
	if h.done > 0 {
		s.Latency = h.latency / float64(h.done)
	}
	if all := h.done + h.failed; all > 0 {
		s.Failed = float64(h.failed) / float64(all)
	}
	return s
}
