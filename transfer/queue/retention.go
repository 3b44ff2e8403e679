package queue

import (
	"context"
	"errors"
	"time"

	"weir/internal/db"
)

// forgottenAtOnce is how many files are removed in one transaction.
const forgottenAtOnce = 2000

// Forget removes a request that ended before the given time, with its files and attempts, the one with the lowest number first; the
// last request of a job with the job. The catalog keeps its replicas. Each call removes a part: more reports whether there is more
// to remove.
func (q *Queue) Forget(ctx context.Context, before time.Time) (more bool, err error) {
	err = q.db.Write(ctx, func(tx *db.Tx) error {
		more = false
		var id int64
		var job string
		err := tx.Row("SELECT id, job FROM request WHERE ended > 0 AND ended < ? AND work = '' ORDER BY id LIMIT 1 {{lock}}", before).
			Scan(&id, &job)
		if errors.Is(err, db.ErrNone) {
			return nil
		} else if err != nil {
			return err
		}
		more = true
		items, err := db.Column[int64](tx, "SELECT id FROM item WHERE id >= ? AND id < ? ORDER BY id LIMIT ?", id*perRequest, (id+1)*perRequest,
			forgottenAtOnce)
		if err != nil {
			return err
		}
		if len(items) > 0 {
			first, last := items[0], items[len(items)-1]
			rows := []string{"attempt WHERE item >= ? AND item <= ?", "pair WHERE item >= ? AND item <= ?", "tape WHERE item >= ? AND item <= ?",
				"hop WHERE item >= ? AND item <= ?",
				"item WHERE id >= ? AND id <= ?"}
			if err := removeAll(tx, rows, first, last); err != nil {
				return err
			}
		}
		if len(items) == forgottenAtOnce {
			return nil
		}
		err = removeAll(tx, []string{"lane WHERE request = ?", "wanted WHERE request = ?", "request WHERE id = ?"}, id)
		if err != nil || job == "" {
			return err
		}
		return removeAll(tx, []string{"job WHERE id = ? AND NOT EXISTS (SELECT 1 FROM request r WHERE r.job = ?)"}, job, job)
	})
	return more, err
}

// removeAll removes rows of several tables that have the same values.
func removeAll(tx *db.Tx, rows []string, values ...any) error {
	for _, r := range rows {
		if _, err := tx.Exec("DELETE FROM "+r, values...); err != nil {
			return err
		}
	}
	return nil
}
