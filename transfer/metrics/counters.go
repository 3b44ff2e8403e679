package metrics

import (
	"sync"
	"time"

	"weir/transfer"
	"weir/transfer/queue"
)

// idlePair is the time without an attempt after which a pair may lose its series to another pair.
const idlePair = time.Hour

// Counters count the ended requests, files and attempts of the queue and the moved bytes, since the
// coordinator's start. They are safe for concurrent use.
type Counters struct {
	now func() time.Time

	mu         sync.Mutex
	pairs      map[pair]*series
	rest       series // of all other pairs
	common     series // of metrics without pairs
	activities *Names
	dests      *Names
}

// A pair is a source and a destination.
type pair struct{ source, dest string }

// A key is a metric and its labels, without the labels of the pair.
type key struct {
	metric ID
	labels [3]string
}

// A series has the counters of one pair.
type series struct {
	last   time.Time
	counts map[key]float64
	hist   map[key]*histogram
}

func (s *series) add(n float64, m ID, labels ...string) {
	if s.counts == nil {
		s.counts = map[key]float64{}
	}
	k := key{metric: m}
	copy(k.labels[:], labels)
	s.counts[k] += n
}

func (s *series) observe(seconds float64, m ID, labels ...string) {
	if s.hist == nil {
		s.hist = map[key]*histogram{}
	}
	k := key{metric: m}
	copy(k.labels[:], labels)
	if s.hist[k] == nil {
		s.hist[k] = &histogram{}
	}
	s.hist[k].add(seconds)
}

// NewCounters returns counters that are 0. now is the clock.
func NewCounters(now func() time.Time) *Counters {
	return &Counters{now: now, pairs: map[pair]*series{}, activities: NewNames(MaxActivities), dests: NewNames(MaxSites)}
}

// ofLocked returns the series of a pair that was active now. A pair beyond the limit replaces a
// pair that was idle for an hour. Without such a pair, it counts with the others.
func (c *Counters) ofLocked(source, dest string) *series {
	at, now := pair{source, dest}, c.now()
	s := c.pairs[at]
	if s == nil {
		if len(c.pairs) >= MaxPairs && !c.forgetIdleLocked(now) {
			return &c.rest
		}
		s = newSeries()
		c.pairs[at] = s
	}
	s.last = now
	return s
}

// newSeries returns the series of a pair. Its usual counters begin at 0, so that rate() detects the
// first increase.
func newSeries() *series {
	s := &series{}
	s.add(0, Attempts, "done")
	s.add(0, MovedBytes)
	s.add(0, DoneBytes)
	return s
}

// forgetIdleLocked removes the pair that was idle for the longest time, if that is at least
// idlePair.
func (c *Counters) forgetIdleLocked(now time.Time) bool {
	var idle pair
	since := now.Add(-idlePair)
	if c.rest.last.After(now.Add(-time.Second)) {
		return false // the last search was less than a second ago
	}
	c.rest.last = now
	found := false
	for p, s := range c.pairs {
		if s.last.Before(since) {
			idle, since, found = p, s.last, true
		}
	}
	delete(c.pairs, idle)
	return found
}

// Ended counts the requests, files and attempts that a transaction of the queue has ended.
func (c *Counters) Ended(end queue.Ended) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, a := range end.Attempts {
		c.attemptLocked(&a)
	}
	for f, n := range end.Files {
		c.common.add(float64(n), FilesEnded, c.dests.Of(f.Dest), string(f.State))
	}
	for status, n := range end.Requests {
		c.common.add(float64(n), RequestsEnded, string(status))
	}
}

func (c *Counters) attemptLocked(a *queue.EndedAttempt) {
	s, activity := c.ofLocked(a.Source, a.Dest), c.activities.Of(a.Activity)
	outcome, class := outcomeOf(&a.Attempt)
	s.add(1, Attempts, outcome, class)
	c.common.add(1, ActivityAttempts, activity, outcome, class)
	if a.Mode == transfer.Streamed {
		s.add(1, StreamedAttempts, outcome)
		s.add(float64(a.Moved), StreamedBytes)
	}
	if outcome == "done" {
		s.observe(max(0, a.End.Sub(a.Begin).Seconds()), AttemptSeconds)
		s.add(float64(a.Size), DoneBytes)
		c.common.add(float64(a.Size), ActivityDoneBytes, activity)
	}
	if a.Waited >= 0 {
		c.common.observe(a.Waited.Seconds(), QueueSeconds, activity)
	}
}

