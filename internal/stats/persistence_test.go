package stats

import (
	"math"
	"math/rand/v2"
	"testing"

	"weir/internal/tier"
)

// correlated draws n numbers around 0 with a variance of 1 and a correlation of
// neighbors.
func correlated(r *rand.Rand, n int, rho float64) []float64 {
	x := make([]float64, n)
	last := r.NormFloat64()
	for i := range x {
		last = rho*last + math.Sqrt(1-rho*rho)*r.NormFloat64()
		x[i] = last
	}
	return x
}

// Intervals of means of short series contain the true mean, 0, with about their nominal frequency,
// whether or not neighbors depend on each other.
func TestWideningOfIntervals(t *testing.T) {
	tier.Slow(t, "repeats an experiment many times")
	r := rand.New(rand.NewPCG(21, 22))
	const runs, steps = 1500, 8
	for _, c := range []struct {
		rho   float64
		n     int
		least float64
	}{{0, 8, 0.94}, {0, 20, 0.94}, {0.3, 8, 0.87}, {0.3, 20, 0.91}, {0.6, 8, 0.88}, {0.6, 12, 0.90}, {0.6, 20, 0.92}, {0.8, 20, 0.85}} {
		plain, wide, of, seen := 0, 0, 0, 0
		for range runs {
			all := make([][]float64, steps)
			for i := range all {
				all[i] = correlated(r, c.n, c.rho)
			}
			rho := Persistence(all)
			if rho > 0 {
				seen++
			}
			for _, x := range all {
				_, v, _ := BatchInterval(points(x))
				half, mean := (v.High-v.Low)/2, (v.High+v.Low)/2
				of++
				if math.Abs(mean) <= half {
					plain++
				}
				if math.Abs(mean) <= half*Widening(rho, c.n) {
					wide++
				}
			}
		}
		got := float64(wide) / float64(of)
		t.Logf("correlation %.1f, %d batches: seen in %.1f%%, %.1f%% of the intervals hold the mean, %.1f%% without widening",
			c.rho, c.n, 100*float64(seen)/runs, 100*got, 100*float64(plain)/float64(of))
		if got < c.least {
			t.Errorf("correlation %.1f, %d batches: %.3f of the intervals hold the mean, want %.2f", c.rho, c.n, got, c.least)
		}
		if c.rho == 0 && seen > runs*7/100 {
			t.Errorf("%d batches: independent ones are called dependent in %d of %d", c.n, seen, runs)
		}
	}
}
