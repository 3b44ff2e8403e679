package search

import (
	"cmp"
	"maps"
	"math"
	"slices"
)

// A point is all steps of one load together.
type point struct {
	clients int
	yield   float64 // mean, weighted by the steps' lengths; 0 if too much failed
	error   float64 // standard error of yield
	steps   int
	failed  float64
}

// A step with more errors than fewErrors is no candidate for the optimum, one
// with more than brokenErrors shows that the service has broken down.
const (
	fewErrors    = 0.05
	brokenErrors = 0.5
)

// An unknown spread of a step's yield is taken to be the first number, as a share of the yield; a
// known spread is never taken to be less than the second number.
const (
	unknownError = 0.03
	leastError   = 0.003
)

// Steps of the same load are taken to differ by the first number, as a share, as if so many steps
// had shown it, until they themselves show more or less.
const (
	guessed = 0.01
	guesses = 2
)

// relative is a step's standard error as a share of its yield.
func (s Step) relative() float64 {
	r := s.Error / s.Yield
	if !(s.Error > 0) || !(r > 0) || math.IsInf(r, 0) {
		return unknownError
	}
	return max(r, leastError)
}

// A standard error from the few batches of one hold is itself not known well: it is replaced by the
// mean, of squares, of itself with this weight and of the median of all steps.
const ownWeight = 0.25

// typical returns the median of the steps' relative standard errors.
func typical(done []Step) float64 {
	var all []float64
	for _, s := range done {
		if s.good() {
			all = append(all, s.relative())
		}
	}
	if len(all) == 0 {
		return unknownError
	}
	return median(all)
}

// good reports whether the step's yield counts.
func (s Step) good() bool {
	return s.Yield > 0 && !math.IsInf(s.Yield, 0) && s.Failed <= fewErrors
}

// merge makes points of steps, by load. Two steps of one load differ by more than their own errors;
// that spread from step to step is added to all errors.
func merge(done []Step) []point {
	groups := map[int][]Step{}
	for _, s := range done {
		groups[s.Clients] = append(groups[s.Clients], s)
	}
	between, usual := spread(groups), typical(done)
	var all []point
	for n, steps := range groups {
		p := point{clients: n, steps: len(steps)}
		var sum, weight, failed float64
		for _, s := range steps {
			failed += s.Failed
			if s.good() {
				own := ownWeight*s.relative()*s.relative() + (1-ownWeight)*usual*usual
				v := (own + between) * s.Yield * s.Yield
				sum, weight = sum+s.Yield/v, weight+1/v
			}
		}
		p.failed = failed / float64(len(steps))
		if weight > 0 && p.failed <= fewErrors {
			p.yield, p.error = sum/weight, 1/math.Sqrt(weight)
		}
		all = append(all, p)
	}
	slices.SortFunc(all, func(a, b point) int { return cmp.Compare(a.clients, b.clients) })
	return all
}

// spread returns the variance from step to step of the same load, as a share of the squared yield,
// beyond the variance that the steps' own errors explain.
func spread(groups map[int][]Step) float64 {
	var squares, own, degrees float64
	for _, n := range slices.Sorted(maps.Keys(groups)) {
		var good []Step
		mean := 0.0
		for _, s := range groups[n] {
			if s.good() {
				good = append(good, s)
				mean += s.Yield
			}
		}
		if len(good) < 2 {
			continue
		}
		mean /= float64(len(good))
		for _, s := range good {
			d := s.Yield/mean - 1
			squares += d * d
			own += s.relative() * s.relative() * float64(len(good)-1) / float64(len(good))
		}
		degrees += float64(len(good) - 1)
	}
	return max(0, squares-own+guessed*guessed*guesses) / (degrees + guesses)
}

// highest returns the place of the highest point, -1 if nothing was moved.
func (s *state) highest() int {
	best := -1
	for i, p := range s.points {
		if p.yield > 0 && (best < 0 || p.yield > s.points[best].yield) {
			best = i
		}
	}
	return best
}