// outcomeOf returns the labels outcome and class. Agents report classes: an unknown class is
// [Other].
func outcomeOf(a *transfer.Attempt) (outcome, class string) {
	switch a.Fault {
	case "":
		if a.Existed || a.Mode == transfer.Check {
			return "skipped", ""
		}
		return "done", ""
	case transfer.RequestCancelled:
		return "cancelled", ""
	case transfer.Transient, transfer.Unreachable, transfer.Throttled, transfer.SourceBad, transfer.DestFull, transfer.Denied,
		transfer.Checksum, transfer.SiteRefuses, transfer.ModeUnsupported, transfer.Permanent, transfer.LeaseLost, transfer.Occupied,
		transfer.MoverStopped, transfer.Unverified:
		return "failed", string(a.Fault)
	}
	return "failed", Other
}

// Moved counts payload that has moved.
func (c *Counters) Moved(source, dest string, bytes int64) {
	if bytes > 0 {
		c.mu.Lock()
		defer c.mu.Unlock()
		c.ofLocked(source, dest).add(float64(bytes), MovedBytes)
	}
}

// Changed counts a change of a limit.
func (c *Counters) Changed(change transfer.LimitChange) {
	direction := "up"
	if change.Limit < change.Before {
		direction = "down"
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.ofLocked(change.Source, change.Dest).add(1, LimitChanges, direction, string(change.Cause))
}

// Messages counts messages to the broker or, for [MessagesDropped], changes of files. kind is the
// kind of the messages, or "" for metrics without a kind.
func (c *Counters) Messages(m ID, kind string, n int64) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.common.add(float64(n), m, kind)
}

// Dest returns the label of a destination.
func (c *Counters) Dest(name string) string {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.dests.Of(name)
}

// Activity returns the label of an activity.
func (c *Counters) Activity(name string) string {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.activities.Of(name)
}

// Write adds the counters and the gauges of links to a page.
func (c *Counters) Write(p *Page, links []transfer.Link) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, l := range links {
		c.linkLocked(p, l)
	}
	for at, s := range c.pairs {
		s.write(p, at.source, at.dest)
	}
	c.rest.write(p, Other, Other)
	c.common.write(p)
}

// linkLocked adds the gauges of a link. Links beyond the limit have sums only.
func (c *Counters) linkLocked(p *Page, l transfer.Link) {
	at := pair{l.Source, l.Dest}
	if l.Active > 0 {
		c.ofLocked(l.Source, l.Dest)
	} else if c.pairs[at] == nil && len(c.pairs) < MaxPairs {
		c.pairs[at] = newSeries()
		c.pairs[at].last = c.now()
	}
	if c.pairs[at] == nil {
		p.Add(LinkCopies, float64(l.Active), Other, Other)
		p.Add(LinkRate, l.Rate, Other, Other)
		return
	}
	p.Add(LinkCopies, float64(l.Active), l.Source, l.Dest)
	p.Add(LinkRate, l.Rate, l.Source, l.Dest)
	p.Add(LinkLimit, float64(l.Limit), l.Source, l.Dest)
	p.Add(LinkSuccess, l.Success, l.Source, l.Dest)
	if l.Cause != "" {
		p.Add(LinkLimitCause, 1, l.Source, l.Dest, string(l.Cause))
	}
}

// write adds the series to a page, with labels before its own.
func (s *series) write(p *Page, first ...string) {
	labels := func(k key) []string {
		return append(first[:len(first):len(first)], k.labels[:]...)
	}
	for k, n := range s.counts {
		p.Add(k.metric, n, labels(k)...)
	}
	for k, h := range s.hist {
		if p.hist[k.metric] == nil {
			p.hist[k.metric] = map[string]*histogram{}
		}
		same := *h
		same.counts = append([]int64(nil), h.counts...)
		p.hist[k.metric][p.labels(k.metric, labels(k))] = &same
	}
}
