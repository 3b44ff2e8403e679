package shape

import (
	"math"
	"slices"

	"weir/internal/stats"
)

// What tells how a single client fares.
const (
	light    = 0.85 // of the saturation: up to there clients hardly meet, or meet more and more
	certain  = 2    // standard errors that the growth of the cycle must have to be believed
	leastCut = 0.5  // of the median: no point's relative error counts as less
)

// Saturation returns the load at which two asymptotes cross: the line from zero along which a client that is alone
// would go on, and the yield top (Denning and Buzen, ACM Computing Surveys 10, 1978). It is 0 where the lightest
// point yields nothing.
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

// alone returns the load per yield, the mean time of a client's cycle, that a client would have alone. The lightest
// point says it, and it is one point with its noise; so all light ones are taken, those below the saturation. Their
// mean is, if the cycle does not grow among them by more than noise; else it is where a line through them comes to at
// one client. Points without intervals cannot tell noise from growth; then it is the lightest point's.
func alone(loads []Point, top float64) float64 {
	cycle := loads[0].Load / loads[0].Yield
	errors := relativeErrors(loads)
	if errors == nil {
		return cycle
	}
	for range 2 { // the second time with a better idea of which ones are light
		n := 1
		for n < len(loads) && loads[n].Yield > 0 && loads[n].Load <= light*top*cycle {
			n++
		}
		cycle = atOne(loads[:n], errors[:n])
	}
	return cycle
}

// relativeErrors returns the standard errors of the yields as shares of them; nil if any is not known.
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

// atOne returns the cycle of one client, by a weighted line through the cycles of the points, which may only grow.
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
