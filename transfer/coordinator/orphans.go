package coordinator

import (
	"context"
	"fmt"
	"sync"
	"time"

	"weir/internal/token"
	"weir/internal/tpc"
	"weir/transfer"
	"weir/transfer/queue"
)

const (
	asking   = 16               // destinations' files that are asked for at once
	askAgain = 10 * time.Second // after a destination did not answer
)

// The orphans are leases whose movers are gone: their files may be at their
// destinations all the same, and are asked for there before they are copied again.
type orphans struct {
	mu   sync.Mutex
	list []*activeLease
	next map[int64]time.Time // by item: when it is asked for again
	more signal
}

// ask has the destinations of leases asked for their files.
func (c *Coordinator) ask(list []*activeLease) {
	if len(list) == 0 {
		return
	}
	c.lost.mu.Lock()
	c.lost.list = append(c.lost.list, list...)
	c.lost.mu.Unlock()
	c.lost.more.give()
}

// missing has those asked for that the queue misses.
func (c *Coordinator) missing(list []queue.ExpiredLease) {
	now := c.now()
	var all []*activeLease
	c.registry.mu.Lock()
	c.lost.mu.Lock()
	for _, m := range list {
		l := c.registry.leases[m.Item]
		if l == nil || l.Epoch != m.Epoch {
			l = &activeLease{Lease: m.Lease, mover: moverOf(m.Lease), dispatched: true, heard: m.Heard}
			c.registry.leases[m.Item] = l
			c.registry.net.Began(l.Source.Site, l.Dest.Site, l.Size, now)
		}
		if l.stop != nil || l.asked > 0 {
			continue // it goes on here, or is being asked for
		}
		if now.Before(c.lost.next[m.Item]) {
			continue
		}
		c.lost.next[m.Item] = now.Add(askAgain)
		all = append(all, l)
	}
	for item := range c.lost.next {
		if c.registry.leases[item] == nil {
			delete(c.lost.next, item)
		}
	}
	c.lost.mu.Unlock()
	c.registry.mu.Unlock()
	c.ask(all)
}

// askAll asks for the lost until ctx ends.
func (c *Coordinator) askAll(ctx context.Context) {
	var running sync.WaitGroup
	defer running.Wait()
	room := make(chan struct{}, asking)
	for {
		more := c.lost.more.next()
		c.lost.mu.Lock()
		list := c.lost.list
		c.lost.list = nil
		c.lost.mu.Unlock()
		for _, l := range list {
			select {
			case room <- struct{}{}:
			case <-ctx.Done():
				return
			}
			running.Go(func() {
				defer func() { <-room }()
				o, known := c.askFor(ctx, l)
				if known {
					err := c.ended(ctx, "", []transfer.Outcome{o})
					c.health.say("database", err)
					known = err == nil
				}
				if !known {
					c.askLater(ctx, l)
				}
			})
		}
		select {
		case <-more:
		case <-ctx.Done():
			return
		}
	}
}

// askLater asks once more, if the lease is still what it was. A door that has just
// come in may not know yet whose tokens are good.
func (c *Coordinator) askLater(ctx context.Context, l *activeLease) {
	c.registry.mu.Lock()
	defer c.registry.mu.Unlock()
	if c.registry.leases[l.Item] == l && ctx.Err() == nil {
		l.asked = min(max(2*l.asked, askAgain/64), askAgain)
		time.AfterFunc(l.asked, func() { c.ask([]*activeLease{l}) })
	}
}

// askFor asks the destination of a lease for its file. known is false if nobody
// answers there: the lease stays what it is, until the queue gives it up.
func (c *Coordinator) askFor(ctx context.Context, l *activeLease) (o transfer.Outcome, known bool) {
	c.registry.mu.Lock()
	current := c.registry.leases[l.Item] == l
	door := c.registry.sites[l.Dest.Site].URL
	began, last, moved := l.given, l.heard, l.moved
	c.registry.mu.Unlock()
	if !current {
		return o, false
	}
	o = transfer.Outcome{Item: l.Item, Epoch: l.Epoch, Begin: began, End: c.now(), Moved: moved, Fault: transfer.LeaseLost}
	o.Reason = fmt.Sprintf("who moved it has stopped or was not heard of since %s", clockTime(last))
	if door == "" || l.Adler == "" && !l.Unchecked {
		return o, true // nobody can look: the next attempt does
	}
	ctx, cancel := context.WithTimeout(ctx, askTime)
	defer cancel()
	if l.Mode == transfer.Third {
		defer func() { // a killed coordinator's
			if known {
				c.copyOf(l.Lease).clean(ctx)
			}
		}()
	}
	at := l.Dest
	if l.Mode == transfer.Check {
		at = l.Source // the same site: what was to be looked at may lie elsewhere than under its name
	}
	t := c.target(l.Lease, at, token.Path("read", "/"+at.Path))
	info, err := c.tpc.Checksum(ctx, t, tpc.Wish{Size: l.Size, Want: l.Adler, Patience: 10 * time.Second})
	switch {
	case tpc.KindOf(err) == tpc.Missing:
		o.Reason += ", and it is not at its destination"
	case err != nil:
		return o, false
	case info.Size == l.Size && (info.Adler == l.Adler || info.Adler == "" && l.Unchecked):
		o.Fault, o.Reason = "", ""
		o.Size, o.Adler, o.Verified = info.Size, info.Adler, info.Adler != "" && info.Adler == l.Adler
	}
	return o, true
}
