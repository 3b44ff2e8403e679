package coordinator

import (
	"context"
	"time"

	"weir/internal/db"
	"weir/internal/tpc"
	"weir/transfer"
)

const (
	sweepEvery   = 10 * time.Second
	sweepAgain   = 2 * time.Minute // who was cut off may go on writing for a while
	longestSweep = time.Hour       // between two tries at a site that does not answer
	sweepBatch   = 100
)

// A leftover is a temporary file that a copy may leave at a site without an agent.
type leftover struct {
	site, path  string
	item, epoch int64
	tries       int
	gone        bool
}

// leaves returns what a copy may leave; ok is false if that is nothing, or the
// site's agent sees to it. The registry is locked.
func (c *Coordinator) leaves(l *transfer.Lease) (one leftover, ok bool) {
	if l.Mode == transfer.Check || c.registry.sites[l.Dest.Site].Kind != httpKind {
		return one, false
	}
	one = leftover{site: l.Dest.Site, item: l.Item, epoch: l.Epoch, path: tempName(*l)}
	if l.Mode == transfer.Push && l.Dest.Temp == "" {
		one.path = transfer.PartName(l.Item, l.Epoch)
	}
	return one, true
}

// foresee writes down what copies may leave, before they begin.
func (c *Coordinator) foresee(ctx context.Context, leases []transfer.Lease) error {
	var all []leftover
	c.registry.mu.Lock()
	for i := range leases {
		if one, ok := c.leaves(&leases[i]); ok {
			all = append(all, one)
		}
	}
	c.registry.mu.Unlock()
	if len(all) == 0 {
		return nil
	}
	due := c.now().Add(c.lease())
	return c.db.Write(ctx, func(tx *db.Tx) error {
		_, err := tx.Many("INSERT INTO leftover (site, path, item, epoch, due, tries, gone) VALUES (?, ?, ?, ?, ?, 0, FALSE) ON CONFLICT DO NOTHING", func(yield func([]any) bool) {
			for _, l := range all {
				if !yield([]any{l.site, l.path, l.item, l.epoch, due}) {
					return
				}
			}
		})
		return err
	})
}

// named forgets what copies would have left whose movers (a site's agent, or with "" the
// coordinator) say that they went well: it has the file's name. It does not ask whether a
// file is there, which an attempt before may have brought.
func (c *Coordinator) named(ctx context.Context, mover string, all []transfer.Outcome) {
	var done []transfer.Outcome
	c.registry.mu.Lock()
	for _, o := range all {
		if l := c.registry.leases[o.Item]; l != nil && l.Epoch == o.Epoch && l.mover == mover && o.Fault == "" && !o.Existed {
			if _, ok := c.leaves(&l.Lease); ok {
				done = append(done, o)
			}
		}
	}
	c.registry.mu.Unlock()
	if len(done) == 0 {
		return
	}
	c.health.say("database", c.db.Write(ctx, func(tx *db.Tx) error { // if it fails it is looked for in vain
		_, err := tx.Many("DELETE FROM leftover WHERE item = ? AND epoch = ?", func(yield func([]any) bool) {
			for _, o := range done {
				if !yield([]any{o.Item, o.Epoch}) {
					return
				}
			}
		})
		return err
	}))
}

// sweepSoon has what was put off looked for within minutes: a clock that was set, or an
// earlier process' clock, may have put it off by hours.
func (c *Coordinator) sweepSoon(ctx context.Context) error {
	soon := c.now().Add(sweepAgain)
	return c.db.Write(ctx, func(tx *db.Tx) error {
		_, err := tx.Exec("UPDATE leftover SET due = ? WHERE due > ?", soon, soon)
		return err
	})
}

// sweepAll removes what copies have left, until ctx ends.
func (c *Coordinator) sweepAll(ctx context.Context) {
	c.health.say("database", c.sweepSoon(ctx))
	for c.rest(ctx, sweepEvery) {
		for more := true; more && ctx.Err() == nil; {
			var err error
			more, err = c.sweep(ctx)
			c.health.say("database", err)
			more = more && err == nil
		}
	}
}

// sweep removes some of them; more tells that there are others now.
func (c *Coordinator) sweep(ctx context.Context) (more bool, err error) {
	var all []leftover
	now := c.now()
	err = c.db.Read(ctx, func(tx *db.Tx) error {
		all, err = db.All(tx, func(rows *db.Rows) (l leftover, err error) {
			return l, rows.Scan(&l.site, &l.path, &l.item, &l.epoch, &l.tries, &l.gone)
		}, "SELECT site, path, item, epoch, tries, gone FROM leftover WHERE due <= ? ORDER BY due LIMIT ?", now, sweepBatch)
		return err
	})
	for _, l := range all {
		if err == nil && ctx.Err() == nil {
			err = c.sweepOne(ctx, l)
		}
	}
	return len(all) == sweepBatch, err
}

// sweepOne removes a leftover. It is forgotten when it was not there twice, some time
// apart.
func (c *Coordinator) sweepOne(ctx context.Context, l leftover) error {
	c.registry.mu.Lock()
	activeLease := c.registry.leases[l.item]
	running := activeLease != nil && activeLease.Epoch == l.epoch
	site, known := c.registry.sites[l.site]
	refused := c.refusing("", l.site)
	c.registry.mu.Unlock()
	again := func(after time.Duration, tries int, gone bool) error {
		return c.db.Write(ctx, func(tx *db.Tx) error {
			_, err := tx.Exec("UPDATE leftover SET due = ?, tries = ?, gone = ? WHERE site = ? AND path = ?", c.now().Add(after), tries, gone, l.site, l.path)
			return err
		})
	}
	switch {
	case running, known && refused != "":
		return again(c.lease(), 0, false)
	case !known || site.Kind != httpKind: // nobody can go there any more
		return c.forget(ctx, l)
	}
	ask, cancel := context.WithTimeout(ctx, cleanTime)
	defer cancel()
	at := c.target(transfer.Lease{Item: l.item, Epoch: l.epoch}, transfer.End{Site: l.site, Path: l.path})
	_, err := c.tpc.Stat(ask, at)
	there := err == nil
	if there {
		err = c.tpc.Remove(ask, at)
	}
	switch {
	case tpc.KindOf(err) == tpc.Missing && l.gone:
		return c.forget(ctx, l)
	case err == nil, tpc.KindOf(err) == tpc.Missing:
		if there {
			c.log.Info("a temporary file was removed", "site", l.site, "path", l.path)
		}
		return again(sweepAgain, 0, true)
	case ctx.Err() != nil:
		return nil
	}
	c.log.Warn("a temporary file stays for now", "site", l.site, "path", l.path, "error", err)
	return again(min(sweepEvery<<min(l.tries, 10), longestSweep), l.tries+1, false)
}

func (c *Coordinator) forget(ctx context.Context, l leftover) error {
	return c.db.Write(ctx, func(tx *db.Tx) error {
		_, err := tx.Exec("DELETE FROM leftover WHERE site = ? AND path = ?", l.site, l.path)
		return err
	})
}
