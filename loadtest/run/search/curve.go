package search

import (
	"math"
	"math/rand/v2"
	"slices"
)

// A curve is X(N) = 1/(a/N + b + cN), with N in units of center: the Universal
// Scalability Law (Gunther, Guerrilla Capacity Planning, 2007) written so that
// 1/X is linear in its parameters. Near a peak it is as good as a parabola.
type curve struct {
	beta   [3]float64    // a, b, c in units of 1/top
	cov    [3][3]float64 // their covariance
	misfit float64       // sum of squared residuals over their expectation, at least 1 is used
	center float64
	top    float64
	from   int // places in the points
	to     int
	steps  int
}

func (c *curve) basis(n float64) [3]float64 {
	u := n / c.center
	return [3]float64{1 / u, 1, u}
}

// at returns the curve with parameters beta at n clients, 0 if it is not defined there.
func (c *curve) at(beta [3]float64, n float64) float64 {
	x := dot(beta, c.basis(n))
	if !(x > 0) {
		return 0
	}
	return c.top / x
}

// peak returns the place from low to high at which the curve with parameters beta is highest.
func (c *curve) peak(beta [3]float64, low, high float64) float64 {
	if beta[0] > 0 && beta[2] > 0 {
		return min(max(math.Sqrt(beta[0]/beta[2])*c.center, low), high)
	}
	if c.at(beta, low) > c.at(beta, high) { // it bends the other way, or not at all
		return low
	}
	return high
}

// lay fits a curve through points[from:to] by weighted least squares. ok is false if they do not
// determine it.
func lay(points []point, from, to int, center, top float64) (c *curve, ok bool) {
	c = &curve{center: center, top: top, from: from, to: to}
	var m [3][3]float64
	var v [3]float64
	used := 0
	for _, p := range points[from:to] {
		if p.yield <= 0 {
			continue
		}
		x, y, w := c.basis(float64(p.clients)), top/p.yield, c.weight(p)
		for i := range 3 {
			v[i] += w * x[i] * y
			for j := range 3 {
				m[i][j] += w * x[i] * x[j]
			}
		}
		used++
		c.steps += p.steps
	}
	if used < 3 {
		return nil, false
	}
	if c.cov, ok = invert(m); !ok {
		return nil, false
	}
	for i := range 3 {
		c.beta[i] = dot(c.cov[i], v)
	}
	for _, p := range points[from:to] {
		if p.yield > 0 {
			r := top/p.yield - dot(c.beta, c.basis(float64(p.clients)))
			c.misfit += r * r * c.weight(p)
		}
	}
	c.misfit /= float64(max(used-3, 1))
	if used == 3 {
		c.misfit = 1
	}
	return c, true
}

// weight is one over the variance of top/yield.
func (c *curve) weight(p point) float64 {
	d := c.top * p.error / (p.yield * p.yield)
	return 1 / (d * d)
}

// draws returns n sets of parameters from their distribution, always the same sets for the same
// curve.
func (c *curve) draws(n int) [][3]float64 {
	root := cholesky(c.cov, max(1, c.misfit))
	r := rand.New(rand.NewPCG(1, 2))
	out := make([][3]float64, n)
	for i := range out {
		z := [3]float64{r.NormFloat64(), r.NormFloat64(), r.NormFloat64()}
		for j := range 3 {
			out[i][j] = c.beta[j] + dot(root[j], z)
		}
	}
	return out
}

func dot(a, b [3]float64) float64 { return a[0]*b[0] + a[1]*b[1] + a[2]*b[2] }

// invert inverts a symmetric matrix by its cofactors.
func invert(m [3][3]float64) (inv [3][3]float64, ok bool) {
	cof := func(i, j int) float64 {
		a, b, c, d := (i+1)%3, (i+2)%3, (j+1)%3, (j+2)%3
		return m[a][c]*m[b][d] - m[a][d]*m[b][c]
	}
	det := m[0][0]*cof(0, 0) + m[0][1]*cof(0, 1) + m[0][2]*cof(0, 2)
	scale := m[0][0] * m[1][1] * m[2][2]
	if !(det > 1e-12*scale) || math.IsInf(det, 0) {
		return inv, false
	}
	for i := range 3 {
		for j := range 3 {
			inv[j][i] = cof(i, j) / det
		}
	}
	return inv, true
}

// cholesky returns the lower root of m times factor.
func cholesky(m [3][3]float64, factor float64) (l [3][3]float64) {
	for i := range 3 {
		for j := range i + 1 {
			sum := m[i][j] * factor
			for k := range j {
				sum -= l[i][k] * l[j][k]
			}
			switch {
			case i == j:
				l[i][i] = math.Sqrt(max(sum, 0))
			case l[j][j] > 0:
				l[i][j] = sum / l[j][j]
			}
		}
	}
	return l
}

// median returns the middle element of all, which it sorts.
func median(all []float64) float64 {
	slices.Sort(all)
	return all[len(all)/2]
}

// quantile returns the value that a share q of all, which are sorted, does not
// exceed.
func quantile(all []float64, q float64) float64 {
	return all[min(int(q*float64(len(all))), len(all)-1)]
}
