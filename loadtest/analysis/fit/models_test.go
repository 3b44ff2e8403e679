package fit

import (
	"math"
	"math/rand/v2"
	"testing"

	"weir/internal/require"
)

// scattered makes points of a random curve that rises, bends and may fall,
// with noise and errors of different sizes.
func scattered(r *rand.Rand) []Point {
	var all []Point
	top, bend, fall := 10*r.Float64()+1, 50*r.Float64()+2, 1e-4*r.Float64()*float64(r.IntN(2))
	for range 5 + r.IntN(10) {
		x := 1 + math.Floor(200*r.Float64())
		y := top * x / (x + bend + fall*x*x*x) * (1 + 0.1*r.NormFloat64())
		all = append(all, Point{Clients: x, Yield: max(0, y), Error: 0.05 * top * (0.5 + r.Float64())})
	}
	return all
}

// Each model leaves as small a sum of squares as the best of a great many parameters that are tried
// near and far.
func TestNothingFitsBetter(t *testing.T) {
	r := rand.New(rand.NewPCG(5, 6))
	for trial := range 60 {
		c, err := newCurve(scattered(r), Options{Think: float64(trial%3) * 2})
		require.NoError(t, err)
		for _, m := range c.models() {
			if c.lacks(m) != "" {
				continue
			}
			p := m.solve(c.y, nil)
			left := c.squares(m, p, c.y)
			for try := range 4000 {
				q := make([]float64, len(p))
				for i := range q {
					switch {
					case m.name == Poly4:
						q[i] = p[i] + 0.1*r.NormFloat64()*math.Pow(0.1, float64(try%8))
					case try%2 == 0:
						q[i] = p[i] * math.Exp(r.NormFloat64()*math.Pow(0.1, float64(try%8)))
					default:
						q[i] = 3 * r.Float64() * math.Pow(0.1, float64(r.IntN(4)))
					}
				}
				if m.name == Amdahl {
					q[2] = 0
				}
				if m.name == Decline && !c.declines(q) {
					continue
				}
				if other := c.squares(m, q, c.y); other < left*(1-1e-3) {
					t.Fatalf("trial %d: %s %v leaves %v, but %v leaves %v", trial, m.name, p, left, q, other)
				}
			}
		}
	}
}

// declines reports whether the parameters describe a decline: a load was tested on its plateau, and
// another load beyond the plateau.
func (c *curve) declines(p []float64) bool {
	on := false
	for _, x := range c.x {
		on = on || x >= p[1] && x <= p[2]
	}
	return on && p[2] < c.last() && p[3] >= 0
}

// The plateau agrees with a search over all places of the kink.
func TestPlateauIsExact(t *testing.T) {
	r := rand.New(rand.NewPCG(7, 8))
	for range 100 {
		c, err := newCurve(scattered(r), Options{})
		require.NoError(t, err)
		m := c.plateau()
		left := c.squares(m, m.solve(c.y, nil), c.y)
		for k := 0.001; k <= 1; k += 0.001 {
			up, down := 0.0, 0.0
			for i, x := range c.x {
				g := min(1, x/k)
				up, down = up+c.w[i]*g*c.y[i], down+c.w[i]*g*g
			}
			if other := c.squares(m, []float64{up / down, k}, c.y); other < left*(1-1e-9) {
				t.Fatalf("a kink at %v leaves %v, the fit %v", k, other, left)
			}
		}
	}
}

// Steps whose batches happen to be equal do not outweigh the others, and steps
// with a large spread weigh little.
func TestWeights(t *testing.T) {
	points := table(func(n float64) float64 { return min(10*n, 500) }, 10, 20, 40, 80, 160, 320)
	for i := range points {
		y := points[i].Yield
		points[i].Batches = []float64{y - 3, y + 3, y - 3, y + 3, y}
	}
	points[2].Batches = []float64{430, 430, 430, 430}
	points[2].Yield = 430
	points[5].Batches = []float64{100, 900, 200, 300, 300}
	points[5].Yield = 360
	c, err := newCurve(points, Options{})
	require.NoError(t, err)
	median := math.Sqrt(36.0 / 4 / 5)
	for i, want := range []float64{median, median, median, median, median, math.Sqrt(392000.0 / 4 / 5)} {
		near(t, "standard error", c.se[i]*c.yUnit, want, 1e-12)
	}
	points[0].Error, points[0].Batches = 1e-12, nil
	if c, err = newCurve(points, Options{}); err != nil {
		t.Fatal(err)
	}
	near(t, "the floor", c.se[0]*c.yUnit, leastError*median, 1e-12)
	f, err := Of(points, Options{Resamples: 200})
	require.NoError(t, err)
	near(t, "the plateau", f.Plateau.Parameters[1].Value, 500, 0.005)
}

// AICc agrees with the formula in docs/methods.md.
func TestAICc(t *testing.T) {
	points := table(func(n float64) float64 { return n }, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10)
	for i := range points {
		points[i].Yield += 0.1 * float64(i%2*2-1)
	}
	f, err := Of(points, Options{Resamples: 200})
	require.NoError(t, err)
	squares := 0.0 // of the line; yields are counted in parts of the largest
	for _, r := range f.Line.Residuals {
		squares += r * r / 10.1 / 10.1
	}
	near(t, "AICc of the line, errors not known", f.Line.AICc, 10*math.Log(squares/10)+4+12.0/7, 1e-9)
	for i := range points {
		points[i].Error = 0.5
	}
	if f, err = Of(points, Options{Resamples: 200}); err != nil {
		t.Fatal(err)
	}
	near(t, "AICc of the line, errors known", f.Line.AICc, squares*10.1*10.1/0.25+2+4.0/8, 1e-9)
}
