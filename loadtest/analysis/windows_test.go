package analysis

import (
	"math"
	"testing"

	"weir/internal/require"
	"weir/loadtest/results/resultstest"
)

func TestWindows(t *testing.T) {
	f := of(t, resultstest.Typical())
	for i := range f.Curve {
		s := &f.Curve[i]
		if s.AllActive == nil || s.WithTail == nil {
			t.Fatalf("step %d has %v and %v", s.Step, s.AllActive, s.WithTail)
		}
		if s.AllActive.Seconds != s.Duration+1 || s.WithTail.Seconds != s.Duration+2 { // settle, and ramp
			t.Errorf("step %d: %v s active, %v s whole, hold %v s", s.Step, s.AllActive.Seconds, s.WithTail.Seconds, s.Duration)
		}
		require.Near(t, "all active", s.AllActive.Clients, float64(s.Clients), 1e-9)
		require.Near(t, "throughput of all active", s.AllActive.Throughput, s.Throughput, 0.02)
		if s.WithTail.Throughput >= s.AllActive.Throughput || math.Abs(s.WithTail.Clients-float64(s.Clients)*9.5/10) > 1e-9 {
			t.Errorf("step %d with its tail: %+v", s.Step, *s.WithTail)
		}
	}
	if n := len(f.Subintervals); n != 4*len(f.Curve) {
		t.Errorf("%d subintervals for %d steps", n, len(f.Curve))
	}
}
