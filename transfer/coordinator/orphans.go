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
	orphansAtOnce = 16               // that are looked for at once at a site
	orphanRetry   = 10 * time.Second // after a destination did not answer
)

// orphans are leases whose movers have gone. Their files may have arrived: the destination is asked
// before they are transferred again.
type orphans struct {
	mu   sync.Mutex
	list []*activeLease
	next map[int64]time.Time // by item: the time of the next question
	more signal
}

func (c *Coordinator) addOrphans(list []*activeLease) {
	if len(list) == 0 {
		return
	}
	c.lost.mu.Lock()
	c.lost.list = append(c.lost.list, list...)
	c.lost.mu.Unlock()
	c.lost.more.broadcast()
}

// findOrphans adds the third-party copies of a former coordinator.
func (c *Coordinator) findOrphans() {
	var list []*activeLease
	c.registry.mu.Lock()
	for _, l := range c.registry.leases {
		if l.mover == "" && l.stop == nil {
			list = append(list, l)
		}
	}
	c.registry.mu.Unlock()
	c.addOrphans(list)
}

// addMissing adds the leases that the queue misses.
func (c *Coordinator) addMissing(list []queue.ExpiredLease) {
	now := c.now()
	var all []*activeLease
	c.registry.mu.Lock()
	c.lost.mu.Lock()
	if c.lost.next == nil {
		c.lost.next = map[int64]time.Time{}
	}
	for _, m := range list {
		l := c.registry.leaseLocked(m.ID())
		if l == nil {
			l = &activeLease{Lease: m.Lease, mover: moverOf(m.Lease), dispatched: true, heard: m.Heard}
			c.addLeaseLocked(l)
		}
		if l.stop != nil || l.retry > 0 || now.Before(c.lost.next[m.Item]) {
			continue // it runs here, or is being looked for
		}
		c.lost.next[m.Item] = now.Add(orphanRetry)
		all = append(all, l)
	}
	for item := range c.lost.next {
		if c.registry.leases[item] == nil {
			delete(c.lost.next, item)
		}
	}
	c.lost.mu.Unlock()
	c.registry.mu.Unlock()
	c.addOrphans(all)
}

// verifyOrphans looks for the files of orphans until ctx ends.
func (c *Coordinator) verifyOrphans(ctx context.Context) {
	var running sync.WaitGroup
	defer running.Wait()
	rooms := map[string]chan struct{}{} // by destination: one that does not answer delays its own only
	for {
		more := c.lost.more.next()
		c.lost.mu.Lock()
		list := c.lost.list
		c.lost.list = nil
		c.lost.mu.Unlock()
		for _, l := range list {
			room := rooms[l.Dest.Site]
			if room == nil {
				room = make(chan struct{}, orphansAtOnce)
				rooms[l.Dest.Site] = room
			}
			running.Go(func() {
				select {
				case room <- struct{}{}:
					defer func() { <-room }()
				case <-ctx.Done():
					return
				}
				o, known := c.verifyOrphan(ctx, l)
				if known {
					err := c.applyOutcomes(ctx, "", []transfer.Outcome{o})
					c.health.database(err)
					known = err == nil
				}
				if !known {
					c.retryOrphan(ctx, l)
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

// retryOrphan looks for an orphan again after a pause. An endpoint that has just started may not know
// yet whose tokens are valid.
func (c *Coordinator) retryOrphan(ctx context.Context, l *activeLease) {
	c.registry.mu.Lock()
	defer c.registry.mu.Unlock()
	if c.registry.leases[l.Item] == l && ctx.Err() == nil {
		l.retry = min(max(2*l.retry, orphanRetry/64), orphanRetry)
		time.AfterFunc(l.retry, func() { c.addOrphans([]*activeLease{l}) })
	}
}

// verifyOrphan asks the destination of a lease for its file. known is false if it does not answer: the
// lease remains until the queue expires it.
func (c *Coordinator) verifyOrphan(ctx context.Context, l *activeLease) (o transfer.Outcome, known bool) {
	c.registry.mu.Lock()
	current := c.registry.leases[l.Item] == l
	address := c.registry.sites[l.Dest.Site].URL
	o = c.failedLocked(l, transfer.LeaseLost, fmt.Sprintf("its mover has stopped or has not reported since %s", clockTime(l.heard)))
	c.registry.mu.Unlock()
	if !current {
		return o, false
	}
	if address == "" || l.Mode == transfer.Delete || l.Size < 0 || l.Adler == "" && !l.Unchecked {
		return o, true // the next attempt looks for it
	}
	ctx, cancel := context.WithTimeout(ctx, askTime)
	defer cancel()
	lease, err := c.lent(ctx, l.Lease)
	if err != nil {
		return o, isFinal(err) // the next attempt fails with it
	}
	if l.Mode == transfer.Third {
		defer func() { // of a coordinator that was killed
			if known {
				c.newThird(lease).clean(ctx)
			}
		}()
	}
	at := lease.Dest
	if l.Mode == transfer.Check {
		at = lease.Source // the same site; the file may have another path than its name
	}
	t := c.target(lease, at, token.Path("read", "/"+at.Path))
	info, err := c.tpc.Checksum(ctx, t, tpc.Wish{Size: l.Size, Want: l.Adler, Patience: 10 * time.Second})
	switch {
	case tpc.KindOf(err) == tpc.Missing:
		o.Reason += ", and the file is not at its destination"
	case tpc.KindOf(err) == tpc.Denied && c.expired(lease.Dest.Token, 0) != nil:
		return o, true // likewise
	case err != nil:
		return o, false
	case info.Size == l.Size && (info.Adler != "" && info.Adler == l.Adler || info.Adler == "" && l.Unchecked && !l.Replace):
		o.Fault, o.Reason = "", ""
		o.Size, o.Adler, o.Verified = info.Size, info.Adler, info.Adler != "" && info.Adler == l.Adler
		o.Existed = l.Job != "" // it may have been there before: only copies that weir has made are removed after a hop
	}
	return o, true
}
