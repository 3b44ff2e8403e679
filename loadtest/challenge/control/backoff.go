package control

// A backoff has a link with failing copies wait before it tries again.
type backoff struct {
	streak int     // failures without a success
	pauses int     // more than successes
	until  float64 // end of the pause, seconds
	trying bool    // the copy after the pause was started
}

const (
	failures     = 3  // in a row that are no accident
	longestPause = 60 // seconds
	shortPause   = 4  // seconds, of a link between sites that carry copies of other links
	alive        = 10 // seconds since the last good copy of a site that carries copies
)

// observe counts failures. longest is the longest pause in seconds.
func (b *backoff) observe(at float64, s *Seen, longest int) {
	switch {
	case s.Done > 0: // a site has a free place, or is well again
		*b = backoff{pauses: max(0, b.pauses-1)}
	case s.Failed > 0 && at >= b.until:
		if b.streak += s.Failed; b.streak >= failures || b.pauses > 0 {
			b.until = at + float64(min(longest, 1<<min(b.pauses, 6)))
			b.pauses++
			b.trying = false
		}
	}
}

// active reports whether the link pauses, or tries one copy.
func (b *backoff) active() bool { return b.pauses > 0 }

// pausing reports whether no copy may be started.
func (b *backoff) pausing(at float64) bool { return at < b.until || b.trying }

// probing reports whether a single copy may be started.
func (b *backoff) probing() bool { return b.pauses > 0 && !b.trying }

// started counts a copy that is started.
func (b *backoff) started() { b.trying = b.pauses > 0 }
