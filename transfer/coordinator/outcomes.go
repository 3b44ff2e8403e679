package coordinator

import (
	"cmp"
	"context"
	"math"
	"slices"
	"time"

	"weir/internal/say"
	"weir/transfer"
	"weir/transfer/queue"
)

const (
	renewEvery    = 3 * time.Second // leases in the database, at least
	longestReason = 1000            // bytes of a sentence that comes from outside
	mostPerReport = 20000           // outcomes or progresses
)

// outcomes writes down how attempts ended that an agent made.
func (c *Coordinator) outcomes(ctx context.Context, site string, all []transfer.Outcome) error {
	if len(all) == 0 {
		return nil
	}
	fit := make([]transfer.Outcome, 0, len(all))
	for _, o := range all[:min(len(all), mostPerReport)] {
		fit = append(fit, c.fit(o))
	}
	c.named(ctx, site, fit)
	return c.ended(ctx, site, fit)
}

// fit makes what an outcome says possible.
func (c *Coordinator) fit(o transfer.Outcome) transfer.Outcome {
	now := c.now()
	o.Reason = sentence(o.Reason)
	o.Size, o.Moved, o.Resumed = max(0, o.Size), max(0, o.Moved), max(0, o.Resumed)
	if o.CPU < 0 || math.IsNaN(o.CPU) || o.CPU > 1e9 {
		o.CPU = 0
	}
	o.After = min(max(0, o.After), 24*time.Hour)
	if o.End.IsZero() || o.End.After(now) {
		o.End = now
	}
	if o.Begin.IsZero() || o.Begin.After(o.End) || o.End.Sub(o.Begin) > 365*24*time.Hour {
		o.Begin = o.End
	}
	return o
}

// sentence is a text from outside, fit to be shown.
func sentence(s string) string {
	s = say.Plain(s)
	if len(s) > longestReason {
		cut := longestReason
		for cut > 0 && s[cut]&0xC0 == 0x80 {
			cut--
		}
		s = s[:cut] + "..."
	}
	return s
}

// ended writes outcomes down that a site's agent tells, or with "" the coordinator
// itself, and does what follows from that in memory. Those of copies that are
// another's are not heard; they are acknowledged, so that they do not come again.
func (c *Coordinator) ended(ctx context.Context, from string, all []transfer.Outcome) error {
	if len(all) == 0 {
		return nil
	}
	all = c.judged(from, all)
	changes, err := c.queue.Report(ctx, from, all)
	if err != nil {
		return err
	}
	by := make(map[transfer.LeaseID]transfer.Outcome, len(all))
	for _, o := range all {
		by[transfer.LeaseID{Item: o.Item, Epoch: o.Epoch}] = o
	}
	c.registry.mu.Lock()
	for _, ch := range changes {
		c.follow(ch, by)
	}
	c.registry.mu.Unlock()
	c.changed(changes)
	return nil
}

// follow takes a change of a file over into memory. The registry is locked.
func (c *Coordinator) follow(ch queue.Change, by map[transfer.LeaseID]transfer.Outcome) {
	l := c.registry.leases[ch.Item]
	if l == nil || l.Epoch != ch.Epoch {
		return
	}
	if o, ok := by[l.hold()]; ok && !ch.Stale {
		c.registry.net.Moved(l.Source.Site, l.Dest.Site, max(0, o.Moved-l.moved), o.End)
		c.registry.net.Learn(transfer.Attempt{Item: l.Item, Source: l.Source.Site, Dest: l.Dest.Site, Mode: l.Mode, Outcome: o})
	}
	c.let(l)
}

// changed wakes whoever waits for what changes bring.
func (c *Coordinator) changed(changes []queue.Change) {
	if len(changes) == 0 {
		return
	}
	c.wake.give()
	c.eventsChanged.give()
	for _, ch := range changes {
		if ch.Ended != "" {
			c.log.Info("a request has ended", "request", ch.Request, "status", string(ch.Ended))
		}
	}
}

