package conduct

import (
	"time"

	"weir/loadtest/challenge"
	"weir/loadtest/challenge/control"
	"weir/loadtest/challenge/inject"
	"weir/loadtest/measure"
	"weir/loadtest/results"
	"weir/storage"
)

const (
	// settled is the age at which a second is written: reports come at least that often.
	settled = 10 * time.Second
	// longestOpen bounds the time for which a copy without progress reports keeps seconds open.
	longestOpen = 2 * time.Minute
	// coarse is the largest error of a time of a service that reports whole seconds: a copy does not begin
	// before its request.
	coarse = time.Second
	// inTime is the longest time between two steps that is not late: a tick, and what jitter adds to it.
	inTime = 3 * tickTime
	// manyLinks is the number of links above which lines of links.jsonl are for ten seconds.
	manyLinks = 100
)

// A copyState is a copy that was requested and has no final line yet.
type copyState struct {
	inject.Copy
	stage   int
	asked   time.Time // zero: requested before the challenge was resumed, at an unknown time
	begin   time.Time // of the transfer of bytes, as far as it is known
	state   inject.State
	reports bool      // the injector reports its bytes
	last    time.Time // the bytes up to then are in the cells
	attempt int64     // bytes of the service's current attempt
	moved   int64     // bytes of all attempts
	full    time.Time // all bytes were moved; zero: not known
}

// A linkState is the present state of a link.
type linkState struct {
	seen     control.Seen // since the last decision
	decision control.Decision
}

// A ledger counts the copies and their bytes. It belongs to one goroutine.
type ledger struct {
	line   timeline
	links  []linkState
	copies map[int64]*copyState // that have not ended
	each   series               // a part for each link
	all    series               // one part
	last   time.Time            // of step
	totals totals
}

// newLedger returns the ledger of links from a moment on.
func newLedger(line timeline, links int, from time.Time) *ledger {
	period := time.Second
	if links > manyLinks {
		period = 10 * time.Second
	}
	l := &ledger{line: line, links: make([]linkState, links), copies: map[int64]*copyState{}, last: from,
		each: series{period: period, parts: links, next: from}, all: series{period: time.Second, parts: 1, next: from}}
	l.extend(from)
	return l
}

func (l *ledger) extend(now time.Time) {
	l.each.extend(now, l.line)
	l.all.extend(now, l.line)
}

// step adds the time since the last step, with the copies that are in flight and the targets and
// decisions that are valid.
func (l *ledger) step(now time.Time) {
	if !now.After(l.last) {
		return
	}
	l.extend(now)
	from := l.last
	l.last = now
	if due := from.Add(inTime); now.After(due) {
		l.each.overlaps(due, now, func(c *cell, seconds float64) { c.late += seconds })
	}
	flight, queued, target := 0, 0, 0.0
	for i := range l.links {
		s := &l.links[i].seen
		flight, queued, target = flight+s.InFlight, queued+s.Queued, target+s.Target
	}
	l.each.overlaps(from, now, func(c *cell, seconds float64) {
		for i := range c.parts {
			p, k := &c.parts[i], &l.links[i]
			p.count(k.seen.InFlight, k.seen.Queued, k.seen.Target, seconds)
			p.allowed = k.decision.Allowed
			if k.decision.Reason != "" {
				if p.reasons == nil {
					p.reasons = map[challenge.Reason]float64{}
				}
				p.reasons[k.decision.Reason] += seconds
			}
		}
	})
	l.all.overlaps(from, now, func(c *cell, seconds float64) { c.parts[0].count(flight, queued, target, seconds) })
}

// count adds copies and the target of a stretch of time.
func (p *part) count(flight, queued int, target, seconds float64) {
	p.flight += float64(flight) * seconds
	p.queued += float64(queued) * seconds
	p.target += target * seconds
}

// start adds copies that are about to be requested.
func (l *ledger) start(copies []inject.Copy, now time.Time) {
	stage, _, _ := l.line.at(now)
	for i := range copies {
		c := &copies[i]
		l.add(c, stage, now)
		l.each.at(now).parts[c.Link].started++
		all := l.all.at(now)
		all.parts[0].started++
		all.sum.Begun++
	}
}

// add adds a copy that is in flight from now on. asked is zero if that time is unknown.
func (l *ledger) add(c *inject.Copy, stage int, asked time.Time) {
	s := &copyState{Copy: *c, stage: stage, asked: asked, state: inject.Queued, last: asked}
	if asked.IsZero() {
		s.last = l.last
	}
	l.copies[c.ID] = s
	k := &l.links[c.Link].seen
	k.InFlight++
	k.Queued++
	k.Left += c.Source.Size
}

