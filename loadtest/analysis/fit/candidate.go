package fit

import "math"

// Limits of noise of unknown size.
const (
	// leastShape is the noise at a point whose yield is near 0, as a share of the noise at the
	// highest yield, if noise is assumed to be a share of the yield.
	leastShape = 0.05
	// asShareUnless is the gain in log-likelihood that noise of the same size everywhere must have
	// to be chosen: few points determine that badly, and services usually have noise in proportion
	// to the yield.
	asShareUnless = 2
)

// A candidate is a model fitted to the points, with the results of the bootstrap.
type candidate struct {
	*model
	p        []float64
	left     float64 // weighted sum of squared residuals
	free     int     // points minus parameters
	aicc     float64
	weight   float64
	fitted   []float64
	shape    []float64   // by point: size of its noise relative to other points
	standard []float64   // residuals over shape, about their mean, with a mean square of 1
	noise    float64     // sum of squares of the residuals over shape; if spreads are known: left
	perShare float64     // if spreads are known: converts excess variance from units of se^2 to shape^2
	drawn    [][]float64 // by parameter: its value in each resample
	kept     [][]float64 // parameters of the first resamples
	unbound  []int       // by parameter: resamples that did not bound it
	from, to []float64   // range of loads with the maximum, by resample
	tops     []float64   // height of the maximum, by resample
	inside   int         // resamples with the maximum inside the tested range
	byChance [2]int      // resamples of a flat curve that turn as much as the points
}

// candidate fits a model to the points.
func (c *curve) candidate(m *model) *candidate {
	a := &candidate{model: m, p: m.solve(c.y, nil), free: len(c.x) - len(m.names)}
	a.left = c.squares(m, a.p, c.y)
	for _, x := range c.x {
		a.fitted = append(a.fitted, m.value(a.p, x))
	}
	a.drawn, a.unbound = make([][]float64, len(m.names)), make([]int, len(m.names))
	shares := c.shares(a.fitted)
	if c.se != nil {
		a.shape, a.noise = shares, a.left
		sum := 0.0
		for i, g := range a.shape {
			sum += g * g / c.se[i] / c.se[i]
		}
		a.perShare = float64(len(c.x)) / sum
		return a
	}
	c.shaped(a, shares)
	return a
}

// shares returns the values of a curve divided by their root mean square.
func (c *curve) shares(fitted []float64) []float64 {
	out := make([]float64, len(fitted))
	top, square := 0.0, 0.0
	for _, v := range fitted {
		top = max(top, v)
	}
	for i, v := range fitted {
		out[i] = max(v, leastShape*top, exact)
		square += out[i] * out[i] / float64(len(fitted))
	}
	for i := range out {
		out[i] /= math.Sqrt(square)
	}
	return out
}

// shaped decides whether noise is a share of the yield or of the same size at all points. It
// chooses the same size only if the residuals, assumed normal, are clearly more likely with it.
func (c *curve) shaped(a *candidate, shares []float64) {
	n := float64(len(c.x))
	same, asShare, logs := 0.0, 0.0, 0.0
	for i, g := range shares {
		r := c.y[i] - a.fitted[i]
		same, asShare, logs = same+r*r, asShare+r*r/g/g, logs+math.Log(g)
	}
	a.shape = make([]float64, len(shares))
	for i := range a.shape {
		a.shape[i] = 1
	}
	if n/2*math.Log(asShare)+logs < n/2*math.Log(same)+asShareUnless {
		a.shape, same = shares, asShare
	}
	// Rounding errors are not noise, and 0 has no logarithm.
	a.left = max(a.left, n*exact*exact)
	mean, square := 0.0, 0.0
	for i := range c.x {
		mean += (c.y[i] - a.fitted[i]) / a.shape[i] / n
	}
	for i := range c.x {
		a.standard = append(a.standard, (c.y[i]-a.fitted[i])/a.shape[i]-mean)
		square += a.standard[i] * a.standard[i] / n
	}
	a.noise = max(same, n*exact*exact)
	for i := range a.standard {
		if square > 0 {
			a.standard[i] /= math.Sqrt(square)
		}
	}
}
