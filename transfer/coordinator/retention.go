package coordinator

import (
	"context"
	"time"

	"weir/internal/db"
	"weir/internal/pause"
)

const (
	forgetEvery   = 10 * time.Minute
	pruneEvery    = time.Minute
	pruneSecrets  = time.Hour             // between two looks for tokens and proxies that have expired
	forgetPause   = 50 * time.Millisecond // between two transactions that remove rows, if there are more
	removedAtOnce = 1000                  // rows
)

// forgetAll removes ended requests that are older than they are kept.
func (c *Coordinator) forgetAll(ctx context.Context) {
	for c.conf.Keep > 0 && ctx.Err() == nil {
		c.repeatedly(ctx, forgetEvery, func(ctx context.Context) (bool, error) {
			return c.queue.Forget(ctx, c.now().Add(-c.conf.Keep))
		})
	}
}

// pruneAll thins and removes samples, and removes old notifications, tokens and proxies, until ctx ends.
func (c *Coordinator) pruneAll(ctx context.Context) {
	var secrets time.Time
	for ctx.Err() == nil {
		if now := c.now(); now.Sub(secrets) >= pruneSecrets {
			secrets = now
			c.health.database(c.pruneBearers(ctx))
			c.health.database(c.pruneProxies(ctx))
		}
		c.repeatedly(ctx, pruneEvery, c.prune)
	}
}

// repeatedly calls f, which does a bounded part, with pauses for others who write, until there is nothing more to do. Then it
// waits.
func (c *Coordinator) repeatedly(ctx context.Context, every time.Duration, f func(context.Context) (more bool, err error)) {
	for more := true; more && ctx.Err() == nil; {
		begin := time.Now()
		c.untilDone(ctx, func(ctx context.Context) (err error) {
			more, err = f(ctx)
			return err
		})
		if more {
			pause.For(ctx, max(forgetPause, time.Since(begin)))
		}
	}
	pause.For(ctx, every)
}

// prune does a bounded part of what makes samples and notifications fewer.
func (c *Coordinator) prune(ctx context.Context) (more bool, err error) {
	if more, err = c.thin(ctx); err != nil {
		return false, err
	}
	now := c.now()
	for _, old := range []struct {
		table, column string
		life          time.Duration
	}{{"sample", "at", sampleLife}, {"notification", "made", notifyKept}} {
		some, err := c.removeOld(ctx, old.table, old.column, now.Add(-old.life))
		if err != nil {
			return false, err
		}
		more = more || some
	}
	return more, nil
}

// removeOld removes the oldest rows of a table, a bounded number, if they are older than that. The column has an index.
func (c *Coordinator) removeOld(ctx context.Context, table, column string, before time.Time) (more bool, err error) {
	err = c.db.Write(ctx, func(tx *db.Tx) error {
		last, err := db.Column[int64](tx, "SELECT "+column+" FROM "+table+" WHERE "+column+" < ? ORDER BY "+column+" LIMIT 1 OFFSET ?", before,
			removedAtOnce-1)
		upto := db.Nanos(before) - 1
		if more = len(last) > 0; more {
			upto = last[0]
		}
		if err == nil {
			_, err = tx.Exec("DELETE FROM "+table+" WHERE "+column+" <= ?", upto)
		}
		return err
	})
	return more, err
}
