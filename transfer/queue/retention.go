package queue

import (
	"context"
	"errors"
	"time"

	"weir/internal/db"
)

// forgottenAtOnce is the approximate number of files removed in one transaction.
const forgottenAtOnce = 1000

// Forget removes requests that ended before the given time, with their files and attempts, the
// earliest ended first. The requests of a job are removed when all of them ended before that time,
// and the job with the last of them. The catalog keeps its replicas. Each call removes a bounded
// part: more reports whether there is more to remove.
func (q *Queue) Forget(ctx context.Context, before time.Time) (more bool, err error) {
	err = q.db.Write(ctx, func(tx *db.Tx) error {
		more = true
		for left := forgottenAtOnce; left > 0 && more; {
			var n int
			var err error
			if n, more, err = forget(tx, before, left); err != nil {
				return err
			}
			left -= n + 1
		}
		return nil
	})
	return more, err
}

// forget removes at most the given number of files, or names of files, of the request that ended
// first, and the request with the last of them. n is the number removed; more is false if there is
// no such request.
func forget(tx *db.Tx, before time.Time, most int) (n int, more bool, err error) {
	var id int64
	var job string
	err = tx.Row(`SELECT id, job FROM request WHERE ended > 0 AND ended < ? AND work = '' AND NOT EXISTS (SELECT 1 FROM request o
		WHERE o.job = request.job AND o.job <> '' AND (o.ended = 0 OR o.ended >= ?)) ORDER BY ended LIMIT 1 {{lock}}`, before, before).
		Scan(&id, &job)
	if errors.Is(err, db.ErrNone) {
		return 0, false, nil
	} else if err != nil {
		return 0, false, err
	}
	items, err := db.Column[int64](tx, "SELECT id FROM item WHERE id >= ? AND id < ? ORDER BY id LIMIT ?", id*perRequest,
		(id+1)*perRequest, most)
	if err != nil {
		return 0, false, err
	}
	if n = len(items); n > 0 {
		rows := []string{"attempt WHERE item >= ? AND item <= ?", "pair WHERE item >= ? AND item <= ?", "tape WHERE item >= ? AND item <= ?",
			"hop WHERE item >= ? AND item <= ?", "item WHERE id >= ? AND id <= ?"}
		if err := removeAll(tx, rows, items[0], items[n-1]); err != nil {
			return 0, false, err
		}
	}
	names, err := db.Column[string](tx, "SELECT name FROM wanted WHERE request = ? ORDER BY name LIMIT ?", id, most-n)
	if err == nil && len(names) > 0 {
		n += len(names)
		err = removeAll(tx, []string{"wanted WHERE request = ? AND name <= ?"}, id, names[len(names)-1])
	}
	if err != nil || n == most {
		return n, true, err
	}
	err = removeAll(tx, []string{"lane WHERE request = ?", "request WHERE id = ?"}, id)
	if err == nil && job != "" {
		err = removeAll(tx, []string{"job WHERE id = ? AND NOT EXISTS (SELECT 1 FROM request r WHERE r.job = ? AND r.job <> '')"}, job, job)
	}
	return n, true, err
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
