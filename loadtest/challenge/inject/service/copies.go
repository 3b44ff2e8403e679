package service

import (
	"sync"
	"time"

	"weir/loadtest/challenge/inject"
	"weir/storage"
)

// Copies records the copies in flight and reports their news: each copy has one final report, and
// no two reports are sent at once. It is safe for concurrent use.
type Copies struct {
	report func(inject.Report)
	mu     sync.Mutex
	open   map[int64]news
}

// news is the last report of a copy.
type news struct {
	at    time.Time
	state inject.State
}

// NewCopies returns a record without copies. report receives the news.
func NewCopies(report func(inject.Report)) *Copies {
	return &Copies{report: report, open: map[int64]news{}}
}

// Add adds a copy that has been requested. It returns false if the copy is in flight already.
func (c *Copies) Add(id int64) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if _, known := c.open[id]; known {
		return false
	}
	c.open[id] = news{}
	return true
}

// Open reports whether a copy is in flight.
func (c *Copies) Open(id int64) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	_, open := c.open[id]
	return open
}

// Len returns the number of copies in flight.
func (c *Copies) Len() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return len(c.open)
}

// Report reports news of a copy, unless it has ended, or nothing has changed. The time of the news is
// moved between the last news of the copy and the present. It returns whether the news were reported.
func (c *Copies) Report(r inject.Report) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	last, open := c.open[r.ID]
	if !open || r.State == last.state {
		return false
	}
	now := time.Now()
	if r.At.IsZero() || r.At.After(now) {
		r.At = now
	}
	if r.At.Before(last.at) {
		r.At = last.at
	}
	if r.Begin.After(r.At) {
		r.Begin = r.At
	}
	if r.State.Ended() {
		delete(c.open, r.ID)
	} else {
		c.open[r.ID] = news{r.At, r.State}
	}
	c.report(r)
	return true
}

// Fail reports a copy as failed, with an error of the service itself.
func (c *Copies) Fail(id int64, err error) {
	class := storage.Classify(err)
	if class == storage.Canceled {
		class = storage.Other // it is not the copy that was cancelled
	}
	reason := Line(err.Error())
	c.Report(inject.Report{ID: id, State: inject.Failed, Moved: -1, Class: class, Reason: reason,
		Expired: class == storage.Denied && mentionsEnd(reason)})
}

// Cancel reports a copy as cancelled.
func (c *Copies) Cancel(id int64) {
	c.Report(inject.Report{ID: id, State: inject.Cancelled, Moved: -1, Class: storage.Canceled, Reason: "cancelled by the challenge"})
}