// report adds a report at a moment of the ledger's clock. It returns the copy if the report is its last.
func (l *ledger) report(r *inject.Report, at time.Time) (ended *copyState) {
	c := l.copies[r.ID]
	if c == nil {
		return nil // a report after the last one
	}
	if at.After(l.last) {
		at = l.last
	}
	k := &l.links[c.Link].seen
	switch {
	case c.state == inject.Queued && r.State != inject.Queued:
		k.Queued--
		c.begin = at
	case c.state != inject.Queued && r.State == inject.Queued: // the service tries again
		k.Queued++
	}
	if !r.Begin.IsZero() {
		c.begin = r.Begin
		if early := c.asked.Sub(c.begin); early > 0 && early <= coarse {
			c.begin = c.asked
		}
	}
	c.state = r.State
	l.bytes(c, r, at)
	if !r.State.Ended() {
		return nil
	}
	delete(l.copies, r.ID)
	k.InFlight--
	k.Left -= max(c.Source.Size-c.attempt, 0)
	return c
}

// bytes adds the bytes that were moved since the last report of a copy.
func (l *ledger) bytes(c *copyState, r *inject.Report, at time.Time) {
	now := r.Moved
	switch {
	case r.State == inject.Done:
		now = c.Source.Size
	case now < 0 && r.State != inject.Queued:
		return // the time stays open
	case now < 0:
		now = c.attempt
	default:
		c.reports = true
	}
	k := &l.links[c.Link].seen
	k.Left += max(c.Source.Size-now, 0) - max(c.Source.Size-c.attempt, 0)
	if now < c.attempt { // the service has begun again
		c.attempt = 0
	}
	from := c.last
	if c.moved == 0 && c.begin.After(from) && c.begin.Before(at) {
		from = c.begin
	}
	if n := now - c.attempt; n > 0 {
		l.each.spread(c.Link, from, at, n)
		l.all.spread(0, from, at, n)
		c.moved += n
		k.Moved += n
	}
	c.attempt, c.last = now, at
	if now >= c.Source.Size && c.full.IsZero() && c.reports && !r.State.Ended() {
		c.full = at
	}
}

// decided takes the state of a link for the next decision, and begins anew.
func (l *ledger) decided(link int, target float64) control.Seen {
	k := &l.links[link].seen
	k.Target = target
	seen := *k
	k.Moved, k.Done, k.Failed, k.Wrong = 0, 0, 0, 0
	return seen
}

// end counts a copy that has its final line.
func (l *ledger) end(link int, t *results.Transfer) {
	l.each.at(t.End).parts[link].end(t)
	all := l.all.at(t.End)
	all.parts[0].end(t)
	addEnd(&all.sum, t)
	k := &l.links[link].seen
	switch {
	case t.Done:
		k.Done++
	case t.Class.Failure():
		k.Failed++
	}
	if t.Wrong() {
		k.Wrong += t.Moved
	}
	l.totals.end(t)
}

// end counts a copy.
func (p *part) end(t *results.Transfer) {
	switch {
	case t.Done:
		p.done++
	case t.Class.Failure():
		p.failed++
	}
	if t.Wrong() {
		p.wrong += t.Moved
	}
}

// addEnd adds a copy to the measurements of all links. Its latency counts from its request.
func addEnd(sum *measure.Sum, t *results.Transfer) {
	asked := t.Asked
	if asked.IsZero() {
		asked = t.Begin
	}
	took := t.End.Sub(asked)
	if !t.Done {
		if sum.Failed == nil {
			sum.Failed = map[storage.Class]int64{}
		}
		sum.Failed[t.Class]++
		if t.Class.Failure() && !asked.IsZero() {
			sum.FailedTime += max(took.Seconds(), 0)
		}
		return
	}
	sum.Done++
	sum.Tasks++
	if t.Verified {
		sum.Verified++
	} else {
		sum.Unverifiable++
	}
	if !asked.IsZero() {
		sum.Latency.Record(took)
	}
	if !t.Asked.IsZero() && !t.Begin.IsZero() {
		sum.FirstByte.Record(t.Begin.Sub(t.Asked))
	}
}

// horizon returns the moment before which no report can change a cell any more.
func (l *ledger) horizon() time.Time {
	open := l.last.Add(-settled)
	oldest := l.last.Add(-longestOpen)
	for _, c := range l.copies {
		if c.state == inject.Running && c.last.Before(open) && c.last.After(oldest) {
			open = c.last
		}
	}
	return open
}

// interval returns the measurements of a cell of all links.
func (c *cell) interval() *measure.Interval {
	p := &c.parts[0]
	iv := &measure.Interval{Start: c.start, Seconds: c.seconds(), Step: c.stage, Phase: measure.Measured, Kind: storage.Copy, Sum: c.sum}
	if c.over {
		iv.Phase = measure.GracefulStop
	}
	iv.Moved = p.moved
	if iv.Seconds > 0 {
		iv.Clients = p.flight / iv.Seconds
	}
	return iv
}
