package calibration

import (
	"math/rand/v2"
	"testing"
	"time"
)

// random returns a step of some files with random transfer times.
func random(r *rand.Rand, number int) Step {
	s := made(number, 1, 1, 1e-3, 1e-3)
	s.Held.Latency.Reset()
	typical := 1 + r.ExpFloat64()
	for range 1 + r.IntN(40) {
		s.Held.Latency.Record(time.Duration(typical * (0.9 + 0.2*r.Float64()) * float64(time.Second)))
	}
	s.Held.Done, s.Done = s.Held.Latency.Count(), s.Held.Latency.Count()
	s.All = s.Held
	return s
}

// The slowest transfers are never faster than the median transfers, for any difference between the
// rounds, and if either side has fewer of them.
func TestSlowestIsNeverBelowMedian(t *testing.T) {
	rnd := rand.New(rand.NewPCG(14, 2))
	for range 500 {
		r := &Result{Kind: "read", Program: "xrdcp", given: Given{Program: "xrdcp"}}
		rounds := 1 + rnd.IntN(6)
		for side := range r.sides {
			for n := range rounds {
				if side < 2 || rnd.IntN(4) > 0 {
					r.sides[side] = append(r.sides[side], random(rnd, n+1))
				}
			}
		}
		r.compare()
		for i := range r.Points {
			p50, p99 := r.Points[i].Figure(Median), r.Points[i].Figure(Slowest)
			for name, x := range map[string][2]*float64{
				"weir": {p50.Weir, p99.Weir}, "program": {p50.Real, p99.Real}, "paced": {p50.Paced, p99.Paced},
				"its program": {p50.PacedReal, p99.PacedReal},
			} {
				if (x[0] == nil) != (x[1] == nil) || x[0] != nil && *x[0] > *x[1] {
					t.Fatalf("%s: median %v above the slowest %v of %d rounds", name, deref(x[0]), deref(x[1]), rounds)
				}
			}
			if q := p99.Ratio; q != nil && !(q.Low <= q.Value && q.Value <= q.High) {
				t.Fatalf("%+v", q)
			}
		}
	}
}

func deref(x *float64) any {
	if x == nil {
		return nil
	}
	return *x
}
