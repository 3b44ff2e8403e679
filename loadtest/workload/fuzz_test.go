package workload

import (
	"math"
	"testing"

	"weir/internal/unit"
	"weir/storage"
)

// FuzzNext checks that work that Check accepts can be run, on files of any size, and requests
// nothing impossible.
func FuzzNext(f *testing.F) {
	f.Add("read", "random", "random", 1.0, 0.0, int64(100), 3, int64(5), int64(9), int64(1000), 0.5)
	f.Add("mix", "zipf", "sequential", 0.5, 1.1, int64(1)<<62, 4096, int64(0), int64(math.MaxInt64), int64(-1), 1.0)
	f.Add("metadata", "sequential", "", 3.0, 0.0, int64(0), 0, int64(-1), int64(0), int64(0), 0.0)
	f.Add("write", "", "", math.NaN(), math.Inf(1), int64(7), -1, int64(math.MaxInt64-1), int64(math.MaxInt64-1), int64(math.MaxInt64), 2.0)
	f.Fuzz(func(t *testing.T, kind, pick, order string, weight, skew float64, part int64, count int, from, to, size int64, verify float64) {
		w := Work{Kind: Kind(kind), Pick: pick, Skew: skew, Sum: "adler32", Verify: unit.Fraction(verify),
			Size:  Dist{Uniform: []unit.Size{unit.Size(from), unit.Size(to)}},
			Think: Span{Uniform: []unit.Duration{unit.Duration(from), unit.Duration(to)}}}
		if kind == "mix" || kind == "metadata" {
			w.Mix = map[string]float64{}
			for i, k := range mixable(Kind(kind)) {
				w.Mix[k] = weight * float64(i+1)
			}
		}
		if part != 0 {
			w.Part = &Part{Size: unit.Size(part), Count: count, Order: order}
		}
		files := []File{{Path: "a/b", Size: max(size, -1)}, {Path: "c", Size: 0}, {Path: "d", Size: 100}}
		if Check(w) != nil {
			return
		}
		s, err := New(w, files, 5, "home")
		if err != nil {
			t.Fatalf("Check passes %+v, New does not: %v", w, err)
		}
		r := rng(1)
		var task Task
		for range 50 {
			s.Next(r, &task)
			if op := &task.Ops[0]; task.Think < 0 || op.Kind == storage.Write && op.Size < 0 {
				t.Fatalf("%+v gives a pause of %v and %+v", w, task.Think, *op)
			} else if op.Ranges != nil && task.File.Size >= 0 {
				checkRanges(t, op.Ranges, task.File.Size)
			}
		}
	})
}
