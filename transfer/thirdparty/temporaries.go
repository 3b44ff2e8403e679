package thirdparty

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
	"weir/transfer/access"
	"weir/transfer/catalog"
	"weir/transfer/dispatch"
)

const (
	sweepEvery   = 10 * time.Second
	sweepAgain   = 2 * time.Minute // a writer that was cut off may continue for a while
	longestSweep = time.Hour       // between two tries at a site that does not respond
	sweepLife    = 7 * 24 * time.Hour
	sweepBatch   = 100
)

// A leftover is a temporary file that will be removed.
type leftover struct {
	dispatch.Temporary
	tries int
	gone  bool
}

// RecordTemporaries writes the temporary files of leases to the database, before they are created.
func (c *Copier) RecordTemporaries(ctx context.Context, leases []transfer.Lease) error {
	all := c.leases.Temporaries(leases)
	if len(all) == 0 {
		return nil
	}
	now := c.now()
	due := now.Add(c.lease)
	const query = `INSERT INTO leftover (site, path, item, epoch, since, due, tries, gone) VALUES (?, ?, ?, ?, ?, ?, 0, FALSE)
		ON CONFLICT DO NOTHING`
	return c.db.Many(ctx, query, db.Each(all, func(t dispatch.Temporary) []any { return []any{t.Site, t.Path, t.Item, t.Epoch, now, due} }))
}

// ForgetTemporaries removes the records of temporary files of transfers whose movers (the agent of
// a site, or "" for the coordinator) report that they renamed or never wrote them, or that never
// began. A file that existed before proves nothing.
func (c *Copier) ForgetTemporaries(ctx context.Context, mover string, all []transfer.Outcome) {
	done := c.leases.WithoutTemporary(mover, all)
	if len(done) == 0 {
		return
	}
	err := c.db.Many(ctx, "DELETE FROM leftover WHERE item = ? AND epoch = ?",
		db.Each(done, func(id transfer.LeaseID) []any { return []any{id.Item, id.Epoch} }))
	c.health.Database(err) // after a failure they do not exist
}

// SweepSoon makes all temporary files due within minutes: a clock that was changed, or the clock of
// a former process, may have deferred them by hours.
func (c *Copier) SweepSoon(ctx context.Context) error {
	soon := c.now().Add(sweepAgain)
	return c.db.Exec(ctx, "UPDATE leftover SET due = ? WHERE due > ?", soon, soon)
}

// SweepAll removes temporary files until ctx ends, at all sites concurrently: a silent site delays
// its own files only.
func (c *Copier) SweepAll(ctx context.Context) {
	c.health.Database(c.SweepSoon(ctx))
	var sweeps sync.WaitGroup
	defer sweeps.Wait()
	var running sync.Map // by site
	for pause.For(ctx, sweepEvery) {
		sites, err := db.Select(ctx, c.db, func(rows *db.Rows) (site string, err error) { return site, rows.Scan(&site) },
			"SELECT DISTINCT site FROM leftover WHERE due <= ?", c.now())
		c.health.Database(err)
		for _, site := range sites {
			if _, is := running.LoadOrStore(site, true); is {
				continue
			}
			sweeps.Go(func() {
				defer running.Delete(site)
				c.health.Database(c.SweepSite(ctx, site))
			})
		}
	}
}

// SweepSite removes the temporary files of a site that are due. If the site does not respond, all
// of them wait.
func (c *Copier) SweepSite(ctx context.Context, name string) error {
	site, known := c.sites.Get(name)
	refused := c.sites.Blocked(name)
	now := c.now()
	switch {
	case !known || site.Kind == catalog.AgentSite: // the coordinator cannot access it any more
		return c.db.Exec(ctx, "DELETE FROM leftover WHERE site = ?", name)
	case refused != "":
		return c.db.Exec(ctx, "UPDATE leftover SET due = ? WHERE site = ? AND due <= ?", now.Add(c.lease), name, now)
	}
	var problem error
	for more := true; more && ctx.Err() == nil; {
		all, err := db.Select(ctx, c.db, func(rows *db.Rows) (t leftover, err error) {
			return t, rows.Scan(&t.Site, &t.Path, &t.Item, &t.Epoch, &t.tries, &t.gone)
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

// retrySweep returns the time to the next try at a temporary file after so many failed tries.
func retrySweep(tries int) time.Duration { return min(sweepEvery<<min(tries, 10), longestSweep) }

// sweepOne removes a temporary file. Its record is removed when the file was absent twice, some
// time apart. failure is set if it could not be removed.
func (c *Copier) sweepOne(ctx context.Context, t leftover) (failure, err error) {
	lease := transfer.Lease{Item: t.Item, Epoch: t.Epoch}
	running := c.leases.Runs(lease.ID())
	again := func(after time.Duration, tries int, gone bool) error {
		return c.db.Exec(ctx, "UPDATE leftover SET due = ?, tries = ?, gone = ? WHERE site = ? AND path = ?", c.now().Add(after), tries, gone,
			t.Site, t.Path)
	}
	if running {
		now := c.now()
		return nil, c.db.Exec(ctx, "UPDATE leftover SET due = ?, since = ?, tries = 0, gone = FALSE WHERE site = ? AND path = ?",
			now.Add(c.lease), now, t.Site, t.Path)
	}
	ask, cancel := context.WithTimeout(ctx, cleanTime)
	defer cancel()
	lease, err = c.access.LentFor(ask, lease)
	if errors.As(err, new(*access.TokenError)) {
		return err, again(retrySweep(t.tries), t.tries+1, false)
	} else if err != nil {
		return nil, err
	}
	at := c.endpoints.Target(lease, transfer.End{Site: t.Site, Path: t.Path, Token: lease.Dest.Token, Cert: lease.Dest.Cert})
	_, failure = c.tpc.Stat(ask, at)
	exists := failure == nil
	if exists {
		failure = c.tpc.Remove(ask, at)
	}
	switch {
	case ctx.Err() != nil:
		return nil, nil
	case tpc.KindOf(failure) == tpc.Missing && t.gone:
		return nil, c.db.Exec(ctx, "DELETE FROM leftover WHERE site = ? AND path = ?", t.Site, t.Path)
	case failure == nil, tpc.KindOf(failure) == tpc.Missing:
		if exists {
			c.log.Info("temporary file removed", "site", t.Site, "path", t.Path)
		}
		return nil, again(sweepAgain, 0, true)
	}
	return failure, again(retrySweep(t.tries), t.tries+1, false)
}
