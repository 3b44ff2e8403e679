package stats

import (
	"math"
	"math/rand/v2"
	"testing"
)

func TestTrendAndShiftAreSeenInFewValues(t *testing.T) {
	for _, c := range []struct {
		name   string
		x      []float64
		mk, sh bool // p below 1%
	}{
		{"slow start", []float64{10.5, 15.8, 21.7, 28.5, 33.9, 40, 40, 40}, true, true},
		{"burst", []float64{41, 40, 4.7, 4.6, 5, 5, 5, 4.5}, false, true},
		{"half in the middle", []float64{40, 41, 40, 39, 20, 20, 21, 20}, false, true},
		{"level", []float64{40, 41, 39, 40, 42, 40, 39, 41}, false, false},
		{"constant", []float64{5, 5, 5, 5, 5, 5}, false, false},
		{"too few", []float64{1, 2, 3, 4}, false, false},
		{"exact step", []float64{1, 1, 1, 2, 2, 2}, false, true},
		{"a late fall", []float64{40, 41, 40, 39, 41, 40, 39, 41, 15, 15}, false, true},
	} {
		if mk, sh := MannKendall(c.x), Shift(c.x); (mk < 0.01) != c.mk || (sh < 0.01) != c.sh {
			t.Errorf("%s: p of a trend %.4f, of a shift %.4f", c.name, mk, sh)
		}
	}
}

// In noise, at most a share p of the cases is reported as a trend or a shift at p.
func TestNoiseHasNoTrendAndNoShift(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 4))
	const runs, p = 4000, 0.01
	for n := 5; n < 10; n++ {
		mk, sh := 0, 0
		for range runs {
			x := make([]float64, n)
			for i := range x {
				x[i] = 100 + 10*r.NormFloat64()
			}
			if MannKendall(x) < p {
				mk++
			}
			if Shift(x) < p {
				sh++
			}
		}
		if mk > 2*runs*p || sh > 2*runs*p {
			t.Errorf("%d values: %d trends and %d shifts in %d runs of noise", n, mk, sh, runs)
		}
	}
}

// Neighbors in a longer hold resemble each other. This is reported as a shift no more often than as
// a slope.
func TestNoiseThatLastsHasNoShift(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 5))
	const runs, p, rho = 2000, 0.01, 0.3
	for _, n := range []int{10, 15, 20} {
		shifts := 0
		for range runs {
			x := make([]float64, n)
			last := r.NormFloat64()
			for i := range x {
				last = rho*last + math.Sqrt(1-rho*rho)*r.NormFloat64()
				x[i] = 100 + 10*last
			}
			if Shift(x) < p {
				shifts++
			}
		}
		if shifts > 4*runs*p {
			t.Errorf("%d values: %d shifts in %d runs of noise", n, shifts, runs)
		}
	}
}
