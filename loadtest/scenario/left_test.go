package scenario

import (
	"testing"
	"time"

	"weir/internal/unit"
)

func TestLeft(t *testing.T) {
	second := unit.Duration(time.Second)
	steps := []Step{{Ramp: second, Duration: 4 * second}, {Ramp: second, Warmup: second, Duration: 7 * second, Cooldown: second}}
	for _, c := range []struct {
		p            Plan
		place        int
		since, spent int
		want         int
	}{
		{Plan{Steps: steps}, 0, 0, 0, 15},
		{Plan{Steps: steps}, 1, 2, 2, 13},
		{Plan{Steps: steps}, 1, 60, 60, 10}, // a step that takes longer than planned
		{Plan{Steps: steps}, 2, 60, 60, 0},
		{Plan{Steps: steps, Stop: Stop{Time: 8 * second}}, 1, 2, 2, 6},
		{Plan{Find: &Find{Time: 60 * second}}, 3, 2, 20, 40},
		{Plan{Find: &Find{Time: 60 * second}}, 3, 2, 70, 0},
	} {
		got := c.p.Left(c.place, time.Duration(c.since)*time.Second, time.Duration(c.spent)*time.Second)
		if want := time.Duration(c.want) * time.Second; got != want {
			t.Errorf("step %d since %d s: %v left, want %v", c.place, c.since, got, want)
		}
	}
}
