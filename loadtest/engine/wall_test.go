package engine

import (
	"testing"
	"time"
)

func TestAWallClockThatIsSetIsNoticedOnce(t *testing.T) {
	w := &wall{base: time.Now()}
	if step := w.stepped(time.Now()); step != 0 {
		t.Errorf("a clock that nobody set was set by %v", step)
	}
	for i, c := range []struct{ ahead, want time.Duration }{
		{0, 0},
		{500 * time.Microsecond, 0}, // slewed
		{time.Hour, time.Hour - 500*time.Microsecond},
		{time.Hour, 0},
		{-time.Second, -time.Hour - time.Second},
		{-time.Second + drift, 0},
	} {
		if step := w.look(c.ahead); step != c.want {
			t.Errorf("look %d: set by %v, want %v", i, step, c.want)
		}
	}
}
