package stats

import "math"

// MannKendall returns the two-sided p of the hypothesis that x has no monotonic trend: the rank test of Mann
// (Econometrica 13, 1945) with the normal approximation, Kendall's correction for ties and for continuity. Below five
// values it is 1.
func MannKendall(x []float64) float64 {
	n := float64(len(x))
	if n < 5 {
		return 1
	}
	score, ties := 0.0, map[float64]float64{}
	for i := range x {
		ties[x[i]]++
		for j := i + 1; j < len(x); j++ {
			switch {
			case x[j] > x[i]:
				score++
			case x[j] < x[i]:
				score--
			}
		}
	}
	variance := n * (n - 1) * (2*n + 5)
	for _, t := range ties {
		variance -= t * (t - 1) * (2*t + 5)
	}
	if variance <= 0 {
		return 1
	}
	return math.Erfc(max(0, math.Abs(score)-1) / math.Sqrt(variance/18) / math.Sqrt2)
}

// Shift returns the two-sided p of the hypothesis that x has one level, against two levels with a step between them:
// Student's t of the best split with two values or more on each side, times the number of splits (Bonferroni). From ten
// values on, neighbors that resemble each other count as fewer, as in Slope. Below five values it is 1.
func Shift(x []float64) float64 {
	const side = 2
	if len(x) < 5 {
		return 1
	}
	least, splits := 1.0, float64(len(x)-2*side+1)
	for k := side; k <= len(x)-side; k++ {
		a, b := x[:k], x[k:]
		n, m := float64(len(a)), float64(len(b))
		off := math.Abs(Mean(a) - Mean(b))
		share := independent(a, b)
		spread := math.Sqrt((Squares(a) + Squares(b)) / (n + m - 2) * (1/n + 1/m) / share)
		switch {
		case off <= 1e-12*math.Abs(Mean(x)):
		case spread <= 0:
			return 0
		default:
			least = min(least, StudentP(off/spread, n+m-2))
		}
	}
	return min(1, splits*least)
}

// independent returns the effective share of the values of two levels, which is reduced because
// neighbors resemble each other: (1-r)/(1+r), with r the autocorrelation of lag 1 around the
// levels, of which n values show about 3/n too little. Fewer than ten values are too few to
// estimate r.
func independent(a, b []float64) float64 {
	if len(a)+len(b) < 10 {
		return 1
	}
	var rest []float64
	for _, x := range [][]float64{a, b} {
		for _, v := range x {
			rest = append(rest, v-Mean(x))
		}
	}
	r := min(max(0, Lag1(rest)+3/float64(len(rest))), mostCorrelation)
	return (1 - r) / (1 + r)
}
