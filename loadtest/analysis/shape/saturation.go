package shape

import (
	"math"
	"slices"

	"weir/internal/stats"
)

// Limits for the estimate of the cycle of a single client.
const (
	light    = 0.85 // of the saturation: below it clients compete little, or gradually more
	certain  = 2    // minimum growth of the cycle, in standard errors, that counts as certain
	leastCut = 0.5  // of the median: minimum of the relative error of a point
)

// Saturation returns the load at which two asymptotes cross: the line through zero that a client
// without competition would follow, and the yield top (Denning and Buzen, ACM Computing Surveys 10,
// 1978). It returns 0 if the lightest point yields nothing.
func Saturation(points []Point, top float64) float64 {
	loads := byLoad(points)
	if len(loads) == 0 || !(loads[0].Yield > 0) {
		return 0
	}
	if x := top * alone(loads, top); stats.Finite(x) {
		return x
	}
	return 0
}

// alone returns the load per yield, which is the mean time of a client's cycle, that a client would
// have alone. The lightest point estimates it, but it is a single point with noise. Therefore all
// light points, below the saturation, are used: the result is their mean if the cycle does not grow
// among them by more than noise, else the value at one client of a line through them. Points
// without intervals do not distinguish noise from growth; the result is then the cycle of the
// lightest point.
func alone(loads []Point, top float64) float64 {
	cycle := loads[0].Load / loads[0].Yield
	errors := relativeErrors(loads)
	if errors == nil {
		return cycle
	}
	for range 2 { // the second time with a better estimate of the light loads
		n := 1
		for n < len(loads) && loads[n].Yield > 0 && loads[n].Load <= light*top*cycle {
			n++
		}
		cycle = atOne(loads[:n], errors[:n])
	}
	return cycle
}

// relativeErrors returns the standard errors of the yields as shares of them, or nil if an error is
// unknown.
func relativeErrors(loads []Point) []float64 {
	out := make([]float64, len(loads))
	for i := range loads {
		e, ok := loads[i].deviation()
		if !ok || !(loads[i].Yield > 0) {
			return nil
		}
		out[i] = e.Size / loads[i].Yield
	}
	floor := slices.Sorted(slices.Values(out))[len(out)/2] * leastCut
	if !(floor > 0) {
		return nil
	}
	for i := range out {
		out[i] = max(out[i], floor)
	}
	return out
}

// atOne returns the cycle of one client from a weighted line through the cycles of the points. The
// line may only grow.
func atOne(loads []Point, errors []float64) float64 {
	var w, x, y, xx, xy float64
	at := func(i int) (weight, more, cycle float64) {
		cycle = loads[i].Load / loads[i].Yield
		se := errors[i] * cycle
		return 1 / (se * se), loads[i].Load - min(1, loads[0].Load), cycle
	}
	for i := range loads {
		a, b, c := at(i)
		w, x, y = w+a, x+a*b, y+a*c
	}
	x, y = x/w, y/w
	for i := range loads {
		a, b, c := at(i)
		xx, xy = xx+a*(b-x)*(b-x), xy+a*(b-x)*(c-y)
	}
	slope := xy / xx
	if len(loads) < 2 || !(xx > 0) || !(slope*math.Sqrt(xx) > certain) || !(y-slope*x > 0) {
		return y
	}
	return y - slope*x
}