// progress notes how far copies are, and tells which are to be broken off.
func (c *Coordinator) progress(a *agent, all []transfer.Progress) transfer.Ack {
	now := c.now()
	ack := transfer.Ack{Now: now, Until: now.Add(c.lease())}
	c.registry.mu.Lock()
	defer c.registry.mu.Unlock()
	ack.Cancel, ack.Lost = a.cancel, a.lost
	a.cancel, a.lost = nil, nil
	for _, p := range all[:min(len(all), mostPerReport)] {
		l := c.registry.leases[p.Item]
		switch {
		case l == nil || l.mover != a.Site || l.Epoch != p.Epoch:
			ack.Lost = append(ack.Lost, transfer.LeaseID{Item: p.Item, Epoch: p.Epoch})
		case l.cancelled:
			ack.Cancel = append(ack.Cancel, l.hold())
		default:
			c.advance(l, p, now)
		}
	}
	ack.Cancel, ack.Lost = once(ack.Cancel), once(ack.Lost)
	return ack
}

// advance notes how far a copy is. The registry is locked.
func (c *Coordinator) advance(l *activeLease, p transfer.Progress, now time.Time) {
	moved := min(max(p.Moved, l.moved), max(2*l.Size, l.moved))
	c.registry.net.Moved(l.Source.Site, l.Dest.Site, moved-l.moved, now)
	if l.began.IsZero() && moved > 0 {
		l.began = now
	}
	l.moved, l.stage, l.heard = moved, p.Stage, now
}

// renew makes the leases last longer in the database whose movers were heard of,
// and has those let go whose requests were stopped. It is called before leases
// expire: so those of movers that are there outlive a database that was away.
func (c *Coordinator) renew(ctx context.Context) error {
	now := c.now()
	var all []transfer.Progress
	c.registry.mu.Lock()
	for _, l := range c.registry.leases {
		alive := l.stop != nil || l.heard.After(l.renewed)
		if alive && !l.cancelled && !l.lost && now.Sub(l.renewed) >= renewEvery {
			all = append(all, transfer.Progress{Item: l.Item, Epoch: l.Epoch, Stage: l.stage, Moved: l.moved})
		}
	}
	c.registry.mu.Unlock()
	if len(all) == 0 {
		return nil
	}
	slices.SortFunc(all, func(a, b transfer.Progress) int { return cmp.Compare(a.Item, b.Item) })
	_, gone, err := c.queue.Renew(ctx, all)
	if err != nil {
		return err
	}
	var never []transfer.Outcome
	c.registry.mu.Lock()
	for _, p := range all {
		if l := c.registry.leases[p.Item]; l != nil && l.Epoch == p.Epoch {
			l.renewed = now
		}
	}
	for _, g := range gone {
		if l := c.registry.leases[g.Item]; l != nil && l.Epoch == g.Epoch && c.breakOff(l) {
			never = append(never, c.without(l, transfer.RequestCancelled, errCancelled.Error()))
		}
	}
	c.registry.mu.Unlock()
	return c.ended(ctx, "", never)
}

// without is the end of a copy that its mover does not tell, as it never had it or
// is gone. The registry is locked.
func (c *Coordinator) without(l *activeLease, fault transfer.ErrorClass, why string) transfer.Outcome {
	now := c.now()
	return transfer.Outcome{Item: l.Item, Epoch: l.Epoch, Fault: fault, Reason: why, Moved: l.moved, Begin: l.given, End: now}
}

// breakOff has a copy ended whose request was stopped. never tells that its mover
// has not been told of it: it will not tell how it ended. The registry is locked.
func (c *Coordinator) breakOff(l *activeLease) (never bool) {
	l.cancelled = true
	a := c.registry.agents[l.mover]
	switch {
	case l.stop != nil:
		l.stop(errCancelled)
	case !l.dispatched:
		return true
	case a != nil && l.mover != "":
		a.cancel = append(a.cancel, l.hold())
		a.ring()
	}
	return false
}

func once(list []transfer.LeaseID) []transfer.LeaseID {
	slices.SortFunc(list, func(a, b transfer.LeaseID) int {
		return cmp.Or(cmp.Compare(a.Item, b.Item), cmp.Compare(a.Epoch, b.Epoch))
	})
	return slices.Compact(list)
}

func (c *Coordinator) lease() time.Duration {
	if c.conf.Lease > 0 {
		return c.conf.Lease
	}
	return time.Minute
}
