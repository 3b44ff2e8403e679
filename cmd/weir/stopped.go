package main

import (
	"fmt"
	"os"
	"os/signal"
	"syscall"
	"time"

	"weir/internal/unit"
)

// A process that was stopped has missed more than so much.
const stoppedFor = 500 * time.Millisecond

// watchStops tells when this process was stopped (Ctrl-Z, kill -STOP) and went
// on, and how long that was, until release is called.
func watchStops(tell func(time.Duration)) (release func()) {
	goOn := make(chan os.Signal, 1)
	signal.Notify(goOn, syscall.SIGCONT)
	done, ended := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(ended)
		tick := time.NewTicker(stoppedFor / 5)
		defer tick.Stop()
		last, at, gap := time.Now(), time.Time{}, time.Duration(0) // the clock goes on while we are stopped
		for {
			select {
			case <-tick.C:
				now := time.Now()
				if missed := now.Sub(last); missed > stoppedFor { // the signal is on its way
					gap, at = missed, now
				}
				last = now
			case <-goOn:
				missed := time.Since(last)
				if time.Since(at) < stoppedFor {
					missed = max(missed, gap)
				}
				if missed > stoppedFor {
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

// stoppedText is the warning of a run whose process was stopped.
func stoppedText(missed time.Duration) string {
	return fmt.Sprintf("weir was stopped for %v (Ctrl-Z or SIGSTOP) and went on: it made no load meanwhile, and steps of that time do not show what the service carries",
		unit.Duration(missed.Round(100*time.Millisecond)))
}
