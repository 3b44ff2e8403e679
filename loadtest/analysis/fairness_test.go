package analysis

import (
	"math"
	"testing"
	"time"

	"weir/loadtest/analysis/basics"
	"weir/loadtest/analysis/fact"
	"weir/loadtest/measure"
)

// TestFairness checks that clients that complete fewer operations than others cause a warning,
// unless operations differ so much that chance explains it.
func TestFairness(t *testing.T) {
	for name, c := range map[string]struct {
		part  float64 // of the operations that the first half of the clients completes
		rare  float64 // factor by which one operation of a hundred is longer than the others
		want  float64
		warns bool
	}{
		"equal":                         {0.5, 1, 1, false},
		"half of them get half":         {2. / 3, 1, 0.9, false},
		"half of them get a hundredth":  {100. / 101, 1, 0.51, true},
		"the operations differ as much": {100. / 101, 300, 0.51, false},
	} {
		t.Run(name, func(t *testing.T) {
			done := 0.0 // in the phase
			s := station{clients: []int{1, 8}, latency: 0.1, most: 400, more: func(iv *measure.Interval) {
				if iv.Phase != measure.Measured {
					done = 0
					return
				}
				squares := 2 * (c.part*c.part + (1-c.part)*(1-c.part)) / iv.Clients
				iv.DoneSquares = squares * (math.Pow(done+float64(iv.Done), 2) - done*done)
				done += float64(iv.Done)
				iv.Latency.Reset()
				for i := range iv.Done {
					iv.Latency.Record(time.Duration(0.1e9 * map[bool]float64{true: c.rare, false: 1}[i%100 == 7]))
				}
			}}
			f := of(t, s.service())
			if got := basics.Value(f.Curve[1].Fairness); math.Abs(got-c.want) > 0.01 {
				t.Errorf("fairness %.3f, want %.2f", got, c.want)
			}
			if f.Curve[0].Fairness != nil {
				t.Errorf("one client has fairness %g", *f.Curve[0].Fairness)
			}
			if warns := fact.Has(f.WarningFacts, "warning.unfair"); warns != c.warns {
				t.Errorf("warnings %q", f.Warnings)
			}
		})
	}
}
