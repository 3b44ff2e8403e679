package shape

import (
	"math"
	"math/rand/v2"
	"testing"
)

// noisy measures a station of k servers, S = 1, clients without pauses, at loads from 1 to 3k. The
// relative standard error is larger at light loads, where fewer operations end in the same time.
func noisy(r *rand.Rand, k int, ops float64) []Point {
	var points []Point
	for n := 1; n <= 3*k; n += max(1, k/6) {
		yield := float64(min(n, k))
		se := yield / math.Sqrt(ops*yield/float64(k))
		y := yield + se*r.NormFloat64()
		low, high := y-1.96*se, y+1.96*se
		points = append(points, Point{Load: float64(n), Yield: y, Low: &low, High: &high})
	}
	return points
}

// The estimate from the lightest step alone is off by its noise; the estimate from all light steps
// is not.
func TestSaturationTakesAllLightSteps(t *testing.T) {
	r := rand.New(rand.NewPCG(5, 6))
	const runs = 300
	near, nearOne := 0, 0
	for range runs {
		k := 10 + r.IntN(50)
		points := noisy(r, k, 4000)
		o, _ := OptimumOf(points)
		if got := Saturation(points, o.Level); math.Abs(got/float64(k)-1) <= 0.05 {
			near++
		}
		if got := points[o.Best].Yield * points[0].Load / points[0].Yield; math.Abs(got/float64(k)-1) <= 0.05 {
			nearOne++
		}
	}
	t.Logf("within 5%%: %d of %d; by the lightest and the best step %d", near, runs, nearOne)
	if near < runs*92/100 || near <= nearOne {
		t.Errorf("within 5%%: %d of %d; by the lightest and the best step %d", near, runs, nearOne)
	}
}

// If the cycle grows from the first client on, it is extrapolated to one client.
func TestSaturationIsDrawnBackToOneClient(t *testing.T) {
	const lambda, sigma, kappa = 100, 0.05, 0.001
	var points []Point
	for n := 2.0; n <= 90; n += 2 {
		y := lambda * n / (1 + sigma*(n-1) + kappa*n*(n-1))
		low, high := y*0.999, y*1.001
		points = append(points, Point{Load: n, Yield: y, Low: &low, High: &high})
	}
	o, _ := OptimumOf(points)
	top := points[o.Best].Yield
	if got := Saturation(points, top); math.Abs(got/(top/lambda)-1) > 0.03 {
		t.Errorf("%v clients, want %v", got, top/lambda)
	}
}

func TestLevel(t *testing.T) {
	points := []Point{{Load: 1, Yield: 50}, {Load: 2, Yield: 97}, {Load: 3, Yield: 103}, {Load: 4, Yield: 100, Errors: 0.5},
		{Load: 5, Yield: math.NaN()}}
	if o, _ := OptimumOf(points); o.Level != 103 {
		t.Errorf("without intervals: %v, want the best", o.Level)
	}
	for i := range points {
		low, high := points[i].Yield-10, points[i].Yield+10
		points[i].Low, points[i].High = &low, &high
	}
	if o, _ := OptimumOf(points); math.Abs(o.Level-100) > 1e-9 {
		t.Errorf("level %v, want 100", o.Level)
	}
}
