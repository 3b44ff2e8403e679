package run

import (
	"context"
	"errors"
	"sync/atomic"
	"time"

	"weir/loadtest/analysis"
	"weir/loadtest/measure"
)

// An abortSink ends a run when a threshold with "or stop" is violated, as the
// first interrupt does: the last operations may end, and the result is reported.
type abortSink struct {
	measure.Sink
	gate   *analysis.Gate
	finish context.Context // ends when the run is to end; nothing is judged any more
	stop   context.CancelFunc

	broken atomic.Pointer[analysis.Violation] // the threshold that ended the run, or nil
}

// ending returns the ending of a run whose finish, or the Finish of in, has ended.
func (g *abortSink) ending(in Interrupts) measure.Ending {
	if broken := g.broken.Load(); broken != nil && in.Finish.Err() == nil {
		return measure.Early(measure.StoppedByRule, measure.ByThreshold, broken.Text)
	}
	return in.Ending()
}

// Interval implements measure.Sink.
func (g *abortSink) Interval(v *measure.Interval) error {
	var broken *analysis.Violation
	if g.finish.Err() == nil {
		broken = g.gate.Saw(v)
	}
	return errors.Join(g.Sink.Interval(v), g.close(broken, v.Step))
}

// Event implements measure.Sink. A step that begins ends the one before.
func (g *abortSink) Event(e measure.Event) error {
	var broken *analysis.Violation
	if e.Kind == measure.EventStep && g.finish.Err() == nil {
		broken = g.gate.End()
	}
	return errors.Join(g.Sink.Event(e), g.close(broken, e.Step))
}

// close ends the run, if broken is not nil, and writes the event.
func (g *abortSink) close(broken *analysis.Violation, step int) error {
	if broken == nil {
		return nil
	}
	g.broken.Store(broken)
	g.stop()
	return g.Sink.Event(measure.Event{Time: time.Now().UTC(), Kind: measure.EventThreshold, Step: step, Text: broken.Text,
		Reason: broken.Threshold, Stopped: broken.Stopped})
}
