package shape

import (
	"fmt"
	"math"
	"slices"

	"weir/internal/stats"
)

// A Curve returns the yield at a load.
type Curve func(load float64) float64

// A Knee is the strongest bend of a curve: the point farthest above the straight line from its
// lightest load to its best load, with both axes scaled to 0 to 1.
type Knee struct {
	Load  float64
	Low   *float64 // 95% interval of Load; nil: unknown
	High  *float64
	Yield float64
	Bend  float64 // distance above the straight line, as a share of the whole rise
}

// LeastLoads is the minimum number of tested loads for a knee: with three loads a bend could be
// chance.
const LeastLoads = 4

// Further conditions of a knee.
const (
	leastBend  = 0.1 // below that the curve counts as straight
	grid       = 400 // number of loads at which a curve is sampled, and again between two of them
	mostOfEach = 0.9 // minimum share of resampled curves with a knee for an interval
)

// KneeOf returns the knee of a fitted curve over the tested range of loads, up to the curve's best
// load in it, with the interval of the knees of the resampled curves. why is the reason if there is
// no knee. tested is the number of loads that the curve was fitted to.
func KneeOf(f Curve, from, to float64, tested int, resampled []Curve) (k *Knee, why string) {
	if tested < LeastLoads {
		return nil, fmt.Sprintf("%d loads were tested: a knee needs %d", tested, LeastLoads)
	}
	k, why = kneeOf(f, from, to)
	if k == nil {
		return nil, why
	}
	var all []float64
	for _, g := range resampled {
		if other, _ := kneeOf(g, from, to); other != nil {
			all = append(all, other.Load)
		}
	}
	if len(all) >= 20 && float64(len(all)) >= mostOfEach*float64(len(resampled)) {
		slices.Sort(all)
		low, high := min(k.Load, stats.SortedQuantile(all, 0.025)), max(k.Load, stats.SortedQuantile(all, 0.975))
		k.Low, k.High = &low, &high
	}
	return k, ""
}

func kneeOf(f Curve, from, to float64) (k *Knee, why string) {
	if !(to > from) || !stats.Finite(from, to) {
		return nil, "the tested loads are all the same"
	}
	x, y := sampled(f, from, to)
	if !stats.Finite(y...) {
		return nil, "the fitted curve is not finite over the tested range"
	}
	end := riseEnd(y)
	if end == 0 {
		return nil, "the curve does not rise"
	}
	if at, bend := bendOf(x[:end+1], y[:end+1]); at > 0 && bend >= leastBend {
		return refine(f, x, at, end), ""
	}
	// a straight rise up to a peak within the range bends at the peak
	if left := 1 - (x[end]-from)/(to-from); left >= leastBend {
		return &Knee{Load: x[end], Yield: y[end], Bend: left}, ""
	}
	return nil, "the curve is straight: it does not bend in the tested range"
}

func sampled(f Curve, from, to float64) (x, y []float64) {
	for i := range grid + 1 {
		x = append(x, from+(to-from)*float64(i)/grid)
		y = append(y, f(x[i]))
	}
	return x, y
}

// riseEnd returns the index of the maximum of a curve, the last index of a plateau; 0 if the curve
// never rises above its start.
func riseEnd(y []float64) int {
	top := slices.Max(y)
	small := 1e-9 * math.Abs(top)
	if top-y[0] <= small {
		return 0
	}
	for i := len(y) - 1; ; i-- {
		if y[i] >= top-small {
			return i
		}
	}
}

// bendOf returns the point that Kneedle finds farthest above the straight line of the curve, and
// its distance from the line; at is -1 if there is no such point.
func bendOf(x, y []float64) (at int, bend float64) {
	xs, ys := unitSquare(x), unitSquare(y)
	at = -1
	for _, i := range (Kneedle{Sensitivity: 1}).Find(x, y) {
		if above := ys[i] - xs[i]; above > bend {
			at, bend = i, above
		}
	}
	return at, bend
}

// refine searches at a higher resolution between the neighbors of the index at.
func refine(f Curve, x []float64, at, end int) *Knee {
	first, top := f(x[0]), f(x[end])
	slope := (top - first) / (x[end] - x[0])
	above := func(load float64) float64 { return f(load) - first - slope*(load-x[0]) }
	best := x[at]
	left, right := x[max(0, at-1)], x[min(end, at+1)]
	for i := range grid + 1 {
		if load := left + (right-left)*float64(i)/grid; above(load) > above(best) {
			best = load
		}
	}
	return &Knee{Load: best, Yield: f(best), Bend: above(best) / (top - first)}
}

// KneeAmong finds the knee among tested points if no curve could be fitted. It applies Kneedle with
// a sensitivity of 1 to the points up to the heaviest load that is as good as the best. The
// lightest load must yield certainly less than the best load, and the knee must exceed the noise of
// the points. why is the reason if there is no knee.
func KneeAmong(points []Point) (k *Knee, why string) {
	loads := byLoad(points)
	if len(loads) < LeastLoads {
		return nil, fmt.Sprintf("%d loads were tested: a knee needs %d", len(loads), LeastLoads)
	}
	o, ok := OptimumOf(loads)
	if !ok || o.Low() == 0 {
		return nil, "the curve does not rise"
	}
	end := o.High()
	var x, y []float64
	for _, p := range loads[:end+1] {
		x, y = append(x, p.Load), append(y, p.Yield)
	}
	if at, bend := bendOf(x, y); at > 0 && bend >= leastBend && stands(loads, at, end) {
		return &Knee{Load: x[at], Yield: y[at], Bend: bend}, ""
	}
	from, to, top := loads[0].Load, loads[len(loads)-1].Load, &loads[o.Least]
	if left := 1 - (top.Load-from)/(to-from); o.Inside && left >= leastBend {
		return &Knee{Load: top.Load, Yield: top.Yield, Bend: left}, ""
	}
	return nil, "the points do not bend by more than their spread in the tested range"
}

// stands reports whether a point is above the straight line from the first point to the end by more
// than the 95% interval of that distance, which is wide enough for all points that may be the knee.
// Without intervals it returns true.
func stands(loads []Point, at, end int) bool {
	share := (loads[at].Load - loads[0].Load) / (loads[end].Load - loads[0].Load)
	height := loads[at].Yield - (1-share)*loads[0].Yield - share*loads[end].Yield
	sum, degrees := 0.0, math.Inf(1)
	for _, part := range []struct {
		of     int
		weight float64
	}{{at, 1}, {0, 1 - share}, {end, share}} {
		e, ok := loads[part.of].deviation()
		if !ok {
			return true
		}
		sum += part.weight * part.weight * e.Size * e.Size
		degrees = min(degrees, e.Degrees)
	}
	known := stats.Error{Degrees: math.Inf(1)}
	return height > stats.Welch(stats.Error{Size: math.Sqrt(sum), Degrees: degrees}, known, end-1)
}
