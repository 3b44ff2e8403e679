package engine

import "time"

// The wall clock may drift this much in one look without being a step: NTP
// slews by half a millisecond a second at most.
const drift = 20 * time.Millisecond

// A wall watches whether the wall clock is set while a run goes on. Intervals
// are counted on a clock that never jumps, but samples of other hosts are not:
// after a step the two no longer tell the same seconds.
type wall struct {
	base time.Time // with both clocks' readings
	off  time.Duration
}

// stepped returns by how much the wall clock was set since the last look, 0 if
// it was not.
func (w *wall) stepped(now time.Time) time.Duration {
	return w.look(now.Round(0).Sub(w.base.Round(0)) - now.Sub(w.base))
}

// look takes how far the wall clock is ahead of the other one.
func (w *wall) look(ahead time.Duration) time.Duration {
	step := ahead - w.off
	w.off = ahead
	if step.Abs() <= drift {
		return 0
	}
	return step
}
