package conduct

import (
	"time"

	"weir/loadtest/challenge"
)

// A timeline assigns the stages of a profile to times of the clock.
type timeline struct {
	*challenge.Challenge
	origin time.Time // at which the profile began, if it had never been interrupted
}

// end returns the end of the last stage.
func (l timeline) end() time.Time { return l.origin.Add(l.Duration()) }

// at returns the number of the stage at t, from 1, and its share of the target rates then. After the
// last stage, the share is 0 and over is true.
func (l timeline) at(t time.Time) (stage int, share float64, over bool) {
	since := max(t.Sub(l.origin), 0)
	return l.Stage(since), l.Share(since), since >= l.Duration()
}

// boundary returns the end of the stage at t, or the zero time if t is after the last stage.
func (l timeline) boundary(t time.Time) time.Time {
	end := l.origin
	for _, s := range l.Profile {
		if end = end.Add(time.Duration(s.For)); end.After(t) {
			return end
		}
	}
	return time.Time{}
}

// A clock returns times of the wall clock that always go forward: steps of the wall clock after its
// beginning change nothing.
type clock struct {
	begin time.Time // with the reading of the monotonic clock
	wall  time.Time // the same without
}

func newClock() clock {
	now := time.Now()
	return clock{now, now.Round(0).UTC()}
}

// now returns the present time.
func (c clock) now() time.Time { return c.at(time.Now()) }

// at converts a time that time.Now has returned in this process.
func (c clock) at(t time.Time) time.Time { return c.wall.Add(t.Sub(c.begin)) }
