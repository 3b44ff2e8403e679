package challenge

import (
	"math"
	"time"
)

// Duration returns the duration of the profile.
func (c *Challenge) Duration() (all time.Duration) {
	for _, s := range c.Profile {
		all += time.Duration(s.For)
	}
	return all
}

// Stage returns the number of the stage at a time since the beginning of the profile, from 1. It is
// the last one after the end.
func (c *Challenge) Stage(at time.Duration) int {
	for i, s := range c.Profile {
		if at < time.Duration(s.For) {
			return i + 1
		}
		at -= time.Duration(s.For)
	}
	return len(c.Profile)
}

// Share returns the share of the target rates at a time since the beginning of the profile. It is 0
// after the end. A ramp at the beginning starts at 0.
func (c *Challenge) Share(at time.Duration) float64 {
	before := 0.0
	for _, s := range c.Profile {
		if at < time.Duration(s.For) {
			if s.Ramp {
				return before + (float64(s.At)-before)*max(0, at.Seconds())/time.Duration(s.For).Seconds()
			}
			return float64(s.At)
		}
		at -= time.Duration(s.For)
		before = float64(s.At)
	}
	return 0
}

// Target returns the target rate of the link with that index in bytes/s, at a time since the
// beginning of the profile. The ceiling of all links together is not part of it.
func (c *Challenge) Target(link int, at time.Duration) float64 {
	return float64(c.Links[link].Rate) / 8 * c.Share(at)
}

// mostShare returns the largest share of the profile.
func (c *Challenge) mostShare() (most Share) {
	for _, s := range c.Profile {
		most = max(most, s.At)
	}
	return most
}

// ceilingShare returns the share of the targets at which all links together reach the ceiling; it is
// infinite without a ceiling.
func (c *Challenge) ceilingShare() float64 {
	sum := 0.0
	for i := range c.Links {
		sum += float64(c.Links[i].Rate)
	}
	if c.Ceiling == 0 || sum == 0 {
		return math.Inf(1)
	}
	return float64(c.Ceiling) / sum
}

// shareSeconds returns the integral of the share, which most limits, from the beginning of the
// profile to a time: seconds at 100%.
func (c *Challenge) shareSeconds(until time.Duration, most float64) (sum float64) {
	before := 0.0
	for _, s := range c.Profile {
		if until <= 0 {
			break
		}
		part := min(until, time.Duration(s.For)).Seconds()
		from, to := float64(s.At), float64(s.At)
		if s.Ramp {
			from = before
			to = before + (float64(s.At)-before)*part/time.Duration(s.For).Seconds()
		}
		sum += area(from, to, most) * part
		before, until = float64(s.At), until-time.Duration(s.For)
	}
	return sum
}

// area returns the mean of a share that changes evenly from a to b, and that most limits.
func area(a, b, most float64) float64 {
	low, high := min(a, b), max(a, b)
	switch {
	case high <= most:
		return (a + b) / 2
	case low >= most:
		return most
	}
	below := (most - low) / (high - low) // share of the time below the limit
	return below*(low+most)/2 + (1-below)*most
}

// windowSeconds returns the largest integral of the share, which most limits, over a time of that
// length.
func (c *Challenge) windowSeconds(length time.Duration, most float64) (largest float64) {
	if length <= 0 {
		return 0
	}
	end := time.Duration(0)
	for _, s := range c.Profile {
		end += time.Duration(s.For)
		for _, until := range []time.Duration{end, end - time.Duration(s.For) + length} {
			until = min(until, c.Duration())
			largest = max(largest, c.shareSeconds(until, most)-c.shareSeconds(until-length, most))
		}
	}
	return largest
}
