package shape

import (
	"cmp"
	"math"
	"slices"

	"weir/internal/stats"
)

// An Optimum is the load that gives most, as far as points tell it. Its numbers are places in the points that
// OptimumOf was given.
type Optimum struct {
	Best   int     // the largest yield
	Least  int     // the lightest load that is enough: it leads
	Equals []int   // points whose load cannot be distinguished from the best one, by load; Best and Least are among them
	Level  float64 // mean yield of the equal loads, weighted by their intervals
	Inside bool    // the heaviest load certainly gives less
}

// Low returns the place of the lightest of the equal loads.
func (o *Optimum) Low() int { return o.Equals[0] }

// High returns the place of the heaviest of the equal loads.
func (o *Optimum) High() int { return o.Equals[len(o.Equals)-1] }

// What counts as the same yield.
const (
	fewErrors = 0.05 // share of failed operations up to which a point is chosen
	// MostErrors is the share of failed operations from which a point does not count at all: what it gave is not the
	// service's yield.
	MostErrors = 0.9
	// NearBest is the share of the best that a mean must reach where there is no interval.
	NearBest   = 0.95
	enough     = 0.97 // of the equals' level, and of the lower end of the best one's interval
	negligible = 0.01 // of the best, whatever the intervals say
	surely     = 5    // times as many comparisons: a maximum in the tested range is claimed with 99% intervals
	collapsed  = 0.8  // of the best: where an interval is of fewer batches than the next figure, only less than that is certainly less

	// manyBatches is from how many batches an interval is taken for what it says: three or four can lie close
	// together by chance.
	manyBatches = 5
)

// OptimumOf returns the optimum among the points with few errors; ok is false if nothing went well at any.
//
// A load is less if any other load gives more by at least 1% and by more than the 95% interval of their difference,
// which is wide enough for the comparisons of one load with all others (Bonferroni). So the truly best load is called
// less in at most 2.5% of cases, whichever point happens to be highest: Gupta's subset selection (Technometrics 7,
// 1965) with Welch's intervals of moderated errors. Where a yield has no interval, a load is less below 95% of
// another. All loads that are not less are equal. Of these the lightest is enough whose mean reaches 97% of their
// level and of the lower end of the best one's interval.
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

// A rival is a load with the standard error of its yield; known is false if there is none.
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

// batches returns how many batches p's interval comes from, 0 where there is none, infinite where it is known
// exactly.
func (p *rival) batches() float64 {
	if !p.known {
		return 0
	}
	e, _ := p.deviation() // before it was moderated
	return e.Degrees + 1
}

// prior is as how many degrees of freedom what all loads show of the noise counts for each of them.
const prior = 4

// moderate makes the standard errors less a matter of the few batches of one load: the relative variance of each
// becomes the mean of its own and of the median one, weighted by their degrees of freedom (Smyth, Statistical
// Applications in Genetics and Molecular Biology 3, 2004, with a fixed prior).
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

// FewErrors returns the share of failed operations up to which a point is chosen: 5%, or twice that of the point with the
// fewest. Where one operation in twenty fails whatever the load, no load is left out because it is just above.
func FewErrors(points []Point) float64 {
	least := 1.0
	for i := range points {
		if p := &points[i]; p.usable() && p.Yield > 0 {
			least = min(least, p.Errors)
		}
	}
	return max(fewErrors, 2*least)
}

// candidates are the loads that may be the best: those with few errors, and any success.
func candidates(loads []Point) (all []*rival) {
	few := FewErrors(loads)
	for i := range loads {
		if p := &loads[i]; p.Yield > 0 && p.Errors <= few && p.Errors < 1 {
			all = append(all, newRival(p))
		}
	}
	return all
}

// lessThan reports whether p certainly yields less than other, if p is compared with so many.
func (p *rival) lessThan(other *rival, pairs int) bool {
	difference := other.Yield - p.Yield
	if difference <= negligible*other.Yield {
		return false
	}
	if !p.known || !other.known {
		return p.Yield < NearBest*other.Yield
	}
	// no interval is narrower than that of errors that are known exactly
	return difference > 1.9*math.Hypot(p.error.Size, other.error.Size) && difference > stats.Welch(p.error, other.error, pairs)
}

// level is the mean yield of points, weighted by their intervals. It is a better figure than the highest of them,
// which is the highest by chance as well. Without intervals it is the highest.
func level(points []*rival) float64 {
	errors := make([]float64, len(points))
	most := 0.0
	for i, p := range points {
		most, errors[i] = max(most, p.Yield), p.error.Size
		if !p.known {
			errors[i] = math.NaN()
		}
	}
	// errors from few batches are not known well: none counts as less than half the median
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

// place returns the place of the point of p's load that is nearest to p's mean.
func (p *Point) place(points []Point) int {
	return slices.MinFunc(p.places, func(a, b int) int {
		return cmp.Compare(math.Abs(points[a].Yield-p.Yield), math.Abs(points[b].Yield-p.Yield))
	})
}

// Points of one load are taken to differ by the first figure, as a share, as if so many points had shown it, until
// they themselves show more or less.
const (
	guessed = 0.01
	guesses = 2
)

// scatter is the variance from point to point of the same load, as a share of the squared yield, beyond what the
// points' own errors explain; 0 where no load was held twice.
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
