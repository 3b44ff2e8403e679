package agent

import (
	"context"
	"sync"
	"time"

	"weir/transfer/client"
)

const (
	questions = 8                // how often an agent asks what time it is
	staleness = 10 * time.Minute // after which it asks again: clocks drift apart
)

// A clock is the coordinator's, as an agent knows it: its own machine's may be
// wrong and may jump. Until it was set it is this machine's.
type clock struct {
	mu    sync.Mutex
	at    time.Time     // the coordinator's time at a moment of ours
	then  time.Time     // that moment
	doubt time.Duration // about it, to both sides
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

// stale reports whether the clock is to be set.
func (c *clock) stale() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.then.IsZero() || time.Since(c.then) > staleness
}

// set asks the coordinator what time it is. It said so at some moment between
// question and answer; of several the shortest time between these tells it best,
// and half of that is the doubt that remains (as in NTP, RFC 5905, section 8).
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
