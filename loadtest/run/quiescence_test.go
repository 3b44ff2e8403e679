package run

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"weir/monitor"
)

// The search waits until the servers are as idle as before.
func TestTheNextStepWaitsForCalmServers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newQuiescence()
		busy, over := 0.05, make(chan bool)
		go func() { // the monitor
			for tick := time.NewTicker(time.Second); ; {
				select {
				case <-tick.C:
					w.Sample(&monitor.Sample{Time: time.Now(), Seconds: 1, Host: "server", Role: "server", CPU: &monitor.CPU{User: busy}})
					w.Sample(&monitor.Sample{Time: time.Now(), Seconds: 1, Host: "client", Role: "client", CPU: &monitor.CPU{User: 1}})
				case <-over:
					return
				}
			}
		}()
		defer close(over)
		w.learn(t.Context(), learnFor)
		waits := func(most time.Duration) time.Duration {
			begin := time.Now()
			w.wait(t.Context(), most)
			return time.Since(begin)
		}
		if d := waits(time.Minute); d > 2*time.Second {
			t.Errorf("waited %v for a calm server", d)
		}
		busy = 0.9
		time.Sleep(2 * time.Second) // of the bubble
		if d := waits(7 * time.Second); d != 7*time.Second {
			t.Errorf("waited %v for a server that stays busy, want the most", d)
		}
		time.AfterFunc(5500*time.Millisecond, func() { busy = 0.1 })
		if d := waits(time.Minute); d < 5*time.Second || d > 8*time.Second {
			t.Errorf("waited %v for a server that is busy for 5.5 s", d)
		}
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		busy = 0.9
		time.Sleep(2 * time.Second) // of the bubble
		begin := time.Now()
		if w.wait(ctx, time.Minute); time.Since(begin) > 0 {
			t.Error("an interrupt did not end the waiting")
		}
		if newQuiescence().wait(t.Context(), time.Minute); time.Since(begin) > 0 {
			t.Error("no server is monitored, and it waited")
		}
	})
}
