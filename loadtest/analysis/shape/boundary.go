package shape

import (
	"cmp"
	"math"
	"slices"

	"weir/internal/stats"
)

// A Limit is an upper or lower bound of a value.
type Limit struct {
	Sign  string // < <= > >=
	Value float64
}

// Holds reports whether v keeps the limit; NaN never does.
func (l Limit) Holds(v float64) bool {
	switch l.Sign {
	case "<":
		return v < l.Value
	case "<=":
		return v <= l.Value
	case ">":
		return v > l.Value
	case ">=":
		return v >= l.Value
	}
	return false
}

// below reports whether the limit is an upper bound.
func (l Limit) below() bool { return l.Sign == "<" || l.Sign == "<=" }

// A Range is the range of loads at which a limit is kept.
type Range struct {
	From     *float64 // lightest load of the first tested loads that keep it; nil: no load does
	To       *float64 // heaviest of these loads; nil: no load keeps the limit
	Broken   *float64 // the first tested load beyond To; nil: there is no such load
	Crossing *float64 // intersection of the limit with the straight line from To to Broken
	Lightest bool     // the lightest load keeps the limit
	Again    *float64 // a load beyond Broken that keeps the limit again; nil: no load does
}

// Within returns the range of loads in which values keep the limit l. Loads without a value (NaN or
// infinite) are ignored; of several values at one load, the worst counts. Values between two tested
// loads are interpolated linearly: for the latency of a closed system beyond its saturation that
// line is the asymptote itself, R = N/X - Z. The result does not extend beyond the tested loads.
func Within(loads, values []float64, l Limit) Range {
	x, y := worstByLoad(loads, values, l)
	r := Range{}
	first := slices.IndexFunc(y, l.Holds)
	if first < 0 {
		return r
	}
	r.Lightest, r.From = first == 0, &x[first]
	last := first
	for last+1 < len(y) && l.Holds(y[last+1]) {
		last++
	}
	r.To = &x[last]
	if last+1 == len(y) {
		return r
	}
	r.Broken = &x[last+1]
	share := (l.Value - y[last]) / (y[last+1] - y[last])
	at := x[last] + share*(x[last+1]-x[last])
	if share >= 0 && share <= 1 && stats.Finite(at) {
		r.Crossing = &at
	}
	if again := slices.IndexFunc(y[last+1:], l.Holds); again >= 0 {
		r.Again = &x[last+1+again]
	}
	return r
}

func worstByLoad(loads, values []float64, l Limit) (x, y []float64) {
	type pair struct{ load, value float64 }
	var all []pair
	for i := range min(len(loads), len(values)) {
		if stats.Finite(loads[i], values[i]) {
			all = append(all, pair{loads[i], values[i]})
		}
	}
	slices.SortStableFunc(all, func(a, b pair) int { return cmp.Compare(a.load, b.load) })
	for _, p := range all {
		n := len(x)
		switch {
		case n == 0 || x[n-1] != p.load:
			x, y = append(x, p.load), append(y, p.value)
		case l.below():
			y[n-1] = math.Max(y[n-1], p.value)
		default:
			y[n-1] = math.Min(y[n-1], p.value)
		}
	}
	return x, y
}
