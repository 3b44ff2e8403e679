package engine

import (
	"time"

	"weir/storage"
	"weir/workload"
)

// Computing is counted while it goes on, in parts of at most this long: a job
// may compute for minutes on one event, and steps end in between.
const longestPart = 200 * time.Millisecond

// compute lets the job compute on a piece that it has. It returns false if the
// run was broken off meanwhile; then only the time until then counts.
func (l *life) compute(c *client, p workload.Piece) bool {
	const kind = storage.Read
	if p.Compute <= 0 {
		c.meter.Worked(kind, p.Events, p.Bytes, 0)
		return true
	}
	begin, done := l.rec.Now(), time.Duration(0)
	for done < p.Compute {
		part := min(p.Compute-done, longestPart)
		if !l.sleep(c, begin+done+part) {
			c.meter.Worked(kind, 0, 0, min(max(l.rec.Now()-begin-done, 0), part))
			return false
		}
		if done += part; done < p.Compute {
			c.meter.Worked(kind, 0, 0, part)
			continue
		}
		c.meter.Late(kind, l.rec.Now()-begin-done)
		c.meter.Worked(kind, p.Events, p.Bytes, part)
	}
	return true
}

// sleep waits until the given reading of the clock, or returns false as soon as
// the run is broken off. A client that is told to leave goes on: its job ends first.
func (l *life) sleep(c *client, until time.Duration) bool {
	l.Pacer.Sleep(c, l.rec.Time(until))
	for l.rec.Now() < until {
		select {
		case <-c.wake:
		case <-l.soft.Done():
			return false
		}
	}
	return l.soft.Err() == nil
}
