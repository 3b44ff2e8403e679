package fit

import "math"

// A model is a family of curves for one set of points. Parameters are in the curve's scaled units,
// except in the result of natural.
type model struct {
	name, formula string
	names         []string // of the parameters
	physical      bool     // describes scaling, and is valid between points
	canFall       bool     // has curves that come down again

	// solve returns the parameters with the least weighted squares for other yields at the same
	// points. near is the start of the search, or nil if no parameters are known.
	solve func(y, near []float64) []float64
	value func(p []float64, x float64) float64
	// peak returns the highest place of the curve, a range of loads if it is flat there; nil unless
	// canFall.
	peak    func(p []float64) (from, to float64)
	natural func(p []float64) []float64
	// open reports whether the points do not bound the i-th parameter from above.
	open func(p []float64, i int) bool
}

// models returns all models of the curve, the simplest first.
func (c *curve) models() []*model {
	return []*model{c.line(), c.plateau(), c.capacity(false), c.capacity(true), c.decline(), c.quartic()}
}

// last is the heaviest load, scaled; first the lightest.
func (c *curve) last() float64  { return c.x[len(c.x)-1] }
func (c *curve) first() float64 { return c.x[0] }

// line is proportional growth: clients do not affect each other.
func (c *curve) line() *model {
	down := 0.0
	for i, x := range c.x {
		down += c.w[i] * x * x
	}
	return &model{
		name: Line, formula: "Y = a N", names: []string{"a"}, physical: true,
		solve: func(y, _ []float64) []float64 {
			up := 0.0
			for i, x := range c.x {
				up += c.w[i] * x * y[i]
			}
			return []float64{up / down}
		},
		value:   func(p []float64, x float64) float64 { return p[0] * x },
		natural: func(p []float64) []float64 { return []float64{p[0] * c.yUnit / c.xUnit} },
	}
}

// plateau is the two asymptotes of a queueing system (Denning and Buzen, ACM Computing Surveys 10,
// 1978): growth in proportion, then a constant. Internally its parameters are the height P and the
// load K = P/a at which it is reached.
func (c *curve) plateau() *model {
	return &model{
		name: Plateau, formula: "Y = min(a N, P)", names: []string{"a", "P"}, physical: true,
		solve: func(y, _ []float64) []float64 {
			height, kink := c.kinked(y)
			return []float64{height, kink}
		},
		value: func(p []float64, x float64) float64 { return p[0] * min(1, x/p[1]) },
		natural: func(p []float64) []float64 {
			return []float64{p[0] / p[1] * c.yUnit / c.xUnit, p[0] * c.yUnit}
		},
		open: func(p []float64, i int) bool {
			return i == 1 && p[1] >= c.last() || i == 0 && p[1] <= c.first()
		},
	}
}

// kinked returns the plateau with the least squares, exactly: for each place of the kink among the
// points both parts are linear, so the result is either the best two lines, if they intersect in
// that gap, or a bend at a point.
func (c *curve) kinked(y []float64) (height, kink float64) {
	var all, xx, xy, w0, wy float64 // w0 and wy of the points to the right
	for i := range c.x {
		all += c.w[i] * y[i] * y[i]
		w0 += c.w[i]
		wy += c.w[i] * y[i]
	}
	least := math.Inf(1)
	keep := func(left, h, k float64) {
		if left < least {
			least, height, kink = left, h, k
		}
	}
	for i, x := range c.x {
		w := c.w[i]
		xx, xy = xx+w*x*x, xy+w*x*y[i]
		w0, wy = w0-w, wy-w*y[i]
		if i+1 < len(c.x) && c.x[i+1] == x {
			continue
		}
		if i == len(c.x)-1 {
			w0, wy = 0, 0 // without rounding errors
		}
		up, down := xy/x+wy, xx/x/x+w0
		keep(all-up*up/down, up/down, x)
		if w0 > 0 && xy > 0 {
			h := wy / w0
			if k := h * xx / xy; k > x && k < c.x[i+1] {
				keep(all-xy*xy/xx-wy*wy/w0, h, k)
			}
		}
	}
	return height, kink
}
