package fit

import "math"

// mostKinks is the maximum number of points that are tried as kinks of a decline: all pairs are
// tried.
const mostKinks = 40

// decline is a plateau that ends: growth in proportion up to the load K = P/a, a constant, and from
// the load M on a fall in proportion. Internally its parameters are P, K, M and the slope d of the
// fall.
func (c *curve) decline() *model {
	places := c.places()
	return &model{
		name: Decline, formula: "Y = min(a N, P, P - d (N - M))", names: []string{"a", "P", "M", "d"}, physical: true, canFall: true,
		solve: func(y, _ []float64) []float64 { return c.twoKinks(y, places) },
		value: func(p []float64, x float64) float64 { return p[0]*min(1, x/p[1]) - p[3]*max(0, x-p[2]) },
		peak: func(p []float64) (from, to float64) {
			if p[3] <= 0 {
				return p[1], c.last()
			}
			return p[1], p[2]
		},
		natural: func(p []float64) []float64 {
			slope := c.yUnit / c.xUnit
			return []float64{p[0] / p[1] * slope, p[0] * c.yUnit, p[2] * c.xUnit, p[3] * slope}
		},
		open: func(p []float64, i int) bool { return i == 0 && p[1] <= c.first() },
	}
}

// places returns the possible numbers of points to the left of a kink.
func (c *curve) places() []int {
	var all []int
	for i := range c.x {
		if i+1 == len(c.x) || c.x[i+1] > c.x[i] {
			all = append(all, i+1)
		}
	}
	if len(all) <= mostKinks {
		return all
	}
	few := make([]int, 0, mostKinks)
	for k := range mostKinks {
		few = append(few, all[k*(len(all)-1)/(mostKinks-1)])
	}
	return few
}

// sums are weighted sums over some points.
type sums struct{ w, x, y, xx, xy, yy float64 }

func (a sums) less(b sums) sums {
	return sums{a.w - b.w, a.x - b.x, a.y - b.y, a.xx - b.xx, a.xy - b.xy, a.yy - b.yy}
}

// A bend is the best decline with given kinks. left is its sum of squares.
type bend struct{ p, k, m, d, left float64 }

// twoKinks returns the decline with the least squares. The points left of the first kink, between
// the kinks and right of the second kink each have a straight line. For each division of the
// points, the kinks lie at the intersections of the best lines if these are in the gaps between the
// parts, or at the last point of a part.
func (c *curve) twoKinks(y []float64, places []int) []float64 {
	until := make([]sums, len(y)+1)
	for i, x := range c.x {
		w, s := c.w[i], until[i]
		until[i+1] = sums{s.w + w, s.x + w*x, s.y + w*y[i], s.xx + w*x*x, s.xy + w*x*y[i], s.yy + w*y[i]*y[i]}
	}
	n := len(y)
	best := bend{k: c.last(), m: c.last(), left: math.Inf(1)}
	keep := func(b bend) {
		if b.left < best.left {
			best = b
		}
	}
	for at, i := range places {
		for _, j := range places[at:] {
			if j == n {
				break // no load beyond the kink determines the fall
			}
			left, middle, right := until[i], until[j].less(until[i]), until[n].less(until[j])
			k, m := c.x[i-1], c.x[j-1]
			keep(bent(left, middle, right, k, m))
			if j > i {
				c.meet(left, middle, right, i, j, keep)
			}
		}
	}
	return []float64{best.p, best.k, best.m, best.d}
}

// bent returns the best decline with kinks at k and m.
func bent(left, middle, right sums, k, m float64) bend {
	gg := left.xx/k/k + middle.w + right.w
	gy := left.xy/k + middle.y + right.y
	gh := m*right.w - right.x // h is m-x right of m
	hh := right.xx - 2*m*right.x + m*m*right.w
	hy := m*right.y - right.xy
	all := left.yy + middle.yy + right.yy
	b := bend{k: k, m: m}
	if det := gg*hh - gh*gh; det > 1e-12*gg*hh {
		b.p, b.d = (hh*gy-gh*hy)/det, (gg*hy-gh*gy)/det
	}
	if b.d <= 0 {
		b.p, b.d = gy/gg, 0
	}
	b.left = all - 2*b.p*gy - 2*b.d*hy + b.p*b.p*gg + 2*b.p*b.d*gh + b.d*b.d*hh
	return b
}

// meet tries the declines with one or both kinks at the intersections of the best lines of the
// parts: i points are left of the first gap, j points left of the second gap.
func (c *curve) meet(left, middle, right sums, i, j int, keep func(bend)) {
	const before, after = 0, 1
	k := [2]float64{c.x[i-1], c.x[i]}
	m := [2]float64{c.x[j-1], c.x[j]}
	a := left.xy / left.xx
	spread := right.xx - right.x*right.x/right.w
	rising := left.yy - a*left.xy
	within := func(x float64, gap [2]float64) bool { return x >= gap[before] && x <= gap[after] }
	flat := func(p float64) float64 { return middle.yy - 2*p*middle.y + p*p*middle.w }

	if a > 0 { // the second kink at a point
		rest := bent(sums{}, middle, right, 1, m[before])
		if at := rest.p / a; within(at, k) {
			keep(bend{rest.p, at, m[before], rest.d, rising + rest.left})
		}
	}
	if spread <= 1e-12*right.xx {
		return // a single load does not determine the slope
	}
	d := -(right.xy - right.x*right.y/right.w) / spread
	if d <= 0 {
		return
	}
	b := (right.y + d*right.x) / right.w // of the falling line b - d x
	falling := right.yy - right.y*right.y/right.w - d*d*spread
	p := (left.xy/k[before] + middle.y) / (left.xx/k[before]/k[before] + middle.w) // the first kink at a point
	if at := (b - p) / d; within(at, m) {
		up := left.yy - 2*p*left.xy/k[before] + p*p*left.xx/k[before]/k[before]
		keep(bend{p, k[before], at, d, up + flat(p) + falling})
	}
	p = middle.y / middle.w
	if at, to := p/a, (b-p)/d; a > 0 && within(at, k) && within(to, m) {
		keep(bend{p, at, to, d, rising + flat(p) + falling})
	}
}
