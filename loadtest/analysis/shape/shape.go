// Package shape interprets the shape of a curve: it finds the bend, the sufficient load, the load
// at which the yield breaks down, and the range of loads in which a condition holds. All functions
// are pure and work on plain points; docs/methods.md describes the assumptions of the formulas.
package shape

import (
	"cmp"
	"math"
	"slices"

	"weir/internal/stats"
)

// A Point is the measurement of one load. Several points may have the same load.
type Point struct {
	Load    float64  // clients, or arrivals per second
	Yield   float64  // bytes or operations per second
	Low     *float64 // 95% interval of the yield; nil: unknown
	High    *float64
	Batches int     // independent means behind the interval; 0: unknown, assumed to be many
	Latency float64 // mean, seconds; 0: unknown
	Errors  float64 // share of the operations that failed, 0 to 1

	places []int // indexes of the points whose mean it is
}

// usable reports whether a point can be compared.
func (p *Point) usable() bool {
	return stats.Finite(p.Load, p.Yield) && p.Load >= 0 && p.Yield >= 0
}

// deviation returns the standard error of the yield, computed from the interval; ok is false
// without an interval.
func (p *Point) deviation() (e stats.Error, ok bool) {
	if p.Low == nil || p.High == nil || !stats.Finite(*p.Low, *p.High) {
		return e, false
	}
	e.Degrees = math.Inf(1)
	if p.Batches > 1 {
		e.Degrees = float64(p.Batches - 1)
	}
	// an interval is cut at zero, so its upper half has the full width
	e.Size = max(0, *p.High-p.Yield) / stats.Student(e.Degrees)
	return e, true
}

// apart returns the difference of share*a and b in their yields with half of its 95% interval, wide
// enough for so many pairs that are compared at once. ok is false if a point has no interval.
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

// Power returns the index of the point with the largest yield over mean latency (Kleinrock, "Power
// and deterministic rules of thumb for probabilistic problems in computer communications",
// International Conference on Communications, 1979), among the points with few errors; -1 if fewer
// than two points have a latency.
func Power(points []Point) int {
	best, known, few := -1, 0, FewErrors(points)
	for i := range points {
		p := &points[i]
		if !p.usable() || !(p.Latency > 0) || math.IsInf(p.Latency, 0) || p.Errors > few {
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

// byLoad returns the usable points in the order of their loads, with the points of the same load
// joined to their mean. If points of the same load differ by more than their intervals explain, all
// intervals are widened accordingly.
func byLoad(points []Point) []Point {
	var sorted []Point
	for i, p := range points {
		if p.usable() {
			p.places = []int{i}
			sorted = append(sorted, p)
		}
	}
	slices.SortStableFunc(sorted, func(a, b Point) int { return cmp.Compare(a.Load, b.Load) })
	var groups [][]Point
	for from := 0; from < len(sorted); {
		to := from
		for to < len(sorted) && sorted[to].Load == sorted[from].Load {
			to++
		}
		groups = append(groups, sorted[from:to])
		from = to
	}
	between := scatter(groups)
	var out []Point
	for _, group := range groups {
		out = append(out, join(group, between))
	}
	return out
}

// join returns the mean of points of one load. between is their relative variance beyond their own
// errors.
func join(points []Point, between float64) Point {
	if len(points) == 1 && between == 0 {
		return points[0]
	}
	out := Point{Load: points[0].Load}
	n, square, degrees, all := float64(len(points)), 0.0, 0.0, true
	for i := range points {
		p := &points[i]
		out.Yield += p.Yield / n
		out.Latency += p.Latency / n
		out.Errors += p.Errors / n
		out.places = append(out.places, p.places...)
		e, ok := p.deviation()
		all = all && ok
		square += e.Size * e.Size
		degrees += e.Degrees
	}
	if all {
		half := stats.Student(degrees) * math.Sqrt(square/n/n+between*out.Yield*out.Yield/n)
		low, high := max(0, out.Yield-half), out.Yield+half
		out.Low, out.High = &low, &high
		if !math.IsInf(degrees, 1) {
			out.Batches = int(degrees) + 1
		}
	}
	return out
}
