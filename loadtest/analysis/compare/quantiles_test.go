package compare

import (
	"math/rand/v2"
	"testing"

	"weir/internal/require"
	"weir/loadtest/analysis"
)

// TestQuantilesOfRepetitionsAreInOrder checks that the median latency of a group is never above its
// p99, at any load, for any differences between the runs, and if any of the runs has no latency
// there.
func TestQuantilesOfRepetitionsAreInOrder(t *testing.T) {
	r := rand.New(rand.NewPCG(50, 99))
	for range 60 {
		l := lot{r: r, noise: 0.2, own: 0.3, factor: 1, steps: 1 + r.IntN(4)}
		groups := two(l, l, 1+r.IntN(6))
		for _, g := range groups {
			for _, run := range g.Runs {
				for i := range run.Found.Curve {
					p50 := r.ExpFloat64()
					run.Found.Curve[i].Latency = &analysis.Quantiles{P50: p50, P99: p50 * (1 + r.Float64()/3), Mean: p50}
					if r.IntN(5) == 0 {
						run.Found.Curve[i].Latency = nil
					}
				}
			}
		}
		c, err := Of(groups, Options{Metrics: []string{"throughput", "p50", "p99"}})
		require.NoError(t, err)
		for _, s := range c.Pairs[0].Steps {
			by := map[string]Shift{}
			for _, m := range s.Metrics {
				by[m.Metric] = m
			}
			if low, high := by["p50"], by["p99"]; low.A > high.A || low.B > high.B || low.RunsA != high.RunsA || low.RunsB != high.RunsB {
				t.Fatalf("%d clients: %+v, %+v", s.Clients, low, high)
			}
		}
	}
}
