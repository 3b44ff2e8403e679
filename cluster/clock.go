package cluster

import (
	"context"
	"time"
)

// A clock is the controller's, as a worker knows it: its own machine's may be
// wrong and may jump.
type clock struct {
	at, then time.Time     // the controller's time at a moment of ours
	offset   time.Duration // how far this machine's clock is behind the controller's
	doubt    time.Duration // about it, to both sides
}

// now returns the controller's time.
func (c *clock) now() time.Time { return c.at.Add(time.Since(c.then)) }

// questions is how often a worker asks what time it is.
const questions = 8

// setClock asks the controller what time it is. It said so at some moment
// between question and answer; of several the shortest time between these tells
// it best, and half of that is the doubt that remains (as in NTP, RFC 5905,
// section 8).
func (m *member) setClock(ctx context.Context) error {
	for i := range questions {
		var answer clockNow
		begin := time.Now()
		var err error
		if i == 0 {
			err = m.quick.Insist(ctx, clockPath, nothing{}, &answer, m.options.limit)
			if err != nil {
				return err
			}
			continue // the connection was being made
		}
		if err = m.quick.Ask(ctx, clockPath, nothing{}, &answer); err != nil {
			continue
		}
		took := time.Since(begin)
		if doubt := took / 2; m.clock.then.IsZero() || doubt < m.clock.doubt {
			m.clock = clock{at: answer.Time, then: begin.Add(doubt), doubt: doubt}
			m.clock.offset = m.clock.at.Sub(m.clock.then.Round(0))
		}
	}
	if m.clock.then.IsZero() {
		return m.setClock(ctx)
	}
	return nil
}
