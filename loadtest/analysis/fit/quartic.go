package fit

import "math"

const terms = 5 // of the fourth-order polynomial

// quartic is the polynomial 1, x, ..., x^4, as Mathematica's Fit[data, {1, x, x^2, x^3, x^4}, x]
// fits it if all points have the same weight. Internally it is a polynomial of t, which runs from
// -1 to 1 over the tested range: with 5000 clients x^4 alone would be 6e14 and the equations close
// to singular. It does not model anything: it is included because people compare with it.
func (c *curve) quartic() *model {
	middle, half := (c.first()+c.last())/2, (c.last()-c.first())/2
	m := &model{
		name: Poly4, formula: "Y = a0 + a1 N + a2 N^2 + a3 N^3 + a4 N^4", names: []string{"a0", "a1", "a2", "a3", "a4"}, canFall: true,
		value: func(p []float64, x float64) float64 { return horner(p, (x-middle)/half) },
		peak: func(p []float64) (from, to float64) {
			x := middle + half*highest(p)
			return x, x
		},
		natural: func(p []float64) []float64 { return c.expand(p, middle*c.xUnit, half*c.xUnit) },
	}
	var hat [terms][]float64
	m.solve = func(y, _ []float64) []float64 {
		if hat[0] == nil {
			hat = c.solution(middle, half)
		}
		p := make([]float64, terms)
		for k := range p {
			for i, v := range y {
				p[k] += hat[k][i] * v
			}
		}
		return p
	}
	return m
}

func horner(p []float64, t float64) float64 {
	v := 0.0
	for k := len(p) - 1; k >= 0; k-- {
		v = v*t + p[k]
	}
	return v
}

// solution returns the matrix that converts yields to coefficients: R^-1 Q' with the powers of t,
// weighted, made orthonormal by Gram and Schmidt's method, twice, which is as exact as
// Householder's (Giraud and others, Numerische Mathematik 101, 2005). Powers that the points do not
// distinguish are left out.
func (c *curve) solution(middle, half float64) [terms][]float64 {
	n := len(c.x)
	var q, hat [terms][]float64
	var r [terms][terms]float64
	for k := range q {
		q[k], hat[k] = make([]float64, n), make([]float64, n)
		before := 0.0
		for i, x := range c.x {
			q[k][i] = math.Sqrt(c.w[i]) * math.Pow((x-middle)/half, float64(k))
			before += q[k][i] * q[k][i]
		}
		for range 2 {
			for j := range k {
				along := dot(q[k], q[j])
				r[j][k] += along
				for i := range q[k] {
					q[k][i] -= along * q[j][i]
				}
			}
		}
		r[k][k] = math.Sqrt(dot(q[k], q[k]))
		if r[k][k] < 1e-10*math.Sqrt(before) {
			r[k][k] = math.Inf(1)
		}
		for i := range q[k] {
			q[k][i] /= r[k][k]
		}
	}
	for k := terms - 1; k >= 0; k-- {
		for i := range n {
			v := q[k][i] * math.Sqrt(c.w[i])
			for j := k + 1; j < terms; j++ {
				v -= r[k][j] * hat[j][i]
			}
			hat[k][i] = v / r[k][k]
		}
	}
	return hat
}

func dot(a, b []float64) float64 {
	sum := 0.0
	for i := range a {
		sum += a[i] * b[i]
	}
	return sum
}

// expand converts coefficients of powers of (N-middle)/half to coefficients of powers of N.
func (c *curve) expand(p []float64, middle, half float64) []float64 {
	out := make([]float64, terms)
	for k := terms - 1; k >= 0; k-- { // out = out * (N-middle)/half + p[k]
		for j := terms - 1; j > 0; j-- {
			out[j] = (out[j-1] - middle*out[j]) / half
		}
		out[0] = -middle*out[0]/half + p[k]
	}
	for k := range out {
		out[k] *= c.yUnit
	}
	return out
}

// highest returns the place in [-1, 1] where the polynomial is highest. Its derivative is monotone
// between the two places where its own derivative is 0, so a bisection finds each place where it
// changes sign.
func highest(p []float64) float64 {
	d := [4]float64{p[1], 2 * p[2], 3 * p[3], 4 * p[4]}
	ends := []float64{-1}
	a, b, c := 3*d[3], 2*d[2], d[1]
	if root := b*b - 4*a*c; root > 0 {
		h := -(b + math.Copysign(math.Sqrt(root), b)) / 2
		first, second := h/a, c/h
		for _, t := range []float64{min(first, second), max(first, second)} {
			if t > -1 && t < 1 {
				ends = append(ends, t)
			}
		}
	}
	ends = append(ends, 1)
	best, top := -1.0, horner(p, -1)
	if v := horner(p, 1); v > top {
		best, top = 1, v
	}
	for i := 1; i < len(ends); i++ {
		low, high := ends[i-1], ends[i]
		if horner(d[:], low) <= 0 || horner(d[:], high) >= 0 {
			continue // it does not go from rising to falling here
		}
		for range 50 {
			if t := (low + high) / 2; horner(d[:], t) > 0 {
				low = t
			} else {
				high = t
			}
		}
		if v := horner(p, low); v > top {
			best, top = low, v
		}
	}
	return best
}
