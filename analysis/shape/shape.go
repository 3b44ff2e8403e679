// Package shape says what the shape of a curve means: where it bends, which
// load is enough, where it breaks down, and in which range of loads a condition
// holds. All functions are pure and work on plain points; what a formula
// assumes is told in docs/methods.md.
package shape

import (
	"cmp"
	"math"
	"slices"

	"weir/analysis/stats"
)

// A Point is what one load gave. Several points may have the same load.
type Point struct {
	Load    float64  // clients, or arrivals per second
	Yield   float64  // bytes or operations per second
	Low     *float64 // 95% interval of the yield; nil: none
	High    *float64
	Batches int     // independent means that the interval stands on; 0: unknown, taken as many
	Latency float64 // mean, seconds; 0: unknown
	Errors  float64 // share of the operations that failed, 0 to 1
}

// FewErrors is the share of failed operations up to which a point is chosen.
const FewErrors = 0.05

// usable tells whether a point can be compared.
func (p *Point) usable() bool {
	return stats.Finite(p.Load, p.Yield) && p.Load >= 0 && p.Yield >= 0
}

// deviation returns the standard error of the yield, calculated back from the
// interval; ok is false without one.
func (p *Point) deviation() (e stats.Error, ok bool) {
	if p.Low == nil || p.High == nil || !stats.Finite(*p.Low, *p.High) {
		return e, false
	}
	e.Degrees = math.Inf(1)
	if p.Batches > 1 {
		e.Degrees = float64(p.Batches - 1)
	}
	// an interval is cut at zero, so its upper half is the whole one
	e.Size = max(0, *p.High-p.Yield) / stats.Student(e.Degrees)
	return e, true
}

// apart returns the difference of share*a and b in their yields with half of its
// 95% interval, wide enough for so many pairs that are compared at once. ok is
// false if one of them has no interval.
func apart(a *Point, share float64, b *Point, pairs int) (difference, half float64, ok bool) {
	difference = share*a.Yield - b.Yield
	x, hasA := a.deviation()
	y, hasB := b.deviation()
	if !hasA || !hasB {
		return difference, 0, false
	}
	x.Size *= share
	return difference, stats.Welch(x, y, pairs), true
}

// What counts as the same yield: a difference that nobody would pay for is no
// reason to take a heavier load, and a wide interval is no reason to call a
// load that gives much less as good.
const (
	negligible = 0.01 // of the best, whatever the intervals say
	noLess     = 0.90 // of the best, that the mean must reach
	// NearBest is the share of the best that a mean must reach where there is no
	// interval, and below which a yield is called less.
	NearBest = 0.95
)

// sameAs tells whether p's yield cannot be told from the best one's.
func (p *Point) sameAs(best *Point) bool {
	switch difference, half, ok := apart(best, 1, p, 1); {
	case difference <= negligible*best.Yield:
		return true
	case !ok:
		return p.Yield >= NearBest*best.Yield
	default:
		return difference <= half && p.Yield >= noLess*best.Yield
	}
}

// Best returns the place of the point with the largest yield, among those with
// few errors if there are any; -1 if none yields anything.
func Best(points []Point) int {
	pick := func(most float64) int {
		best := -1
		for i := range points {
			p := &points[i]
			if p.usable() && p.Yield > 0 && p.Errors <= most && (best < 0 || p.Yield > points[best].Yield) {
				best = i
			}
		}
		return best
	}
	if i := pick(FewErrors); i >= 0 {
		return i
	}
	return pick(1)
}

// Cheapest returns the place of the point of the least load whose yield cannot
// be told from the best one's and whose errors are no more than few, or no more
// than the best one's: that is best itself if there is no other. The yields are
// the same if the 95% interval of their difference holds 0, or if they differ by
// less than 1%; a mean below 90% of the best is never the same, and where there
// is no interval, the mean has to reach 95%. It is -1 if best is.
func Cheapest(points []Point, best int) int {
	at := best
	for i := range points {
		p := &points[i]
		if best >= 0 && p.usable() && p.Load < points[at].Load && p.Errors <= max(FewErrors, points[best].Errors) && p.sameAs(&points[best]) {
			at = i
		}
	}
	return at
}

// Power returns the place of the point with the largest yield over mean latency
// (Kleinrock, "Power and deterministic rules of thumb for probabilistic problems
// in computer communications", International Conference on Communications, 1979),
// among those with few errors; -1 if fewer than two points have a latency.
func Power(points []Point) int {
	best, known := -1, 0
	for i := range points {
		p := &points[i]
		if !p.usable() || !(p.Latency > 0) || math.IsInf(p.Latency, 0) || p.Errors > FewErrors {
			continue
		}
		known++
		if best < 0 || p.Yield/p.Latency > points[best].Yield/points[best].Latency {
			best = i
		}
	}
	if known < 2 {
		return -1
	}
	return best
}

// byLoad returns the usable points in the order of their loads, those of one
// load joined to their mean.
func byLoad(points []Point) []Point {
	var sorted []Point
	for _, p := range points {
		if p.usable() {
			sorted = append(sorted, p)
		}
	}
	slices.SortStableFunc(sorted, func(a, b Point) int { return cmp.Compare(a.Load, b.Load) })
	var out []Point
	for from := 0; from < len(sorted); {
		to := from
		for to < len(sorted) && sorted[to].Load == sorted[from].Load {
			to++
		}
		out = append(out, join(sorted[from:to]))
		from = to
	}
	return out
}

// join returns the mean of points of one load.
func join(points []Point) Point {
	if len(points) == 1 {
		return points[0]
	}
	out := Point{Load: points[0].Load}
	n, square, all := float64(len(points)), 0.0, true
	for i := range points {
		p := &points[i]
		out.Yield += p.Yield / n
		out.Latency += p.Latency / n
		out.Errors += p.Errors / n
		out.Batches += p.Batches
		e, ok := p.deviation()
		all = all && ok
		square += e.Size * e.Size
	}
	if all {
		half := stats.Student(math.Inf(1)) * math.Sqrt(square) / n
		low, high := max(0, out.Yield-half), out.Yield+half
		out.Low, out.High, out.Batches = &low, &high, 0
	}
	return out
}
