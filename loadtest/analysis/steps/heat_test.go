package steps

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"weir/loadtest/measure"
	"weir/loadtest/results/resultstest"
)

// Every successful operation is counted in one cell, the cell of its time and latency, for any
// length of the run and any order of its lines.
func TestHeatCountsEachOperationOnce(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	for name, seconds := range map[string]int{"short": 30, "just enough": mostColumns, "long": 4000, "days": 300_000} {
		h := newHeatSum()
		start := resultstest.Start()
		total, slow := int64(0), 0
		var at []time.Duration
		for range 500 {
			at = append(at, time.Duration(r.IntN(seconds))*time.Second)
		}
		at = append(at, 0, time.Duration(seconds-1)*time.Second)
		for i, x := range at {
			var one measure.Histogram
			for range 1 + r.IntN(20) {
				one.Record(time.Duration(1e6 * math.Exp(r.NormFloat64())))
				total++
			}
			if i == 0 {
				one.Record(40 * time.Minute)
				total++
			}
			h.add(start.Add(x+500*time.Millisecond), &one)
		}
		heat := h.Heat(start, float64(seconds))
		sum := int64(0)
		for i, column := range heat.Counts {
			if len(column) != len(heat.Latency)-1 || len(column) > mostRows {
				t.Fatalf("%s: %d rows, %d edges", name, len(column), len(heat.Latency))
			}
			for k, n := range column {
				sum += n
				if n > 0 && heat.Latency[k] > 2000 {
					slow++
					if x := at[0].Seconds(); x < heat.At[i] || x > heat.At[i+1] {
						t.Errorf("%s: the slow one of second %g lies between %g and %g", name, x, heat.At[i], heat.At[i+1])
					}
				}
			}
		}
		if sum != total || slow != 1 {
			t.Errorf("%s: %d of %d operations, %d slow ones", name, sum, total, slow)
		}
		if n := len(heat.Counts); n > mostColumns || len(heat.At) != n+1 || !slices.IsSorted(heat.At) || heat.At[0] != 0 ||
			heat.At[n] != float64(seconds) {
			t.Errorf("%s: %d columns from %g to %g", name, n, heat.At[0], heat.At[len(heat.At)-1])
		}
	}
	if newHeatSum().Heat(resultstest.Start(), 1) != nil {
		t.Error("a heat of nothing")
	}
}

func TestHeatRows(t *testing.T) {
	h := newHeatSum()
	for _, ns := range []int64{0, 1, 63, 64, 1000, 12345, 1e6, 77e6, 1e9, 36e11, math.MaxInt64} {
		row := h.rowOf(ns)
		low, high := math.Exp2(float64(row)/perOctave), math.Exp2(float64(row+1)/perOctave)
		if x := float64(max(ns, 1)); x < low*0.99 || x > high*1.01 {
			t.Errorf("%d ns lie in the row from %g to %g", ns, low, high)
		}
	}
}
