package run

import (
	"fmt"
	"os"
	"os/signal"
	"syscall"
	"time"

	"weir/internal/unit"
)

// leastSuspension is the shortest suspension that is noticed.
const leastSuspension = 500 * time.Millisecond

// watchSuspension calls tell each time this process was suspended (Ctrl-Z, kill
// -STOP) and continued, with the length of the suspension, until release is
// called.
func watchSuspension(tell func(time.Duration)) (release func()) {
	goOn := make(chan os.Signal, 1)
	signal.Notify(goOn, syscall.SIGCONT)
	done, ended := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(ended)
		tick := time.NewTicker(leastSuspension / 5)
		defer tick.Stop()
		last, at, gap := time.Now(), time.Time{}, time.Duration(0) // the clock continues during a stop
		for {
			select {
			case <-tick.C:
				now := time.Now()
				if missed := now.Sub(last); missed > leastSuspension { // the signal is on its way
					gap, at = missed, now
				}
				last = now
			case <-goOn:
				missed := time.Since(last)
				if time.Since(at) < leastSuspension {
					missed = max(missed, gap)
				}
				if missed > leastSuspension {
					tell(missed)
				}
				last, gap = time.Now(), 0
			case <-done:
				return
			}
		}
	}()
	return func() {
		signal.Stop(goOn)
		close(done)
		<-ended
	}
}

// suspendedText is the warning of a run whose process was suspended.
func suspendedText(missed time.Duration) string {
	return fmt.Sprintf("weir was suspended for %v (Ctrl-Z or SIGSTOP): no load was generated during that time, and its steps do not "+
		"show what the service carries", unit.Duration(missed.Round(100*time.Millisecond)))
}
