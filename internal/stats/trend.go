package stats

import "math"

// mostCorrelation is the largest correlation of neighbors that Slope allows for.
const mostCorrelation = 0.6

// A Trend is the straight line through a series, against its own noise.
type Trend struct {
	Change      float64 // from the series' start to its end, in the unit of its values
	Ratio       float64 // the same, over the series' mean; 0 if the mean is 0
	P           float64 // of a change that large or larger in a series without one, two-sided
	Correlation float64 // of neighbors, around the line; 0 if negative
}

// Certain reports whether the change is significant at the 5% level.
func (t Trend) Certain() bool { return t.P < 0.05 }

// LeastSlope is the least number of points for Slope.
const LeastSlope = 5

// Slope fits a line through batch means (see Batch: 10 to 20 of them) and tests its slope.
// Neighbors that resemble each other are fewer observations than they seem: with r the
// autocorrelation of lag 1 around the line, n points count as n (1-r)/(1+r) in the standard error
// and in the degrees of freedom (Santer and others, Journal of Geophysical Research 105, 2000). A
// negative r counts as 0, an r beyond 0.6 as 0.6: noise that outlasts two of twenty batches is a
// drift to anyone who needs a steady mean, and a warm-up, whose curve leaves such residuals around
// a line, must not excuse itself. ok is false below LeastSlope points and if a value is not finite.
func Slope(series []Point) (Trend, bool) {
	n := float64(len(series))
	if n < LeastSlope {
		return Trend{}, false
	}
	middle, span := middles(series)
	tm, xm := 0.0, 0.0
	for i, p := range series {
		tm += middle[i] / n
		xm += p.Value / n
	}
	var sxx, sxy float64
	for i, p := range series {
		sxx += (middle[i] - tm) * (middle[i] - tm)
		sxy += (middle[i] - tm) * (p.Value - xm)
	}
	slope := Ratio(sxy, sxx)
	rest := make([]float64, len(series))
	squares := 0.0
	for i, p := range series {
		rest[i] = p.Value - xm - slope*(middle[i]-tm)
		squares += rest[i] * rest[i]
	}
	if !Finite(slope, squares, span, xm) {
		return Trend{}, false
	}
	r := min(max(0, Lag1(rest)), mostCorrelation)
	t := Trend{Change: slope * span, Ratio: Ratio(slope*span, xm), Correlation: r}
	t.P = slopeP(slope, squares, sxx, n*(1-r)/(1+r), xm*xm*n)
	return t, true
}

// slopeP returns the two-sided p of a slope whose residuals have this sum of squares, with the
// given number of effective points. scale is the sum of squares of the values: residuals below
// rounding errors of it count as zero.
func slopeP(slope, squares, sxx, effective, scale float64) float64 {
	degrees := effective - 2
	if degrees < 1 || sxx <= 0 {
		return 1 // too similar for a test
	}
	if squares <= 1e-24*scale {
		if slope*slope*sxx <= 1e-24*scale {
			return 1
		}
		return 0 // a perfect line
	}
	return StudentP(slope/math.Sqrt(squares/(degrees*sxx)), degrees)
}

// middles returns the middle of each point's stretch and the length of all.
func middles(series []Point) (middle []float64, span float64) {
	middle = make([]float64, len(series))
	for i, p := range series {
		middle[i] = span + p.Weight/2
		span += p.Weight
	}
	return middle, span
}
