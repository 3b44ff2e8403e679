package steps

import (
	"testing"
	"time"

	"weir/internal/require"
	"weir/loadtest/measure"
	"weir/loadtest/results/resultstest"
	"weir/loadtest/scenario"
)

// jobs returns the seconds of a step with the given numbers of clients, as in a batch system:
// clients start over time, are all active, and leave.
func jobs(counts []float64, perClient float64) *Run {
	d := &Run{Plan: &scenario.Plan{}}
	at := resultstest.Start()
	for _, n := range counts {
		d.Seconds = append(d.Seconds, Second{Start: at, Seconds: 1, Step: 1, Phase: measure.Measured, Clients: n, Moved: int64(n * perClient)})
		at = at.Add(time.Second)
	}
	return d
}

func TestSubintervals(t *testing.T) {
	d := jobs([]float64{0, 40, 100, 100, 100, 100, 60, 20}, 1000)
	got := d.Subintervals()
	if len(got) != 4 {
		t.Fatalf("%d subintervals, want 4", len(got))
	}
	for i, want := range []struct {
		name    string
		clients float64
	}{{"ramp up", 20}, {"steady", 100}, {"steady", 100}, {"cool down", 40}} {
		g := got[i]
		if g.Name != want.name || g.Clients != want.clients || g.Number != i+1 || g.Seconds != 2 {
			t.Errorf("subinterval %d is %+v, want %s of %v clients in 2 s", i+1, g, want.name, want.clients)
		}
		require.Near(t, "throughput", g.Throughput, 1000*want.clients, 1e-9)
		require.Near(t, "each client", g.PerClient, 1000, 1e-9)
	}
}

// A second that two subintervals share counts in each of them in proportion, so the sums are
// preserved.
func TestSubintervalsShareSeconds(t *testing.T) {
	for n := 1; n <= 13; n++ {
		var counts []float64
		sum := 0.0
		for i := range n {
			counts = append(counts, float64(10+i*i))
			sum += 7 * counts[i]
		}
		got, moved, seconds := jobs(counts, 7).Subintervals(), 0.0, 0.0
		for _, g := range got {
			moved += g.Throughput * g.Seconds
			seconds += g.Seconds
			require.Near(t, "length", g.Seconds, float64(n)/4, 1e-9)
		}
		require.Near(t, "sum", moved, sum, 1e-9)
		require.Near(t, "time", seconds, float64(n), 1e-9)
	}
	if got := jobs(nil, 1).Subintervals(); len(got) != 0 {
		t.Errorf("no seconds give %v", got)
	}
}
