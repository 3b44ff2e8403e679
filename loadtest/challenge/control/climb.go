package control

import (
	"math"

	"weir/loadtest/challenge"
)

// A climb finds the number of copies in flight that a link needs. While the link has its target rate,
// it measures that number and the bytes that are in flight. If the link stays below the target with
// all allowed copies in flight, it tries more copies, and keeps them if the rate grows with their
// number.
type climb struct {
	delay    float64 // before the first byte, from Options, seconds
	residual float64 // bytes that a copy in flight has still to move, over the rate: seconds
	needed   float64 // copies in flight over the rate; 0: unknown
	allowed  int
	from     sample // before the trial
	trial    bool
	held     bool    // the last trial failed
	queued   bool    // the service had not begun most of the copies then
	until    float64 // time of the next trial, seconds
	pause    float64 // before it; 0: no trial has failed at this target
	skip     float64 // seconds until the window begins, after a change of allowed
	now      window
}

// A sample is the result of a window.
type sample struct {
	copies, rate float64
	allowed      int
}

// A window has sums over time.
type window struct {
	time, copies, queued, left, moved, moving, owed, blocked float64
}

const (
	bigStep    = 4.0
	smallStep  = 1.25
	growth     = 0.8  // of the rate, over that of the number of copies: below that they are too many
	met        = 0.97 // of the target that counts as the target
	spare      = 1.25 // of the copies that are allowed over those that are needed
	firstPause = 60.0 // seconds after a trial without success
	lastPause  = 480.0
	windowTime = 5.0
	longWindow = 300.0
	longSkip   = 60.0
	firstFew   = 8 // copies that a link may have at once before anything is known
)

// aim sets the number of copies for a new target. A trial and a window at a very different target
// are void.
func (c *climb) aim(at, before, rate, size float64) {
	if rate == 0 {
		return
	}
	if math.Abs(rate-before) > overshoot*before {
		c.trial, c.now, c.skip = false, window{}, min(2*c.residual, longSkip)
		if c.held && rate > before {
			c.until, c.pause = at, 0 // try more at once
		}
	}
	if c.needed == 0 {
		c.allowed = max(c.allowed, firstFew, atMost(math.Ceil(2*rate*c.delay/size)))
	} else if !c.held && !c.trial {
		c.allowed = c.enough(rate)
	}
}

// enough returns the number of copies that suffice for a rate.
func (c *climb) enough(rate float64) int { return atMost(math.Ceil(spare*rate*c.needed)) + 2 }

// atMost returns x as an integer.
func atMost(x float64) int { return int(min(x, math.MaxInt32/2)) }

// observe adds the time since the last decision to the window, and evaluates it at its end.
func (c *climb) observe(at, dt float64, s *Seen, rate float64) {
	if rate == 0 {
		c.now = window{}
		return
	}
	if c.skip > 0 {
		c.skip -= dt
		return
	}
	w := &c.now
	w.time += dt
	w.copies += dt * float64(s.InFlight)
	w.queued += dt * float64(s.Queued)
	w.left += dt * float64(s.Left)
	w.moved += float64(s.Moved)
	if s.Moved > 0 {
		w.moving += dt
	}
	w.owed += dt * rate
	if w.time < c.length() || w.moved == 0 {
		return
	}
	c.evaluate(at, rate)
	c.now = window{}
}

// length returns the duration of a window: the time in which copies move their bytes, twice, and
// more often if they are reported in few lumps.
func (c *climb) length() float64 {
	w, times, least := &c.now, 2.0, windowTime
	if w.moving < w.time/2 {
		times = 5
	}
	if c.pause > 0 { // small steps need more precise rates
		least *= 4
	}
	return min(max(least, times*max(c.residual, w.left/max(1, w.moved)), c.delay), longWindow)
}

// note counts time in which the allowed copies were in flight and more were due.
func (c *climb) note(dt float64, blocked bool) {
	if blocked {
		c.now.blocked += dt
	}
}

// evaluate uses a window at its end.
func (c *climb) evaluate(at, rate float64) {
	w := &c.now
	if w.moved >= met*w.owed {
		c.measure()
		c.trial, c.held, c.pause = false, false, 0
		c.allowed = c.enough(rate)
		return
	}
	if w.blocked < w.time/2 || c.held && at < c.until {
		return
	}
	have := sample{w.copies / w.time, w.moved / w.time, c.allowed}
	if c.trial && !c.grew(have) {
		c.hold(at)
		return
	}
	if c.trial {
		c.measure()
	}
	c.trial, c.held, c.from = true, false, have
	step := smallStep
	if c.pause == 0 { // by Little's law
		step = min(bigStep, spare*rate/have.rate)
	}
	c.raise(c.allowed + max(1, atMost(float64(c.allowed)*(step-1))))
}

// grew reports whether the rate has grown with the number of copies since the trial began.
func (c *climb) grew(have sample) bool {
	return have.rate/c.from.rate-1 >= growth*(have.copies/c.from.copies-1)
}

// measure keeps the copies and bytes that the link has in flight at the rate of the window.
func (c *climb) measure() {
	w := &c.now
	needed, residual := w.copies/w.moved, w.left/w.moved
	if c.needed == 0 {
		c.needed, c.residual = needed, residual
		return
	}
	c.needed += (needed - c.needed) / 2
	c.residual += (residual - c.residual) / 2
}

// raise changes the number of copies; the next window begins when they move bytes.
func (c *climb) raise(n int) {
	c.allowed = n
	c.skip = min(c.length(), longSkip)
}

// hold ends a trial without success.
func (c *climb) hold(at float64) {
	c.queued = c.now.queued > c.now.copies/2
	c.trial, c.held = false, true
	c.pause = min(max(2*c.pause, firstPause), lastPause)
	c.until = at + c.pause
	c.raise(c.from.allowed)
}

// reason returns the reason for no more than the allowed copies.
func (c *climb) reason() challenge.Reason {
	switch {
	case c.held && c.queued, c.now.moved == 0 && c.now.queued > c.now.copies/2:
		return challenge.Queued
	case c.held:
		return challenge.Saturated
	}
	return challenge.Raised
}
