package fit

import (
	"math"

	"weir/internal/stats"
)

// Values of Fits.Unfit: the reason why even the best model does not describe the points.
const (
	NoBetter = "constant" // it is no better than a constant by more than chance
	Scatter  = "scatter"  // it explains less than half of the variance
	Misfit   = "misfit"   // it misses the points by more than their spread explains
)

// Limits of a model that describes the points.
const (
	leastR2   = 0.5
	level     = 0.01 // of both tests
	leastMiss = 0.05 // root mean square of the residuals, as a share of the highest yield, from which a misfit matters
)

// unfit returns the reason why a model does not describe the points, or "" if it does. With S the
// weighted sum of squares of the model at n points with p parameters, S0 the sum of a constant, and
// d degrees of freedom of the spread within the points, whose mean square is 1 by the choice of the
// weights:
//
//	against a constant:  F = (S0-S)/max(p-1,1) / E,  E = (S+d)/(n-p+d), or S/(n-p) if that is certainly more than 1
//	lack of fit:         F = S/(n-p), with n-p and d degrees of freedom
func (c *curve) unfit(a *candidate) string {
	free, pure := float64(a.free), c.pure()
	missed := pure > 0 && stats.FisherP(a.left/free, free, pure) < level
	noise, degrees := a.left/free, free
	if pure > 0 && !missed {
		noise, degrees = (a.left+pure)/(free+pure), free+pure
	}
	more := math.Max(1, float64(len(a.names)-1))
	gain := (c.meanVariance - a.left) / more
	miss := 0.0
	for i, y := range c.y {
		miss += (y - a.fitted[i]) * (y - a.fitted[i]) / float64(len(c.y))
	}
	switch {
	case !(gain > 0) || stats.FisherP(gain/noise, more, degrees) >= level:
		return NoBetter
	case a.left > (1-leastR2)*c.meanVariance:
		return Scatter
	case missed && math.Sqrt(miss) > leastMiss:
		return Misfit
	}
	return ""
}

// pure returns the number of degrees of freedom of the spread within the points, or 0 if the spread
// is unknown.
func (c *curve) pure() float64 {
	if c.se == nil {
		return 0
	}
	degrees := 0
	for _, own := range c.deviations {
		degrees += max(0, len(own)-1)
	}
	return float64(degrees)
}
