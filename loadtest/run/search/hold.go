package search

import (
	"math"
	"time"
)

// A hold is long enough when each client has ended so many operations in it,
// and when the yield's standard error is no larger than this share of it.
const (
	perClient  = 10
	wantsError = 0.015
)

// hold returns the duration of the step of n clients: the duration of the limits, longer if
// operations are long or seconds differ much, but never longer than the limits allow or than the
// remaining time. It is less than Duration if there is no time for a step any more.
func (s *state) hold(n int) time.Duration {
	want := float64(s.Duration)
	if d := s.duration(n); d > 0 {
		want = max(want, perClient*d*float64(time.Second))
	}
	want = max(want, s.noisy())
	want = min(want, float64(s.Longest), float64(s.left-s.Around))
	return time.Duration(max(want, 0)).Round(time.Millisecond)
}

// duration estimates the duration of operations of n clients, in seconds, from the nearest step:
// beyond the knee they take longer in proportion. 0 is unknown.
func (s *state) duration(n int) float64 {
	near, d := math.Inf(1), 0.0
	for _, step := range s.done {
		far := math.Abs(math.Log(float64(n) / float64(step.Clients)))
		if far > near {
			continue
		}
		near, d = far, step.Latency
		if step.Done == 0 && step.Yield > 0 {
			d = max(d, 2*step.Duration/perClient) // no operation ended: next time twice as long
		}
		if n > step.Clients {
			d *= float64(n) / float64(step.Clients)
		}
	}
	return d
}

// noisy returns the hold, in nanoseconds, that would make the median of the last five steps'
// standard errors small enough; four times the usual hold at most.
func (s *state) noisy() float64 {
	var all []float64
	for i := len(s.done) - 1; i >= 0 && len(all) < 5; i-- {
		if step := s.done[i]; step.good() && step.Error > 0 && step.Duration > 0 {
			r := step.relative() / wantsError
			all = append(all, r*r*step.Duration*float64(time.Second))
		}
	}
	if len(all) < 3 {
		return 0
	}
	return min(median(all), 4*float64(s.Duration))
}
