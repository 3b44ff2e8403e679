package agent

import (
	"context"
	"sync"
	"time"

	"weir/transfer/client"
)

const (
	questions = 8                // number of requests for the time
	staleness = 10 * time.Minute // age from which the time is requested again: clocks drift apart
)

// A clock is an agent's estimate of the coordinator's clock: the clock of the agent's machine may
// be wrong and may jump. Until it is set it returns the time of this machine.
type clock struct {
	mu    sync.Mutex
	at    time.Time     // the coordinator's time at the local time then
	then  time.Time     // local time of the measurement
	doubt time.Duration // uncertainty in both directions
}

// now returns the coordinator's time.
func (c *clock) now() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.then.IsZero() {
		return time.Now()
	}
	return c.at.Add(time.Since(c.then))
}

// stale reports whether the clock is to be set again.
func (c *clock) stale() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.then.IsZero() || time.Since(c.then) > staleness
}

// set requests the time from the coordinator. The time was read at some moment between request and
// response; of several measurements, that with the shortest round trip is used, and half of that
// round trip is the remaining uncertainty (as in NTP, RFC 5905, section 8).
func (c *clock) set(ctx context.Context, ask *client.Client) error {
	best := clock{doubt: time.Hour}
	var failed error
	for range questions {
		begin := time.Now()
		answer, err := ask.Clock(ctx)
		if err != nil {
			failed = err
			continue
		}
		if doubt := time.Since(begin) / 2; doubt < best.doubt {
			best.at, best.then, best.doubt = answer.Now, begin.Add(doubt), doubt
		}
	}
	if best.then.IsZero() {
		return failed
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.at, c.then, c.doubt = best.at, best.then, best.doubt
	return nil
}
