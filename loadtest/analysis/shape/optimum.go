package shape

import (
	"cmp"
	"math"
	"slices"

	"weir/internal/stats"
)

// An Optimum is the load with the highest yield, as far as points determine it. Its numbers are
// indexes of the points passed to OptimumOf.
type Optimum struct {
	Best   int     // the largest yield
	Least  int     // the lightest sufficient load, which is the result
	Equals []int   // loads that cannot be distinguished from the best load, in order of load, including Best and Least
	Level  float64 // mean yield of the equal loads, weighted by their intervals
	Inside bool    // the heaviest load certainly yields less
}

// Low returns the index of the lightest of the equal loads.
func (o *Optimum) Low() int { return o.Equals[0] }

// High returns the index of the heaviest of the equal loads.
func (o *Optimum) High() int { return o.Equals[len(o.Equals)-1] }

// Limits for yields that count as equal.
const (
	fewErrors = 0.05 // maximum share of failed operations of a point that is chosen
	// MostErrors is the share of failed operations from which a point is ignored: its yield is not
	// the yield of the service.
	MostErrors = 0.9
	// NearBest is the share of the best yield that a mean must reach if there is no interval.
	NearBest   = 0.95
	enough     = 0.97 // of the equal loads' level, and of the low end of the best interval
	negligible = 0.01 // of the best yield, regardless of the intervals
	surely     = 5    // factor of the number of comparisons: a maximum in the tested range needs 99% intervals
	collapsed  = 0.8  // of the best yield: with fewer batches than manyBatches, only a yield below this share is certainly less

	// manyBatches is the number of batches from which an interval is reliable: three or four can be
	// close together by chance.
	manyBatches = 5
)

// OptimumOf returns the optimum among the points with few errors; ok is false if no point had a
// successful operation.
//
// A load is less if any other load yields more by at least 1% and by more than the 95% interval of
// their difference, which is wide enough for the comparisons of one load with all others
// (Bonferroni). So the truly best load is called less in at most 2.5% of cases, whichever point
// happens to be highest: Gupta's subset selection (Technometrics 7, 1965) with Welch's intervals of
// moderated errors. If a yield has no interval, a load is less if its yield is below 95% of another
// yield. All loads that are not less are equal. The sufficient load is the lightest of these whose
// mean reaches 97% of their level and of the lower end of the best load's interval.
func OptimumOf(points []Point) (o Optimum, ok bool) {
	loads := byLoad(points)
	chosen := candidates(loads)
	if len(chosen) == 0 {
		return o, false
	}
	moderate(chosen)
	falling := slices.SortedStableFunc(slices.Values(chosen), func(a, b *rival) int { return cmp.Compare(b.Yield, a.Yield) })
	var equals []*rival
	best := falling[0]
	for _, p := range chosen {
		if !slices.ContainsFunc(falling, func(other *rival) bool { return p.lessThan(other, len(chosen)-1) }) {
			equals = append(equals, p)
		}
	}
	o.Level = level(equals)
	o.Best = best.place(points)
	o.Least = -1
	least := NearBest * o.Level
	if best.Low != nil {
		least = enough * max(o.Level, min(*best.Low, best.Yield))
	}
	for _, p := range equals {
		at := p.place(points)
		o.Equals = append(o.Equals, at)
		if o.Least < 0 && p.Yield >= least {
			o.Least = at
		}
	}
	heaviest := newRival(&loads[len(loads)-1])
	o.Inside = equals[len(equals)-1].Load < heaviest.Load && heaviest.lessThan(best, surely*len(chosen))
	if min(heaviest.batches(), best.batches()) < manyBatches {
		o.Inside = o.Inside && heaviest.Yield < collapsed*best.Yield
	}
	return o, true
}

// A rival is a load with the standard error of its yield; known is false if the error is unknown.
type rival struct {
	*Point
	error stats.Error
	known bool
}

func newRival(p *Point) *rival {
	r := &rival{Point: p}
	r.error, r.known = p.deviation()
	return r
}

// batches returns the number of batches of p's interval, 0 if p has no interval, infinity if its
// yield is known exactly.
func (p *rival) batches() float64 {
	if !p.known {
		return 0
	}
	e, _ := p.deviation() // before moderation
	return e.Degrees + 1
}

// prior is the weight, in degrees of freedom, of the noise of all loads in the error of each load.
const prior = 4

