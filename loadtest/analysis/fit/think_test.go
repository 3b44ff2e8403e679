package fit

import (
	"fmt"
	"math"
	"math/rand/v2"
	"testing"

	"weir/internal/require"
)

// This test has a station that serves by the Universal Scalability Law, and clients that pause,
// computed exactly. If the number of busy clients or the think time is known, the law finds the
// number of clients with the highest throughput; without the pauses it does not.
func TestThinkTime(t *testing.T) {
	r := rand.New(rand.NewPCG(7, 7))
	noise := trial{0.001, 0, 20}
	worst, plain, runs := [2]float64{}, 0, 0
	for range 60 {
		at := 20 + 80*r.Float64()
		sigma := 2 * r.Float64() / at
		serve := scalable(1, sigma, (1-sigma)/at/at)
		think := 1 + 4*r.Float64()
		most := int((at + serve(int(at))*think) * (2 + 2*r.Float64()))
		best, top := 0, 0.0
		for n := range most {
			if y, _ := closed(n+1, think, serve); y > top {
				best, top = n+1, y
			}
		}
		if best > most*7/10 {
			continue
		}
		runs++
		var known, unknown []Point
		for _, n := range ladder(r, 10+r.IntN(10), most) {
			y, busy := closed(n, think, serve)
			known = append(known, noise.measure(r, n, y, busy))
			unknown = append(unknown, noise.measure(r, n, y, 0))
		}
		for i, f := range []*Fits{must(t, known, Options{Resamples: 200}), must(t, unknown, Options{Resamples: 200, Think: think})} {
			m := f.USL.Max
			if f.Best != USL || m == nil {
				t.Fatalf("%s is best, the law says %q", f.Best, f.USL.NoMax)
			}
			worst[i] = max(worst[i], math.Abs(m.Clients.Value/float64(best)-1))
			if math.Abs(m.Yield.Value/top-1) > 0.03 {
				t.Errorf("height %v, theory %v", m.Yield.Value, top)
			}
		}
		if m := must(t, unknown, Options{Resamples: 200}).USL.Max; m != nil && math.Abs(m.Clients.Value/float64(best)-1) < 0.05 {
			plain++
		}
	}
	documented(t, fmt.Sprintf("on %d random stations, computed exactly as birth and death chains, the maximum is off by %.1f%%", runs,
		100*max(worst[0], worst[1])))
	documented(t, fmt.Sprintf("within 5%% on %d of them", plain))
	if worst[0] > 0.02 || worst[1] > 0.02 {
		t.Errorf("off by up to %.1f%% and %.1f%%", 100*worst[0], 100*worst[1])
	}
	if plain > runs*3/4 {
		t.Errorf("think time does not matter in %d of %d", plain, runs)
	}
}

func must(t *testing.T, points []Point, o Options) *Fits {
	t.Helper()
	f, err := Of(points, o)
	require.NoError(t, err)
	return f
}
