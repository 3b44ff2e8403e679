package burn

import (
	"testing"
	"time"
)

// A Burner uses the requested CPU time, and no less.
func TestBurnerUsesCPUTime(t *testing.T) {
	var b Burner
	for _, d := range []time.Duration{0, 100 * time.Microsecond, 3 * time.Millisecond} {
		before := threadTime() // the goroutine may move to another thread, whose clock has another value
		used := b.For(d)
		if used < d || used > d+time.Second {
			t.Errorf("asked for %v it used %v (clock %v to %v)", d, used, before, threadTime())
		}
	}
}
