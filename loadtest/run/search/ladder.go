package search

import (
	"math"

	"weir/loadtest/analysis/fact"
)

// Conditions for the end of the ladder.
const (
	brokenDown = 0.6  // two steps in a row below this share of the best: it has broken down
	beyond     = 3    // so many steps beyond the best that are no better: enough, unless they rise
	farBeyond  = 5    // enough in any case
	rising     = 0.02 // growth per doubling
)

// ladder returns the load of the ladder's next step and the reason, 0 when throughput has clearly
// stopped growing or the largest load was held. Steps that are not heavier than the step before do
// not belong to the ladder; after them it only goes on if the heaviest load is the best, as when
// more clients are allowed later.
func (s *state) ladder() (next int, why fact.Fact) {
	last := s.points[len(s.points)-1]
	if s.refined() > 0 && s.best < len(s.points)-1 {
		return 0, why // it ended before
	}
	if last.clients >= s.Max || s.stopped() {
		return 0, why
	}
	next = int(math.Round(float64(last.clients) * s.factor(last.clients)))
	next = min(max(next, last.clients+1), s.Max)
	if s.best < len(s.points)-1 && s.best >= 0 {
		return next, fact.New("search.ladder.top", "clients", s.points[s.best].clients)
	}
	return next, fact.New("search.ladder.growing", "clients", last.clients)
}

// factor returns the factor from one step of the ladder to the next: 2, or more if three fifths of
// the time would not suffice for a ladder to the largest load.
func (s *state) factor(from int) float64 {
	steps := 0.6 * float64(s.left) / float64(s.Around+s.Duration)
	return min(max(2, math.Pow(float64(s.Max)/float64(from), 1/max(1, steps))), 8)
}

// stopped reports whether throughput has stopped growing.
func (s *state) stopped() bool {
	n := len(s.points)
	last := s.points[n-1]
	if last.failed >= brokenErrors || n > 1 && last.failed > fewErrors && s.points[n-2].failed > fewErrors {
		return true
	}
	if s.best < 0 {
		return n > beyond // nothing moves, with however many
	}
	top := s.points[s.best]
	after := n - 1 - s.best
	if after >= 2 && last.yield < brokenDown*top.yield && s.points[n-2].yield < brokenDown*top.yield {
		return true
	}
	return after >= farBeyond || after >= beyond && s.slope(s.best) <= rising
}

// slope returns the growth per doubling of clients of the points from the given point on, as a
// share of the best.
func (s *state) slope(from int) float64 {
	var n, x, y, xx, xy float64
	for _, p := range s.points[from:] {
		u := math.Log2(float64(p.clients))
		n, x, y = n+1, x+u, y+p.yield
		xx, xy = xx+u*u, xy+u*p.yield
	}
	return (n*xy - x*y) / (n*xx - x*x) / s.points[s.best].yield
}
