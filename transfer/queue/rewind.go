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
		return shift(tx, -back, now)
	})
}

// Shift moves all that is put off along with a clock that was set by so much:
// what rests for a minute does so, and leases do not all run out at once.
func (q *Queue) Shift(ctx context.Context, by time.Duration) error {
	return q.db.Write(ctx, func(tx *db.Tx) error { return shift(tx, by, time.Time{}) })
}

// shift moves what lies after a moment.
func shift(tx *db.Tx, by time.Duration, after time.Time) error {
	for _, change := range []string{
		"UPDATE item SET due = due + ? WHERE state = 2 AND due > ?",
		"UPDATE hold SET until = until + ? WHERE until > ?",
		"UPDATE lease SET until = until + ? WHERE until > ?",
		"UPDATE lease SET heard = heard + ? WHERE heard > ?",
	} {
		if _, err := tx.Exec(change, by.Nanoseconds(), after); err != nil {
			return err
		}
	}
	return nil
}
