package workload

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"weir/internal/unit"
	"weir/storage"
)

// checkRanges fails unless ranges lie in a file of the given size, ascend and
// never overlap.
func checkRanges(t *testing.T, ranges []storage.Range, size int64) {
	t.Helper()
	end := int64(0)
	for _, g := range ranges {
		if g.Offset < end || g.Length < 1 || g.Length > size-g.Offset {
			t.Fatalf("ranges %v of a file of %d bytes", ranges, size)
		}
		end = g.Offset + g.Length
	}
}

func TestPartsStayInside(t *testing.T) {
	for _, order := range []string{"random", "sequential"} {
		for size := int64(0); size < 70; size++ {
			for _, p := range []Part{{Size: 1, Count: 1}, {Size: 7, Count: 3}, {Size: 10}, {Size: 30, Count: 5}, {Size: 500, Count: 2}} {
				p.Order = order
				w := Work{Kind: "read", Part: &p}
				s, r := mustNew(t, w, fileSet(2, size), 0), rng(uint64(size))
				var task Task
				for range 50 {
					s.Next(r, &task)
					ranges := task.Ops[0].Ranges
					checkRanges(t, ranges, size)
					if len(ranges) > max(p.Count, 1) || (len(ranges) == 0) != (size == 0) {
						t.Fatalf("%d ranges of a file of %d bytes for %+v", len(ranges), size, p)
					}
				}
			}
		}
	}
}

func TestScatterIsEven(t *testing.T) {
	const size, part, draws = 1_000, 1, 40_000
	w := Work{Kind: "read", Part: &Part{Size: part, Count: 4}}
	s, r := mustNew(t, w, fileSet(1, size), 0), rng(2)
	var task Task
	left := draws
	counts, want := cells(20, draws, func() float64 {
		if left%4 == 0 {
			s.Next(r, &task)
		}
		left--
		return float64(task.Ops[0].Ranges[left%4].Offset) / size
	})
	chiSquare(t, "offsets", counts, want)
}

func TestSmallFilesAreReadWhole(t *testing.T) {
	for _, tt := range []struct {
		size int64
		want []storage.Range
	}{
		{0, nil},
		{1, []storage.Range{{Length: 1}}},
		{99, []storage.Range{{Length: 99}}},
		{100, []storage.Range{{Length: 100}}},
		{-1, []storage.Range{{Length: -1}}}, // unknown: no driver reads it
	} {
		for _, order := range []string{"", "sequential"} {
			w := Work{Kind: "read", Part: &Part{Size: 100, Count: 4, Order: order}}
			var task Task
			mustNew(t, w, fileSet(1, tt.size), 0).Next(rng(1), &task)
			if d := cmp.Diff(tt.want, task.Ops[0].Ranges); d != "" {
				t.Errorf("order %q, size %d: %s", order, tt.size, d)
			}
			if task.Ops[0].Size != tt.size {
				t.Errorf("size %d in the operation, want %d", task.Ops[0].Size, tt.size)
			}
		}
	}
}

func TestWalkReadsEveryByteOnceAndGoesOn(t *testing.T) {
	files := []File{{Path: "a", Size: 25}, {Path: "b", Size: 0}, {Path: "c", Size: 10}}
	w := Work{Kind: "read", Pick: "sequential", Part: &Part{Size: unit.Size(10), Count: 2, Order: "sequential"}}
	s, r := mustNew(t, w, files, 0), rng(1)
	want := []struct {
		path   string
		ranges []storage.Range
	}{
		{"a", []storage.Range{{Offset: 0, Length: 10}, {Offset: 10, Length: 10}}},
		{"a", []storage.Range{{Offset: 20, Length: 5}}},
		{"b", nil},
		{"c", []storage.Range{{Offset: 0, Length: 10}}},
		{"a", []storage.Range{{Offset: 0, Length: 10}, {Offset: 10, Length: 10}}},
	}
	var task Task
	for i, tt := range want {
		s.Next(r, &task)
		op := task.Ops[0]
		if op.Path != tt.path || !cmp.Equal(op.Ranges, tt.ranges) {
			t.Fatalf("task %d reads %s %v, want %s %v", i, op.Path, op.Ranges, tt.path, tt.ranges)
		}
	}
}
