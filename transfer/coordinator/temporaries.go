package coordinator

import (
	"cmp"
	"context"
	"errors"
	"sync"
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
	sweepLife    = 7 * 24 * time.Hour
	sweepBatch   = 100
)

// A temporary is a temporary file that a transfer may leave at a site without an agent.
type temporary struct {
	site, path  string
	item, epoch int64
	tries       int
	gone        bool
}

// temporaryOfLocked returns the temporary file of a lease. ok is false if there is none, or if the site's
// agent removes it.
func (c *Coordinator) temporaryOfLocked(l *transfer.Lease) (one temporary, ok bool) {
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
		if one, ok := c.temporaryOfLocked(&leases[i]); ok {
			all = append(all, one)
		}
	}
	c.registry.mu.Unlock()
	if len(all) == 0 {
		return nil
	}
	now := c.now()
	due := now.Add(c.conf.Lease)
	const query = `INSERT INTO leftover (site, path, item, epoch, since, due, tries, gone) VALUES (?, ?, ?, ?, ?, ?, 0, FALSE)
		ON CONFLICT DO NOTHING`
	return c.db.Many(ctx, query, db.Each(all, func(t temporary) []any { return []any{t.site, t.path, t.item, t.epoch, now, due} }))
}

// forgetTemporaries forgets the temporary files of transfers whose movers (the agent of a site, or "" for the coordinator) report that
// they renamed or never wrote them, or that never began. A file that existed before proves nothing.
func (c *Coordinator) forgetTemporaries(ctx context.Context, mover string, all []transfer.Outcome) {
	var done []transfer.LeaseID
	c.registry.mu.Lock()
	for i := range all {
		o := &all[i]
		l := c.registry.leaseLocked(o.ID())
		if l != nil && (l.mover == mover && (o.Unwritten || o.Fault == "" && !o.Existed) || mover == "" && !l.dispatched) {
			if _, ok := c.temporaryOfLocked(&l.Lease); ok {
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

// sweepAll removes temporary files until ctx ends, at all sites concurrently: one that does not answer delays its own only.
func (c *Coordinator) sweepAll(ctx context.Context) {
	c.health.database(c.sweepSoon(ctx))
	var sweeps sync.WaitGroup
	defer sweeps.Wait()
	var running sync.Map // by site
	for pause.For(ctx, sweepEvery) {
		sites, err := db.Select(ctx, c.db, func(rows *db.Rows) (site string, err error) { return site, rows.Scan(&site) },
			"SELECT DISTINCT site FROM leftover WHERE due <= ?", c.now())
		c.health.database(err)
		for _, site := range sites {
			if _, is := running.LoadOrStore(site, true); is {
				continue
			}
			sweeps.Go(func() {
				defer running.Delete(site)
				c.health.database(c.sweepSite(ctx, site))
			})
		}
	}
}

// sweepSite removes the temporary files of a site that are due. If the site does not answer, all of them wait.
func (c *Coordinator) sweepSite(ctx context.Context, name string) error {
	c.registry.mu.Lock()
	site, known := c.registry.sites[name]
	refused := c.blockedLocked("", name)
	c.registry.mu.Unlock()
	now := c.now()
	switch {
	case !known || site.Kind == agentKind: // the coordinator cannot access it any more
		return c.db.Exec(ctx, "DELETE FROM leftover WHERE site = ?", name)
	case refused != "":
		return c.db.Exec(ctx, "UPDATE leftover SET due = ? WHERE site = ? AND due <= ?", now.Add(c.conf.Lease), name, now)
	}
	var problem error
	for more := true; more && ctx.Err() == nil; {
		all, err := db.Select(ctx, c.db, func(rows *db.Rows) (t temporary, err error) {
			return t, rows.Scan(&t.site, &t.path, &t.item, &t.epoch, &t.tries, &t.gone)
		}, "SELECT site, path, item, epoch, tries, gone FROM leftover WHERE site = ? AND due <= ? ORDER BY due LIMIT ?", name, now, sweepBatch)
		if err != nil {
			return err
		}
		more = len(all) == sweepBatch
		for _, t := range all {
			failure, err := c.sweepOne(ctx, t)
			if err != nil || ctx.Err() != nil {
				return err
			}
			problem = cmp.Or(problem, failure)
			if kind := tpc.KindOf(failure); kind == tpc.Unreachable || kind == tpc.Stalled || kind == tpc.Broken {
				more = false
				err = c.db.Exec(ctx, "UPDATE leftover SET due = ?, tries = tries + 1 WHERE site = ? AND due <= ?", now.Add(retrySweep(t.tries)),
					name, now)
				if err != nil {
					return err
				}
				break
			}
		}
	}
	if problem == nil {
		return nil
	}
	return c.db.Write(ctx, func(tx *db.Tx) error {
		given, err := tx.Exec("DELETE FROM leftover WHERE site = ? AND tries > 0 AND since < ?", name, c.now().Add(-sweepLife))
		if err == nil {
			c.log.Warn("temporary files not removed", "site", name, "error", problem, "abandoned", given)
		}
		return err
	})
}

// retrySweep returns the time to the next try at a temporary file after so many that failed.
func retrySweep(tries int) time.Duration { return min(sweepEvery<<min(tries, 10), longestSweep) }

// sweepOne removes a temporary file. It is forgotten when it was absent twice, some time apart. failure is set if it could not be removed.
func (c *Coordinator) sweepOne(ctx context.Context, t temporary) (failure, err error) {
	lease := transfer.Lease{Item: t.item, Epoch: t.epoch}
	c.registry.mu.Lock()
	running := c.registry.leaseLocked(lease.ID()) != nil
	c.registry.mu.Unlock()
	again := func(after time.Duration, tries int, gone bool) error {
		return c.db.Exec(ctx, "UPDATE leftover SET due = ?, tries = ?, gone = ? WHERE site = ? AND path = ?", c.now().Add(after), tries, gone,
			t.site, t.path)
	}
	if running {
		now := c.now()
		return nil, c.db.Exec(ctx, "UPDATE leftover SET due = ?, since = ?, tries = 0, gone = FALSE WHERE site = ? AND path = ?",
			now.Add(c.conf.Lease), now, t.site, t.path)
	}
	ask, cancel := context.WithTimeout(ctx, cleanTime)
	defer cancel()
	lease, err = c.lentFor(ask, lease)
	if errors.As(err, new(*tokenError)) {
		return err, again(retrySweep(t.tries), t.tries+1, false)
	} else if err != nil {
		return nil, err
	}
	at := c.target(lease, transfer.End{Site: t.site, Path: t.path, Token: lease.Dest.Token, Cert: lease.Dest.Cert})
	_, failure = c.tpc.Stat(ask, at)
	exists := failure == nil
	if exists {
		failure = c.tpc.Remove(ask, at)
	}
	switch {
	case ctx.Err() != nil:
		return nil, nil
	case tpc.KindOf(failure) == tpc.Missing && t.gone:
		return nil, c.db.Exec(ctx, "DELETE FROM leftover WHERE site = ? AND path = ?", t.site, t.path)
	case failure == nil, tpc.KindOf(failure) == tpc.Missing:
		if exists {
			c.log.Info("temporary file removed", "site", t.site, "path", t.path)
		}
		return nil, again(sweepAgain, 0, true)
	}
	return failure, again(retrySweep(t.tries), t.tries+1, false)
}
