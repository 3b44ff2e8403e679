package coordinator

import (
	"context"
	"errors"
	"time"

	"weir/internal/db"
	"weir/internal/pause"
	"weir/internal/tpc"
	"weir/transfer"
)

const (
	sweepEvery   = 10 * time.Second
	sweepAgain   = 2 * time.Minute // a writer that was cut off may continue for a while
	longestSweep = time.Hour       // between two tries at a site that does not answer
	sweepBatch   = 100
)

// A temporary is a temporary file that a transfer may leave at a site without an agent.
type temporary struct {
	site, path  string
	item, epoch int64
	tries       int
	gone        bool
}

// temporaryOf returns the temporary file of a lease. ok is false if there is none, or if the site's
// agent removes it. The registry is locked.
func (c *Coordinator) temporaryOf(l *transfer.Lease) (one temporary, ok bool) {
	if l.Mode == transfer.Check || l.Mode == transfer.Delete || c.registry.sites[l.Dest.Site].Kind == agentKind {
		return one, false
	}
	one = temporary{site: l.Dest.Site, item: l.Item, epoch: l.Epoch, path: tempName(*l)}
	if l.Mode == transfer.Push && l.Dest.Temp == "" {
		one.path = transfer.PartName(l.Item, l.Epoch)
	}
	return one, true
}

// recordTemporaries writes the temporary files of leases to the database, before they are created.
func (c *Coordinator) recordTemporaries(ctx context.Context, leases []transfer.Lease) error {
	var all []temporary
	c.registry.mu.Lock()
	for i := range leases {
		if one, ok := c.temporaryOf(&leases[i]); ok {
			all = append(all, one)
		}
	}
	c.registry.mu.Unlock()
	if len(all) == 0 {
		return nil
	}
	due := c.now().Add(c.conf.Lease)
	const query = "INSERT INTO leftover (site, path, item, epoch, due, tries, gone) VALUES (?, ?, ?, ?, ?, 0, FALSE) ON CONFLICT DO NOTHING"
	return c.db.Many(ctx, query, db.Each(all, func(t temporary) []any { return []any{t.site, t.path, t.item, t.epoch, due} }))
}

// forgetTemporaries forgets the temporary files of transfers whose movers (the agent of a site, or ""
// for the coordinator) report success: they were renamed. A file that existed before proves nothing.
func (c *Coordinator) forgetTemporaries(ctx context.Context, mover string, all []transfer.Outcome) {
	var done []transfer.LeaseID
	c.registry.mu.Lock()
	for i := range all {
		o := &all[i]
		if l := c.registry.lease(o.ID()); l != nil && l.mover == mover && o.Fault == "" && !o.Existed {
			if _, ok := c.temporaryOf(&l.Lease); ok {
				done = append(done, o.ID())
			}
		}
	}
	c.registry.mu.Unlock()
	if len(done) == 0 {
		return
	}
	err := c.db.Many(ctx, "DELETE FROM leftover WHERE item = ? AND epoch = ?",
		db.Each(done, func(id transfer.LeaseID) []any { return []any{id.Item, id.Epoch} }))
	c.health.database(err) // after a failure they do not exist
}

// sweepSoon makes all temporary files due within minutes: a clock that was set, or the clock of a
// former process, may have deferred them by hours.
func (c *Coordinator) sweepSoon(ctx context.Context) error {
	soon := c.now().Add(sweepAgain)
	return c.db.Exec(ctx, "UPDATE leftover SET due = ? WHERE due > ?", soon, soon)
}

// sweepAll removes temporary files until ctx ends.
func (c *Coordinator) sweepAll(ctx context.Context) {
	c.health.database(c.sweepSoon(ctx))
	for pause.For(ctx, sweepEvery) {
		for more := true; more && ctx.Err() == nil; {
			var err error
			more, err = c.sweep(ctx)
			c.health.database(err)
			more = more && err == nil
		}
	}
}

// sweep removes some temporary files. more means that others are due.
func (c *Coordinator) sweep(ctx context.Context) (more bool, err error) {
	all, err := db.Select(ctx, c.db, func(rows *db.Rows) (t temporary, err error) {
		return t, rows.Scan(&t.site, &t.path, &t.item, &t.epoch, &t.tries, &t.gone)
	}, "SELECT site, path, item, epoch, tries, gone FROM leftover WHERE due <= ? ORDER BY due LIMIT ?", c.now(), sweepBatch)
	for _, t := range all {
		if err == nil && ctx.Err() == nil {
			err = c.sweepOne(ctx, t)
		}
	}
	return len(all) == sweepBatch, err
}

// sweepOne removes a temporary file. It is forgotten when it was absent twice, some time apart.
func (c *Coordinator) sweepOne(ctx context.Context, t temporary) error {
	lease := transfer.Lease{Item: t.item, Epoch: t.epoch}
	c.registry.mu.Lock()
	running := c.registry.lease(lease.ID()) != nil
	site, known := c.registry.sites[t.site]
	refused := c.blocked("", t.site)
	c.registry.mu.Unlock()
	again := func(after time.Duration, tries int, gone bool) error {
		return c.db.Exec(ctx, "UPDATE leftover SET due = ?, tries = ?, gone = ? WHERE site = ? AND path = ?", c.now().Add(after), tries, gone,
			t.site, t.path)
	}
	forget := func() error {
		return c.db.Exec(ctx, "DELETE FROM leftover WHERE site = ? AND path = ?", t.site, t.path)
	}
	switch {
	case running, known && refused != "":
		return again(c.conf.Lease, 0, false)
	case !known || site.Kind == agentKind: // the coordinator cannot access it any more
		return forget()
	}
	ask, cancel := context.WithTimeout(ctx, cleanTime)
	defer cancel()
	lease, err := c.lentFor(ask, lease)
	if errors.As(err, new(*tokenError)) {
		return again(min(sweepEvery<<min(t.tries, 10), longestSweep), t.tries+1, false)
	} else if err != nil {
		return err
	}
	at := c.target(lease, transfer.End{Site: t.site, Path: t.path, Token: lease.Dest.Token, Cert: lease.Dest.Cert})
	_, err = c.tpc.Stat(ask, at)
	exists := err == nil
	if exists {
		err = c.tpc.Remove(ask, at)
	}
	switch {
	case tpc.KindOf(err) == tpc.Missing && t.gone:
		return forget()
	case err == nil, tpc.KindOf(err) == tpc.Missing:
		if exists {
			c.log.Info("temporary file removed", "site", t.site, "path", t.path)
		}
		return again(sweepAgain, 0, true)
	case ctx.Err() != nil:
		return nil
	}
	c.log.Warn("temporary file not removed yet", "site", t.site, "path", t.path, "error", err)
	return again(min(sweepEvery<<min(t.tries, 10), longestSweep), t.tries+1, false)
}
