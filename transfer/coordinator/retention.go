package coordinator

import (
	"context"
	"time"

	"weir/internal/db"
	"weir/transfer/notify"
	"weir/transfer/samples"
)

const (
	forgetEvery   = 10 * time.Minute
	pruneEvery    = time.Minute
	pruneSecrets  = time.Hour // interval of the removal of expired tokens and proxies
	removedAtOnce = 1000      // rows
)

// forgetAll removes ended requests after their retention time.
func (c *Coordinator) forgetAll(ctx context.Context) {
	for c.conf.Keep > 0 && ctx.Err() == nil {
		c.health.Repeatedly(ctx, forgetEvery, func(ctx context.Context) (bool, error) {
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
			c.access.Prune(ctx)
		}
		c.health.Repeatedly(ctx, pruneEvery, c.prune)
	}
}

// prune performs a bounded part of the thinning and removal of samples and notifications.
func (c *Coordinator) prune(ctx context.Context) (more bool, err error) {
	if more, err = c.samples.Thin(ctx); err != nil {
		return false, err
	}
	now := c.now()
	for _, old := range []struct {
		table, column string
		life          time.Duration
	}{{"sample", "at", samples.Life}, {"notification", "made", notify.Kept}} {
		some, err := c.removeOld(ctx, old.table, old.column, now.Add(-old.life))
		if err != nil {
			return false, err
		}
		more = more || some
	}
	return more, nil
}

// removeOld removes a bounded number of the oldest rows of a table, if they are older than before.
// The column has an index.
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
