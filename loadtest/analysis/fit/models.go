package fit

import "math"

// A model is a family of curves, made for one set of points. Parameters are in the curve's scaled units everywhere
// but in what natural returns.
type model struct {
	name, formula string
	names         []string // of the parameters
	physical      bool     // says something of scaling, and can be believed between points
	canFall       bool     // has curves that come down again

	// solve returns the parameters with the least weighted squares for other yields at the same points; near is where
	// to look, nil if nothing is known.
	solve func(y, near []float64) []float64
	value func(p []float64, x float64) float64
	// peak is where it is highest, from one load to another if it is flat there; nil unless canFall.
	peak    func(p []float64) (from, to float64)
	natural func(p []float64) []float64
	// open tells that the points do not bound the i-th parameter from above.
	open func(p []float64, i int) bool
}

// models returns all models of the curve, the simplest first.
func (c *curve) models() []*model {
	return []*model{c.line(), c.plateau(), c.capacity(false), c.capacity(true), c.decline(), c.quartic()}
}

// last is the heaviest load, scaled; first the lightest.
func (c *curve) last() float64  { return c.x[len(c.x)-1] }
func (c *curve) first() float64 { return c.x[0] }

// line is proportional growth: no client is in another's way.
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

// plateau is the two asymptotes of a queueing system (Denning and Buzen, ACM Computing Surveys 10, 1978): growth in
// proportion, then a constant. Inside it is the height P and the load K = P/a at which it is reached.
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

// kinked returns the plateau with the least squares, exactly: for each place of the kink among the points both parts
// are linear, so it is either the best two lines, where these meet in that gap, or bends at a point.
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
			w0, wy = 0, 0 // and not what rounding left
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
