package queue

import (
	"context"
	"errors"

	"weir/internal/db"
)

// Numbers that SkipNumbers leaves out: requests that were submitted after a backup, attempts at a
// file, and events.
const (
	skippedRequests = 100_000
	skippedEpochs   = 1000
	skippedEvents   = 1_000_000_000
)

// SkipNumbers prepares a restored SQLite database whose coordinator continued to work after the
// backup: agents may have requests and attempts of that time, and clients that follow events
// request later events. New requests, and with them files, and events get numbers that were not
// assigned. Each file that is not done gets an epoch that was not assigned, and its lease, whose
// mover may hold a later lease, is ended: it is attempted again, and skipped if the destination has
// it.
func SkipNumbers(ctx context.Context, d *db.DB) error {
	if d.Dialect() != db.SQLite {
		return errors.New("only a database of SQLite is restored")
	}
	return d.Write(ctx, func(tx *db.Tx) error {
		if _, err := tx.Exec("UPDATE sqlite_sequence SET seq = seq + ? WHERE name = 'request'", skippedRequests); err != nil {
			return err
		}
		if _, err := tx.Exec("UPDATE event_last SET id = id + ?", skippedEvents); err != nil {
			return err
		}
		if _, err := tx.Exec("UPDATE item SET epoch = epoch + ? WHERE state NOT IN (?, ?)", skippedEpochs, done, skipped); err != nil {
			return err
		}
		_, err := tx.Exec("UPDATE lease SET epoch = epoch + ?, until = 0", skippedEpochs)
		return err
	})
}
