package fit

import "math"

// Bounds of the iteration.
const (
	mostSteps = 200
	enough    = 1e-12 // relative gain in squares below which a fit is done
	fewSteps  = 40    // the same for a resample, which starts next to its minimum
	roughly   = 1e-6
	least     = 1e-9 // share of one parameter in another below which it is negligible
)

// capacity is the Universal Scalability Law (Gunther, Guerrilla Capacity Planning, Springer 2007,
// chapter 4)
//
//	Y = lambda N / (1 + sigma (N-1) + kappa N (N-1))
//
// and Amdahl's law, which is the same with kappa = 0. Internally it is written as
//
//	Y = N / (A + S N + G N (N-1)),  lambda = 1/(A+S), sigma = S/(A+S), kappa = G/(A+S)
//
// so that the bounds 0 <= sigma <= 1 and kappa >= 0 become the bounds of three nonnegative numbers,
// and the reciprocal is linear in them. sigma may not exceed 1: it is a share of the work, and
// beyond 1 the law has a pole or falls from the first client on, which kappa can describe as well.
//
// With think time, N of the law is the number of clients that do not pause: C, with C + think Y(C)
// = N.
func (c *curve) capacity(coherency bool) *model {
	m := &model{
		name: Amdahl, formula: "Y = lambda N / (1 + sigma (N-1))", names: []string{"lambda", "sigma"}, physical: true,
		value: func(p []float64, x float64) float64 {
			y, _, _ := c.yield([3]float64(p), x)
			return y
		},
		solve: func(y, near []float64) []float64 {
			p := c.descend(y, near, coherency)
			return p[:]
		},
		natural: func(p []float64) []float64 { return c.law([3]float64(p), coherency) },
	}
	if coherency {
		m.name, m.formula, m.canFall = USL, "Y = lambda N / (1 + sigma (N-1) + kappa N (N-1))", true
		m.names = append(m.names, "kappa")
		m.peak = func(p []float64) (from, to float64) {
			x := c.top([3]float64(p))
			return x, x
		}
	}
	if c.think > 0 {
		m.formula += ", N being the clients that are not in a pause"
	}
	return m
}

// law returns lambda, sigma and kappa in the units of the points.
func (c *curve) law(p [3]float64, coherency bool) []float64 {
	a, s, g := p[0]*c.xUnit/c.yUnit, p[1]/c.yUnit, p[2]/c.xUnit/c.yUnit
	out := []float64{1 / (a + s), s / (a + s)}
	if coherency {
		out = append(out, g/(a+s))
	}
	return out
}

// top returns the load at which the law is highest: sqrt(A/G) busy clients plus the clients that
// pause.
func (c *curve) top(p [3]float64) float64 {
	if p[2] <= 0 {
		return c.last()
	}
	busy := math.Sqrt(p[0] / p[2])
	below := p[0] + p[1]*busy + p[2]*busy*(busy-1/c.xUnit)
	if below > 0 {
		return busy + c.think*busy/below
	}
	return busy
}

// yield returns the law's value at x and its derivatives by A, S and G; ok is false if the law has
// a pole there.
func (c *curve) yield(p [3]float64, x float64) (y float64, slopes [3]float64, ok bool) {
	n, one := x, 1/c.xUnit
	if c.think > 0 {
		n = c.busy(p, x)
	}
	below := p[0] + p[1]*n + p[2]*n*(n-one)
	if !(below > 1e-300) {
		return 0, slopes, false
	}
	q := -n / (below * below)
	if c.think > 0 { // x is fixed, so more yield means fewer busy clients
		q /= max(0.05, 1+c.think*(p[0]-p[2]*n*n)/(below*below))
	}
	y = n / below
	if c.think > 0 && n < x/2 { // the same value without the rounding error of a small n
		y = (x - n) / c.think
	}
	return y, [3]float64{q, q * n, q * n * (n - one)}, true
}

// busy solves n + think Y(n) = x for the number n of busy clients. It starts from the solution for
// kappa = 0 and uses Newton's method limited by bounds. If the yield falls so fast with load that
// there is more than one solution, it returns one of them.
func (c *curve) busy(p [3]float64, x float64) float64 {
	if p[0]+p[1] <= 0 {
		return x
	}
	b := p[0] + c.think - p[1]*x
	root := math.Sqrt(b*b + 4*p[1]*p[0]*x)
	n := 2 * p[0] * x / (b + root) // exact if kappa is 0, else too low
	if b <= 0 && p[1] > 0 {
		n = (root - b) / (2 * p[1])
	}
	if p[2] == 0 {
		return min(n, x)
	}
	low, high := 0.0, x
	for range 60 {
		below := p[0] + p[1]*n + p[2]*n*(n-1/c.xUnit)
		if !(below > 1e-300) {
			n = (n + high) / 2
			continue
		}
		off := n + c.think*n/below - x
		if off < 0 {
			low = n
		} else {
			high = n
		}
		next := n - off/(1+c.think*(p[0]-p[2]*n*n)/(below*below))
		if !(next >= low && next <= high) {
			next = (low + high) / 2
		}
		if math.Abs(next-n) <= 1e-12*x {
			return next
		}
		n = next
	}
	return n
}

