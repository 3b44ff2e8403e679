package control

import (
	"math"

	"weir/loadtest/challenge"
)

// A link is the state of the control of a link.
type link struct {
	limit *Limit
	size  float64 // mean bytes of a file
	rate  float64 // target, bytes/s, within the ceiling
	phase float64 // bytes that the first copy waits for
	debt  float64 // bytes of copies that are due
	owed  float64 // debt less the copies of the present decision
	left  float64 // bytes in flight that are still to be moved
	extra float64 // achieved rate above the target, smoothed
	used  float64 // copies in flight relative to the target, smoothed
	climb climb
	fail  backoff
}

// reset makes the state of a link that has not started.
func (l *link) reset(limit *Limit, delay float64) {
	*l = link{limit: limit, size: max(1, float64(limit.FileBytes))}
	l.climb = climb{delay: delay, residual: delay}
}

// observe brings the link up to date.
func (l *link) observe(p *period, s *Seen) {
	known, before := l.climb.needed > 0, l.climb.residual
	l.climb.observe(p.at, p.dt, s, l.rate)
	l.fail.observe(p.at, s, p.pause)
	rate, left, moved := s.Target*p.share, float64(s.Left), float64(s.Moved)
	// the requested bytes follow the required bytes, the bytes in flight those of the target rate
	l.debt += rate*p.dt - (moved + left - l.left)
	l.left = left
	l.debt += float64(s.Wrong)
	if late := l.climb.residual - before; !known && late <= backlog {
		l.debt += l.rate * late // the bytes in flight are measured for the first time
	}
	if rate != l.rate {
		l.aim(p.at, rate)
	}
	if p.dt > 0 {
		l.extra += (moved/p.dt - rate - l.extra) * p.rate
		l.used += (float64(s.InFlight)/max(rate, 1) - l.used) * p.slots
	}
	if l.fast() {
		// the bytes beyond the target count against an earlier debt
		l.debt = min(l.debt, max(0, l.debt-max(0, moved-rate*p.dt)))
	}
	l.bound()
}

// aim sets a new target. The bytes in flight are to be those of the new target.
func (l *link) aim(at, rate float64) {
	l.debt += (rate - l.rate) * l.climb.residual
	if l.rate == 0 {
		l.debt -= l.phase
	}
	l.climb.aim(at, l.rate, rate, l.size)
	l.rate = rate
}

// bound limits the debt to the backlog, and the bytes in advance.
func (l *link) bound() {
	if l.rate == 0 {
		l.debt = max(min(l.debt, 0), -l.left)
		return
	}
	l.debt = min(l.debt, max(backlog*l.rate, l.size))
	l.debt = max(l.debt, -max(credit*l.rate, 2*l.size))
}

// fast reports whether the link has moved more than its target for some seconds, beyond the error of
// one file.
func (l *link) fast() bool { return l.extra > overshoot*l.rate+l.size/smooth }

// limits returns the decision of the link alone, without copies to start. It has no reason if copies
// may be started.
func (l *link) limits(at float64, s *Seen) Decision {
	l.owed = l.debt
	d := Decision{Allowed: min(l.climb.allowed, l.most())}
	switch {
	case l.rate == 0:
		d.Allowed, d.Reason = 0, challenge.Idle
	case l.fail.pausing(at):
		d.Allowed, d.Reason = min(d.Allowed, s.InFlight), challenge.Failing
	case l.fail.probing():
		d.Allowed = min(d.Allowed, s.InFlight+1)
	case l.fast():
		d.Reason = challenge.Paced
	}
	if d.Reason == "" && l.debt <= 0 {
		d.Reason = l.pacedReason(s.InFlight)
	}
	return d
}

// most returns the limit of copies at once of the link.
func (l *link) most() int {
	if l.limit.InFlight <= 0 {
		return math.MaxInt32
	}
	return l.limit.InFlight
}

// pacedReason returns the reason of a link with n copies that needs no more.
func (l *link) pacedReason(n int) challenge.Reason {
	if n == 1 && l.size > l.rate*largeFile && l.rate*l.climb.needed < 1 {
		return challenge.LargeFile
	}
	return challenge.Paced
}

// largeFile is the time in seconds in which the target rate moves a file that is too large for an
// error of few percent of the mean of a minute.
const largeFile = 60.0 / 50

// started counts a copy that is started.
func (l *link) started() { l.fail.started() }

// note counts the decision. The number of copies held the link back if only that kept it from more,
// and if there are no copies left of a higher target.
func (l *link) note(dt float64, d *Decision, n int) {
	waits := d.Reason == challenge.Raised || d.Reason == challenge.Saturated || d.Reason == challenge.Queued
	l.climb.note(dt, waits && n <= d.Allowed)
}
