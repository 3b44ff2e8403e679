package steps

import (
	"math"
	"math/rand/v2"
	"testing"

	"weir/internal/stats"
)

// The interval must contain the true mean in about 95 of 100 cases.
func TestIntervalCovers(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 4))
	const runs = 2000
	hits := 0
	for range runs {
		var seconds []Second
		for range 30 {
			seconds = append(seconds, Second{Seconds: 1, Moved: int64(1e6 + 1e5*r.NormFloat64())})
		}
		low, high := interval(batches(seconds, movedIn))
		if low == nil || high == nil {
			t.Fatal("no interval of 30 seconds")
		}
		if *low <= 1e6 && 1e6 <= *high {
			hits++
		}
	}
	if share := float64(hits) / runs; share < 0.93 || share > 0.97 {
		t.Errorf("the interval held the mean in %.1f%% of the cases", 100*share)
	}
}

func TestBatches(t *testing.T) {
	for name, c := range map[string]struct {
		seconds []float64
		want    int
	}{
		"none": {nil, 0}, "one": {[]float64{1}, 1}, "short": {[]float64{0.2}, 0}, "short joins": {[]float64{0.2, 1, 0.3}, 1},
		"halves": {[]float64{0.5, 1, 0.5}, 3}, "an hour": {make([]float64, 3600), 20}, "nothing": {[]float64{0, 0}, 0},
	} {
		t.Run(name, func(t *testing.T) {
			var seconds []Second
			var sum, span float64
			for _, x := range c.seconds {
				if name == "an hour" {
					x = 1
				}
				seconds = append(seconds, Second{Seconds: x, Moved: int64(1000 * x)})
			}
			obs := batches(seconds, movedIn)
			for _, o := range obs {
				sum, span = sum+o.Value*o.Weight, span+o.Weight
			}
			if len(obs) != c.want || len(obs) > 0 && math.Abs(sum/span-1000) > 1e-6 {
				t.Errorf("%d batches (want %d), mean %v", len(obs), c.want, sum/span)
			}
		})
	}
}

func TestDrift(t *testing.T) {
	line := func(slope float64) []stats.Point {
		var obs []stats.Point
		for i := range 10 {
			obs = append(obs, stats.Point{Value: 100 + slope*(float64(i)-4.5) + float64(i%2), Weight: 1})
		}
		return obs
	}
	if trend, ok := stats.Slope(line(5)); !ok || !certain(trend) || math.Abs(trend.Ratio-0.5) > 0.02 {
		t.Errorf("%+v", trend)
	}
	if trend, _ := stats.Slope(line(0)); certain(trend) {
		t.Error("noise is called a drift")
	}
	if _, ok := stats.Slope(line(1)[:4]); ok {
		t.Error("four points are enough for a slope")
	}
}
