package cluster

import (
	"testing"
	"time"
)

// watchCalm begins to watch whether this machine has time for the test. What it
// returns reports whether no goroutine had to wait for its turn for a tenth of a
// second: else times, and who was there at which, are not what the test is about.
func watchCalm(t *testing.T) func() bool {
	t.Helper()
	const look, long = 5 * time.Millisecond, 100 * time.Millisecond
	stop, most := make(chan struct{}), make(chan time.Duration, 1)
	go func() {
		tick := time.NewTicker(look)
		defer tick.Stop()
		worst, last := time.Duration(0), time.Now()
		for {
			select {
			case <-tick.C:
				now := time.Now()
				worst, last = max(worst, now.Sub(last)), now
			case <-stop:
				most <- worst
				return
			}
		}
	}()
	return func() bool {
		close(stop)
		worst := <-most
		if worst > long {
			t.Logf("this machine had no turn for the test for %v: times are not looked at", worst)
		}
		return worst <= long
	}
}
