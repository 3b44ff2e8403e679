package queue

import (
	"context"
	"time"

	"weir/internal/db"
)

// ahead is how far in the future the past may lie: clocks differ a little.
const ahead = 30 * time.Second

// rewind takes back what an earlier process has put off, if its clock was ahead of
// what it is now: otherwise files that rest for a minute would do so until this
// clock has come as far as that one was.
func (q *Queue) rewind(ctx context.Context) error {
	now := q.now()
	return q.db.Write(ctx, func(tx *db.Tx) error {
		var last time.Time
		for _, query := range []string{"SELECT COALESCE(MAX(heard), 0) FROM lease", "SELECT COALESCE(MAX(ended), 0) FROM attempt", "SELECT COALESCE(MAX(seen), 0) FROM site"} {
			var at time.Time
			if err := tx.Row(query).Scan(db.When(&at)); err != nil {
				return err
			}
			if at.After(last) {
				last = at
			}
		}
		back := last.Sub(now)
		if back <= ahead {
			return nil
		}
		return q.shift(tx, -back, now)
	})
}

// Shift has what is put off go along with a clock that was set by so much: files do
// not rest for hours, and leases do not all run out at once.
func (q *Queue) Shift(ctx context.Context, by time.Duration) error {
	now := q.now()
	return q.db.Write(ctx, func(tx *db.Tx) error { return q.shift(tx, by, now) })
}

// shift changes what was written before the clock was set, as far as that can be
// told: nobody noticed at once. What is changed wrongly is only due too early.
func (q *Queue) shift(tx *db.Tx, by time.Duration, now time.Time) error {
	n := by.Nanoseconds()
	if by > 0 {
		_, err := tx.Exec("UPDATE lease SET until = until + ?, heard = heard + ? WHERE until <= ?", n, n, now)
		return err
	}
	if _, err := tx.Exec("UPDATE item SET due = due + ? WHERE state = 2 AND due > ?", n, now); err != nil {
		return err
	}
	if _, err := tx.Exec("UPDATE hold SET until = until + ? WHERE until > ?", n, now); err != nil {
		return err
	}
	_, err := tx.Exec("UPDATE lease SET until = until + ?, heard = heard + ? WHERE until > ?", n, n, now.Add(q.o.Lease))
	return err
}
