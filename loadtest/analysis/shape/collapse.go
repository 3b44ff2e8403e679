package shape

import "math"

// A Breakdown is a load beyond the best load at which the yield broke down.
type Breakdown struct {
	Point     int     // index of the lightest such load
	Left      float64 // share of the best yield
	Stalled   bool    // the yield was below 1% of the best yield
	Certain   bool    // by confidence intervals; false: by means, without intervals
	Recovered int     // index of a heavier load without a breakdown; -1: no such load
}

// Limits of a breakdown: less than half of the best yield is left. The yield of a service that is
// merely overloaded declines; a service whose yield falls by half does its work twice, swaps, or
// has lost servers or threads.
const (
	brokenDown = 0.5
	stalled    = 0.01
)

// Collapse returns the lightest load beyond the best load at which the yield was below half of the
// best yield, by the 95% interval of the difference, or nil if there is no such load. If the loads
// of points rise and then fall, only the rising part counts.
func Collapse(points []Point, best int) *Breakdown {
	if best < 0 {
		return nil
	}
	up := points
	if peak, ok := upAndDown(points); ok && best <= peak {
		up = points[:peak+1]
	}
	var found *Breakdown
	for i := range up {
		p := &points[i]
		if !p.usable() || p.Load <= points[best].Load {
			continue
		}
		if below, certain := broken(&points[best], p); below && (found == nil || p.Load < points[found.Point].Load) {
			left := p.Yield / points[best].Yield
			found = &Breakdown{Point: i, Left: left, Stalled: left < stalled, Certain: certain, Recovered: -1}
		}
	}
	if found == nil {
		return nil
	}
	for i := range up {
		if points[i].usable() && points[i].Load > points[found.Point].Load {
			if below, _ := broken(&points[best], &points[i]); !below && points[i].Yield >= brokenDown*points[best].Yield {
				found.Recovered = i
				break
			}
		}
	}
	return found
}

func broken(best, p *Point) (below, certain bool) {
	difference, half, ok := apart(best, brokenDown, p, 1)
	return difference > half, ok
}

// A Return is a load that was held on the way up and again on the way down, or twice at any time.
type Return struct {
	Load    float64
	Up      int // indexes of the points, the earlier point first
	Down    int
	Change  float64 // of the yield, from the earlier to the later point
	Certain bool    // 5% or more, and the 95% interval of the difference excludes 0
}

// leastChange is the minimum change of a yield on the way down that is reported.
const leastChange = 0.05

// Hysteresis compares points of the same load before and after the heaviest load. points are in the
// order of time; if their loads do not rise to the heaviest load and fall after it, the result is
// empty.
func Hysteresis(points []Point) []Return {
	peak, ok := upAndDown(points)
	if !ok {
		return nil
	}
	var out []Return
	for down := peak + 1; down < len(points); down++ {
		for up := peak - 1; up >= 0; up-- {
			a, b := &points[up], &points[down]
			if a.Load != b.Load || !a.usable() || !b.usable() || !(a.Yield > 0) {
				continue
			}
			r := Return{Load: a.Load, Up: up, Down: down, Change: (b.Yield - a.Yield) / a.Yield}
			out = append(out, r)
			break
		}
	}
	for i := range out {
		r := &out[i]
		difference, half, known := apart(&points[r.Up], 1, &points[r.Down], len(out))
		r.Certain = known && math.Abs(r.Change) >= leastChange && math.Abs(difference) > half
	}
	return out
}

// Repeated compares, for each load that was held more than once, the two points with the largest
// difference. A difference is certain by the 99% interval of the differences of all such pairs.
func Repeated(points []Point) []Return {
	var out []Return
	place, pairs := map[float64]int{}, 0
	for later := range points {
		for earlier := range later {
			a, b := &points[earlier], &points[later]
			if a.Load != b.Load || !a.usable() || !b.usable() || !(a.Yield > 0) {
				continue
			}
			pairs++
			i, ok := place[a.Load]
			if !ok {
				i = len(out)
				place[a.Load], out = i, append(out, Return{})
			}
			if r := (Return{Load: a.Load, Up: earlier, Down: later, Change: (b.Yield - a.Yield) / a.Yield}); !ok ||
				math.Abs(r.Change) > math.Abs(out[i].Change) {
				out[i] = r
			}
		}
	}
	for i := range out {
		difference, half, known := apart(&points[out[i].Up], 1, &points[out[i].Down], surely*pairs)
		out[i].Certain = known && math.Abs(difference) > half
	}
	return out
}

// Rise returns the number of points on the way up, or the number of all points if loads do not rise
// and then fall.
func Rise(points []Point) int {
	if peak, ok := upAndDown(points); ok {
		return peak + 1
	}
	return len(points)
}

// upAndDown returns the index of the last of the heaviest loads. ok is false if loads do not rise
// to it, if no load comes after it, or if they rise again.
func upAndDown(points []Point) (peak int, ok bool) {
	for i := range points {
		if points[i].Load >= points[peak].Load {
			peak = i
		}
	}
	for i := 1; i < len(points); i++ {
		if i <= peak && points[i].Load < points[i-1].Load || i > peak && points[i].Load > points[i-1].Load {
			return 0, false
		}
	}
	return peak, peak < len(points)-1
}
