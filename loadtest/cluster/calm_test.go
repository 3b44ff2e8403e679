package cluster

import (
	"testing"
	"time"
)

// watchCalm begins to check that this machine has enough time for the test. The returned function
// reports whether no goroutine had to wait for more than a tenth of a second to run. If it returns
// false, the test must not check times, nor the clients and workers at these times.
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
