package schedule

import "math"

// A Recent estimates the duration of recent copies: seconds = fixed + bytes / rate, by least
// squares in which a copy counts relative to its size, and less with each copy after it. The zero
// value is without history.
type Recent struct {
	W   float64 `json:"w"` // sums of weights, and of weights times bytes, seconds, ...
	X   float64 `json:"x"`
	Y   float64 `json:"y"`
	XX  float64 `json:"xx"`
	XY  float64 `json:"xy"`
	Sum float64 `json:"sum"` // of the bytes, without weights
	Dur float64 `json:"dur"` // of the seconds, likewise
}

const (
	fade  = 0.9 // weight of the earlier copies after each new copy: half after 7
	small = 1e6 // bytes below which the size hardly changes the duration
)

// Add takes a copy of the given bytes and seconds into account.
func (r *Recent) Add(bytes, seconds float64) {
	if !(bytes >= 0) || !(seconds >= 0) || math.IsInf(bytes+seconds, 1) {
		return
	}
	seconds = max(seconds, 1e-4)
	w := 1 / ((bytes + small) * (bytes + small))
	for _, s := range []struct {
		sum *float64
		by  float64
	}{{&r.W, w}, {&r.X, w * bytes}, {&r.Y, w * seconds}, {&r.XX, w * bytes * bytes}, {&r.XY, w * bytes * seconds}, {&r.Sum, bytes},
		{&r.Dur, seconds}} {
		*s.sum = *s.sum*fade + s.by
	}
}

// Known reports whether there was any copy.
func (r *Recent) Known() bool { return r.Dur > 0 }

// Rate returns the bytes per second of one copy, including all its waiting times.
func (r *Recent) Rate() float64 {
	if r.Dur <= 0 {
		return 0
	}
	return r.Sum / r.Dur
}

// Seconds predicts the duration of a copy of the given bytes; ok is false without any history.
func (r *Recent) Seconds(bytes float64) (s float64, ok bool) {
	if !r.Known() {
		return 0, false
	}
	fixed, each := 0.0, r.Dur/max(r.Sum, 1)
	spread := r.W*r.XX - r.X*r.X
	if spread > 1e-6*r.W*r.XX { // sizes differ
		b := (r.W*r.XY - r.X*r.Y) / spread
		a := (r.Y - b*r.X) / r.W
		switch {
		case b <= 0: // larger files were no slower
			fixed, each = r.Y/r.W, 0
		case a < 0:
			fixed, each = 0, r.XY/r.XX
		default:
			fixed, each = a, b
		}
	} else if bytes < r.X/r.W { // all of one size: smaller files may take as long
		return r.Y / r.W, true
	}
	return fixed + each*bytes, true
}
