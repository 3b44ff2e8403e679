package queue

import (
	"context"

	"weir/internal/db"
)

// CancelFiles cancels those of the files that have not ended, each by itself, and why is their reason. Waiting ones end at once, those
// that are being copied as soon as their mover reports: Renew says that it is to abort them.
func (q *Queue) CancelFiles(ctx context.Context, items []int64, why string) error {
	why = text(why, 1000)
	if why == "" {
		why = "it was cancelled"
	}
	return q.editFiles(ctx, items, func(e *edit, files []*file) error {
		var active []int64
		for _, f := range files {
			switch {
			case !e.requests[f.request].open():
			case f.state == leased:
				active = append(active, f.id)
			case f.state == ready, f.state == resting:
				f.fail(dropped, f.fault, why, e.now)
			}
		}
		if len(active) == 0 {
			return nil
		}
		_, err := e.tx.Exec("UPDATE lease SET stop = ? WHERE stop = '' AND item {{in}}", why, active)
		return err
	})
}

// OpenJobIDs returns the ids of the jobs that have not ended and are not being cancelled.
func (q *Queue) OpenJobIDs(ctx context.Context) ([]string, error) {
	return db.Get(ctx, q.db, func(tx *db.Tx) ([]string, error) {
		return db.Column[string](tx, "SELECT DISTINCT job FROM request WHERE ended = 0 AND job <> '' AND stop = '' ORDER BY job")
	})
}
