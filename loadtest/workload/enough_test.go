package workload

import (
	"errors"
	"testing"

	"weir/internal/unit"
)

// Work that depends on sizes is refused without sizes; other work is accepted.
func TestUnknownSizesAreRefused(t *testing.T) {
	part := &Part{Size: 100, Count: 8}
	job := func(access string) *Job {
		return &Job{Access: access, Events: 10, Event: 100, Page: 50, Skim: 1, Slim: 1}
	}
	for name, tt := range map[string]struct {
		work        Work
		needs, uses bool
	}{
		"whole files":       {work: Work{Kind: "read"}},
		"in chunks":         {work: Work{Kind: "read", Chunk: unit.Size(1000)}, uses: true},
		"writes in chunks":  {work: Work{Kind: "write", Chunk: unit.Size(1000)}},
		"parts":             {work: Work{Kind: "read", Part: part}, needs: true, uses: true},
		"parts in order":    {work: Work{Kind: "read", Part: &Part{Size: 1, Order: "sequential"}}, needs: true, uses: true},
		"a mix with parts":  {work: Work{Kind: "mix", Mix: map[string]float64{"read": 1, "stat": 1}, Part: part}, needs: true, uses: true},
		"a mix of no reads": {work: Work{Kind: "mix", Mix: map[string]float64{"stat": 1}, Part: part}},
		"direct jobs":       {work: Work{Kind: "job", Job: job(Direct)}, needs: true, uses: true},
		"staged jobs":       {work: Work{Kind: "job", Job: job(Staged)}, uses: true},
	} {
		t.Run(name, func(t *testing.T) {
			if needs, uses := NeedsSizes(tt.work), UsesSizes(tt.work); needs != tt.needs || uses != tt.uses {
				t.Errorf("needs sizes: %v, uses them: %v", needs, uses)
			}
			err := Enough(tt.work, []File{{Path: "a", Size: 5000}, {Path: "b", Size: -1}})
			if errors.Is(err, ErrSizes) != tt.needs || err != nil != tt.needs {
				t.Errorf("a file of unknown size: %v", err)
			}
		})
	}
	if err := Enough(Work{Kind: "read", Part: part}, []File{{Path: "a"}, {Path: "b"}}); err == nil || errors.Is(err, ErrSizes) {
		t.Errorf("parts of empty files: %v", err)
	}
}

func TestSmall(t *testing.T) {
	files := []File{{Size: 0}, {Size: 99}, {Size: 799}, {Size: 800}, {Size: 1 << 40}}
	for count, want := range map[int]int{0: 2, 1: 2, 8: 3} {
		if got := Small(Work{Kind: "read", Part: &Part{Size: 100, Count: count}}, files); got != want {
			t.Errorf("%d parts: %d files are small, want %d", count, got, want)
		}
	}
	if got := Small(Work{Kind: "read"}, files); got != 0 {
		t.Errorf("whole files: %d are small", got)
	}
}
