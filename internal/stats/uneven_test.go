package stats

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"
)

// TestUneven compares the formula with simulated random distributions.
func TestUneven(t *testing.T) {
	r := rand.New(rand.NewPCG(5, 6))
	for _, k := range []int{2, 3, 6, 40} {
		for _, n := range []int{1, 3, 10, 50, 400, 3000} {
			const deals = 3000
			largest := make([]float64, deals)
			sum := 0.0
			for d := range largest {
				parts := make([]int, k)
				for range n {
					parts[r.IntN(k)]++
				}
				largest[d] = float64(slices.Max(parts)) * float64(k) / float64(n)
				sum += largest[d]
			}
			slices.Sort(largest)
			mean, high := Uneven(k, float64(n))
			if want := sum / deals; math.Abs(mean/want-1) > 0.03 {
				t.Errorf("%d over %d: %.4f on average, want %.4f", n, k, mean, want)
			}
			// The largest part changes in steps of one item.
			if want, one := largest[deals*95/100], float64(k)/float64(n); math.Abs(high-want) > 1.01*one && math.Abs(high/want-1) > 0.03 {
				t.Errorf("%d over %d: %.4f in one case of twenty, want %.4f", n, k, high, want)
			}
		}
	}
	for _, c := range [][2]float64{{1, 10}, {4, 0}, {4, math.NaN()}, {0, 5}} {
		if mean, high := Uneven(int(c[0]), c[1]); mean != 1 || high != 1 {
			t.Errorf("%v: %v, %v", c, mean, high)
		}
	}
	if mean, high := Uneven(6, 1e9); mean < 1 || mean > 1.0001 || high < mean || high > 1.001 {
		t.Errorf("a billion: %v, %v", mean, high)
	}
}
