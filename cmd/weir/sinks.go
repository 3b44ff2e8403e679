package main

import (
	"errors"

	"weir/measure"
	"weir/monitor"
	"weir/results"
)

// both brings samples to the run directory and to the screen.
type both struct {
	out  *results.Writer
	live *live
	find *finder // nil: nobody searches
}

// Sample implements monitor.Sink.
func (b both) Sample(s *monitor.Sample) error {
	if b.find != nil {
		b.find.Sample(s)
	}
	return errors.Join(b.out.Sample(s), b.live.Sample(s))
}

// tee brings intervals to the run directory and to the screen, and tells the
// watch and the links which step it is.
type tee struct {
	out   *results.Writer
	live  *live
	watch *monitor.Watch
	links *links // nil: none are emulated

	begins func() // called with each step
}

// Interval implements measure.Sink.
func (t *tee) Interval(v *measure.Interval) error {
	return errors.Join(t.out.Interval(v), t.live.Interval(v))
}

// Event implements measure.Sink.
func (t *tee) Event(e measure.Event) error {
	if e.Kind == "step" {
		t.begins()
		t.links.begin(e.Step)
		t.watch.SetStep(e.Step)
	}
	return errors.Join(t.out.Event(e), t.live.Event(e))
}
