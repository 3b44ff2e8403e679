package thirdparty

import (
	"context"
	"sync"
	"time"

	"weir/internal/pause"
	"weir/internal/token"
	"weir/internal/tpc"
	"weir/transfer"
	"weir/transfer/access"
	"weir/transfer/dispatch"
	"weir/transfer/queue"
)

const (
	orphansAtOnce = 16               // that are searched for concurrently at a site
	orphanRetry   = 10 * time.Second // after a destination did not respond
)

// orphans are leases whose movers have left. Their files may have arrived: the destination is
// checked before they are transferred again.
type orphans struct {
	mu   sync.Mutex
	list []*dispatch.ActiveLease
	more pause.Signal
}

// AddOrphans starts the search for the files of leases whose movers have left.
func (c *Copier) AddOrphans(list []*dispatch.ActiveLease) {
	if len(list) == 0 {
		return
	}
	c.lost.mu.Lock()
	c.lost.list = append(c.lost.list, list...)
	c.lost.mu.Unlock()
	c.lost.more.Broadcast()
}

// FindOrphans adds the third-party copies of a former coordinator.
func (c *Copier) FindOrphans() {
	c.AddOrphans(c.leases.Orphans())
}

// AddMissing adds the leases that the queue misses.
func (c *Copier) AddMissing(list []queue.ExpiredLease) { c.AddOrphans(c.leases.Missing(list)) }

// VerifyOrphans searches for the files of orphans until ctx ends.
func (c *Copier) VerifyOrphans(ctx context.Context) {
	var running sync.WaitGroup
	defer running.Wait()
	rooms := map[string]chan struct{}{} // by destination: a silent destination delays its own files only
	for {
		more := c.lost.more.Next()
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
					err := c.apply(ctx, []transfer.Outcome{o})
					c.health.Database(err)
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

// retryOrphan repeats the search for an orphan after a pause. An endpoint that has just started may
// not have the keys of valid tokens yet.
func (c *Copier) retryOrphan(ctx context.Context, l *dispatch.ActiveLease) {
	if wait, current := c.leases.RetryOrphan(l); current && ctx.Err() == nil {
		time.AfterFunc(wait, func() { c.AddOrphans([]*dispatch.ActiveLease{l}) })
	}
}

// verifyOrphan checks whether the destination of a lease has its file. known is false if the
// destination does not respond: the lease remains until the queue expires it.
func (c *Copier) verifyOrphan(ctx context.Context, l *dispatch.ActiveLease) (o transfer.Outcome, known bool) {
	o, address, current := c.leases.Lost(l)
	if !current {
		return o, false
	}
	if address == "" || l.Mode == transfer.Delete || l.Size < 0 || l.Adler == "" && !l.Unchecked {
		return o, true // the next attempt checks for it
	}
	ctx, cancel := context.WithTimeout(ctx, askTime)
	defer cancel()
	lease, err := c.access.Lent(ctx, l.Lease)
	if err != nil {
		return o, access.IsFinal(err) // the next attempt fails with it
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
	t := c.endpoints.Target(lease, at, token.Path("read", "/"+at.Path))
	info, err := c.tpc.Checksum(ctx, t, tpc.Wish{Size: l.Size, Want: l.Adler, Patience: 10 * time.Second})
	switch {
	case tpc.KindOf(err) == tpc.Missing:
		o.Reason += ", and the file is not at its destination"
	case tpc.KindOf(err) == tpc.Denied && c.access.Expired(lease.Dest.Token, 0) != nil:
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