// moderate makes the standard errors depend less on the few batches of one load: the relative
// variance of each load becomes the mean of its own and of the median relative variance, weighted
// by their degrees of freedom (Smyth, Statistical Applications in Genetics and Molecular Biology 3,
// 2004, with a fixed prior).
func moderate(all []*rival) {
	var relative []float64
	for _, p := range all {
		if p.known {
			relative = append(relative, p.error.Size/p.Yield)
		}
	}
	if len(relative) < 3 {
		return
	}
	slices.Sort(relative)
	typical := relative[len(relative)/2]
	for _, p := range all {
		if d := p.error.Degrees; p.known && !math.IsInf(d, 1) {
			own := p.error.Size / p.Yield
			p.error = stats.Error{Size: p.Yield * math.Sqrt((d*own*own+prior*typical*typical)/(d+prior)), Degrees: d + prior}
		}
	}
}

// FewErrors returns the maximum share of failed operations of a point that is chosen: 5%, or twice
// the share of the point with the fewest failures. If one operation in twenty fails at every load,
// no load is excluded because it is slightly above that.
func FewErrors(points []Point) float64 {
	least := 1.0
	for i := range points {
		if p := &points[i]; p.usable() && p.Yield > 0 {
			least = min(least, p.Errors)
		}
	}
	return max(fewErrors, 2*least)
}

// candidates returns the loads that may be the best: loads with few errors and any success.
func candidates(loads []Point) (all []*rival) {
	few := FewErrors(loads)
	for i := range loads {
		if p := &loads[i]; p.Yield > 0 && p.Errors <= few && p.Errors < 1 {
			all = append(all, newRival(p))
		}
	}
	return all
}

// lessThan reports whether p certainly yields less than other, if p is compared with pairs other
// loads.
func (p *rival) lessThan(other *rival, pairs int) bool {
	difference := other.Yield - p.Yield
	if difference <= negligible*other.Yield {
		return false
	}
	if !p.known || !other.known {
		return p.Yield < NearBest*other.Yield
	}
	// no interval is narrower than with exactly known errors
	return difference > 1.9*math.Hypot(p.error.Size, other.error.Size) && difference > stats.Welch(p.error, other.error, pairs)
}

// level returns the mean yield of points, weighted by their intervals. It is a better estimate than
// the highest yield, which is the highest partly by chance. Without intervals it returns the
// highest yield.
func level(points []*rival) float64 {
	errors := make([]float64, len(points))
	most := 0.0
	for i, p := range points {
		most, errors[i] = max(most, p.Yield), p.error.Size
		if !p.known {
			errors[i] = math.NaN()
		}
	}
	// errors from few batches are uncertain: each counts as at least half the median
	floor := leastCut * slices.Sorted(slices.Values(errors))[len(errors)/2]
	if !(floor > 0) || slices.ContainsFunc(errors, math.IsNaN) {
		return most
	}
	var sum, weights float64
	for i, p := range points {
		w := max(errors[i], floor)
		sum, weights = sum+p.Yield/w/w, weights+1/w/w
	}
	return sum / weights
}

// place returns the index of the point of p's load that is nearest to p's mean.
func (p *Point) place(points []Point) int {
	return slices.MinFunc(p.places, func(a, b int) int {
		return cmp.Compare(math.Abs(points[a].Yield-p.Yield), math.Abs(points[b].Yield-p.Yield))
	})
}

// The prior of the relative deviation between points of one load: guessed, with the weight of
// guesses points.
const (
	guessed = 0.01
	guesses = 2
)

// scatter returns the variance between points of the same load beyond the points' own errors, as a
// share of the squared yield; 0 if no load was held twice.
func scatter(groups [][]Point) float64 {
	var squares, own, degrees float64
	for _, group := range groups {
		mean := 0.0
		for i := range group {
			mean += group[i].Yield / float64(len(group))
		}
		if len(group) < 2 || !(mean > 0) {
			continue
		}
		more := float64(len(group) - 1)
		for i := range group {
			e, _ := group[i].deviation()
			squares += stats.Ratio((group[i].Yield-mean)*(group[i].Yield-mean), mean*mean)
			own += stats.Ratio(e.Size*e.Size*more, mean*mean*float64(len(group)))
		}
		degrees += more
	}
	if degrees == 0 {
		return 0
	}
	return max(0, squares-own+guessed*guessed*guesses) / (degrees + guesses)
}
