package engine

import (
	"fmt"
	"time"

	"weir/loadtest/measure"
	"weir/loadtest/scenario"
)

// The error ratio that can stop a run is the ratio of the last so many seconds, and of at least so
// many operations.
const (
	errorWindow = 10
	errorLeast  = 20
)

// A Stopper compares a run's totals with the plan's stop rules: in the engine of a single process,
// or in the controller of several processes. One goroutine uses it.
type Stopper struct {
	rule        scenario.Stop
	done, moved int64
	window      [errorWindow]struct{ second, ended, failed int64 }
}

// NewStopper returns a Stopper without any totals.
func NewStopper(rule scenario.Stop) *Stopper { return &Stopper{rule: rule} }

// Saw adds an interval to the totals.
func (s *Stopper) Saw(v *measure.Interval) {
	s.done += v.Done
	s.moved += v.Moved
	second := v.Start.Unix()
	w := &s.window[second%errorWindow]
	if w.second != second {
		*w = struct{ second, ended, failed int64 }{second: second}
	}
	w.ended += v.Done + v.Errors()
	w.failed += v.Bad()
}

// Due reports whether a rule of the plan ends the run now, and returns the ending. spent is the
// time for which there has been load.
func (s *Stopper) Due(spent time.Duration) (measure.Ending, bool) {
	r := s.rule
	early := func(key, format string, args ...any) (measure.Ending, bool) {
		return measure.Early(measure.FinishedEarly, key, key+": "+fmt.Sprintf(format, args...)), true
	}
	switch {
	case r.Time > 0 && spent >= time.Duration(r.Time):
		return early("stop.time", "%v have passed", r.Time)
	case r.Count > 0 && s.done >= r.Count:
		return early("stop.count", "%d operations are done", s.done)
	case r.Bytes > 0 && s.moved >= int64(r.Bytes):
		return early("stop.bytes", "%d bytes have moved", s.moved)
	case r.ErrorRatio > 0:
		return s.errors()
	}
	return measure.Ending{}, false
}

func (s *Stopper) errors() (measure.Ending, bool) {
	newest := int64(0)
	for _, w := range s.window {
		newest = max(newest, w.second)
	}
	var ended, failed int64
	for _, w := range s.window {
		if w.second > newest-errorWindow {
			ended += w.ended
			failed += w.failed
		}
	}
	if ended < errorLeast || float64(failed) <= float64(s.rule.ErrorRatio)*float64(ended) {
		return measure.Ending{}, false
	}
	const key = "stop.error_ratio"
	return measure.Early(measure.StoppedByRule, key, fmt.Sprintf("%s: %d of the last %d operations failed", key, failed, ended)), true
}