// descend finds the least squares from several starts, or from near alone.
func (c *curve) descend(y, near []float64, coherency bool) [3]float64 {
	if near != nil {
		p, _ := c.slide(y, [3]float64(near), coherency, roughly, fewSteps)
		return p
	}
	var best [3]float64
	least := math.Inf(1)
	for _, start := range c.starts(y, coherency) {
		if p, left := c.slide(y, start, coherency, enough, mostSteps); left < least {
			best, least = p, left
		}
	}
	return best
}

// starts returns starting points of the search: the best law by the reciprocals, which are linear,
// and some laws that rise, bend and fall in the tested range.
func (c *curve) starts(y []float64, coherency bool) [][3]float64 {
	top := 0.0
	for _, v := range y {
		top = max(top, v)
	}
	top = max(top, exact)
	all := [][3]float64{{1, 1 / top, 0}, {0.1, 1 / top, 0}, {0.01, 1 / top, 0}, {1 / top, 0, 0}}
	if c.think > 0 { // sharp bends at other heights: there may be a minimum on either side of a point
		for _, height := range []float64{0.75, 0.85, 0.9, 0.95} {
			all = append(all, [3]float64{1e-6 / top, 1 / top / height, 0})
		}
	}
	if coherency {
		for _, at := range []float64{0.1, 0.3, 0.6, 1} { // peaks there, as high as the highest point
			for _, share := range []float64{0, 0.5, 0.9} {
				a := at / top * (1 - share) / 2
				all = append(all, [3]float64{a, share / top, a / at / at})
			}
		}
	}
	if p, ok := c.reciprocal(y, coherency); ok {
		all = append(all, p)
	}
	return all
}

// reciprocal fits x/y = A + S x + G x (x-1), which is linear; points without yield are ignored.
func (c *curve) reciprocal(y []float64, coherency bool) ([3]float64, bool) {
	var s system
	for i, x := range c.x {
		n := x - c.think*y[i]
		if y[i] <= exact || n <= 0 {
			continue
		}
		w := c.w[i] * math.Pow(y[i], 4) / (n * n)
		s.add(w, [3]float64{1, n, n * (n - 1/c.xUnit)}, n/y[i])
	}
	p, ok := s.solve(0, [3]bool{true, true, coherency})
	for i := range p {
		p[i] = max(p[i], 0)
	}
	return p, ok && p[0]+p[1] > 0
}

// slide is the method of Levenberg and Marquardt with bounds: a parameter at 0 whose gradient
// points below 0 stays at 0.
func (c *curve) slide(y []float64, p [3]float64, coherency bool, tolerance float64, steps int) ([3]float64, float64) {
	s, left := c.linearized(y, p)
	damping := 1e-3
	for range steps {
		free := [3]bool{true, true, coherency}
		for i := range free {
			free[i] = free[i] && (p[i] > 0 || s.right[i] > 0)
		}
		step, ok := s.solve(damping, free)
		next := p
		for i := range next {
			next[i] = max(0, p[i]+step[i])
		}
		next[1] = max(next[1], least*next[2]-next[0]) // lambda stays finite
		if c.think > 0 {
			next[0] = max(next[0], least*next[1]) // and the bend of the curve smooth
		}
		t, now := c.linearized(y, next)
		if !ok || !(now < left) {
			if damping *= 10; damping*tolerance > 1 { // steps so short gain no more than that
				break
			}
			continue
		}
		gain := left - now
		p, s, left = next, t, now
		damping = max(damping/10, 1e-12)
		if gain <= tolerance*left {
			break
		}
	}
	return p, left
}

// linearized returns the normal equations of one step from p, and the sum of squares at p, which is
// infinite if the law has a pole among the points.
func (c *curve) linearized(y []float64, p [3]float64) (system, float64) {
	var s system
	left := 0.0
	for i, x := range c.x {
		v, slopes, ok := c.yield(p, x)
		if !ok {
			return s, math.Inf(1)
		}
		s.add(c.w[i], slopes, y[i]-v)
		left += c.w[i] * (y[i] - v) * (y[i] - v)
	}
	return s, left
}
