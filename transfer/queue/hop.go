package queue

import (
	"context"
	"time"

	"weir/internal/db"
	"weir/transfer"
)

// A hop is a file that waits for another file of its job.
type hop struct {
	item, after, made int64
}

// addHops stores the dependencies between the files of a job. numbers are the items by their number
// in the job.
func (e *edit) addHops(parts []JobPart, numbers map[int]int64) error {
	var all []hop
	for _, p := range parts {
		for _, one := range p.Pairs {
			if one.After > 0 {
				all = append(all, hop{numbers[one.Number], numbers[one.After-1], numbers[one.Made-1]})
			}
		}
	}
	_, err := e.tx.Many("INSERT INTO hop (item, after, made) VALUES (?, ?, ?)",
		db.Each(all, func(h hop) []any { return []any{h.item, h.after, h.made} }))
	return err
}

// nextHops makes files ready that waited for files that have ended.
func (q *Queue) nextHops(ctx context.Context, _ time.Time) error {
	type ended struct {
		hop
		before, made state
	}
	by := map[int64]ended{}
	items, err := db.Get(ctx, q.db, func(tx *db.Tx) ([]int64, error) {
		clear(by)
		return db.All(tx, func(rows *db.Rows) (int64, error) {
			var h ended
			err := rows.Scan(&h.item, &h.before, &h.made)
			by[h.item] = h
			return h.item, err
		}, `SELECT h.item, a.state, CASE WHEN h.made = 0 THEN 0 ELSE (SELECT m.state FROM item m WHERE m.id = h.made) END
			FROM hop h JOIN item a ON a.id = h.after WHERE a.state IN (4, 5, 6, 7) ORDER BY h.item LIMIT ?`, batch)
	})
	if err != nil || len(items) == 0 {
		return err
	}
	return q.editFiles(ctx, items, func(e *edit, files []*file) error {
		var next []*file
		for _, f := range files {
			h := by[f.id]
			switch {
			case f.state != held: // it was cancelled
			case h.made == done, h.made == 0 && (h.before == done || h.before == skipped):
				next = append(next, f)
			case h.made != 0:
				f.arrive(transfer.Outcome{Existed: true}, e.now)
				f.reason = "weir did not make it"
			default:
				f.fail(dropped, transfer.HopFailed, "the hop before it has failed", e.now)
			}
		}
		if _, err := e.tx.Exec("DELETE FROM hop WHERE item {{in}}", items); err != nil {
			return err
		}
		return e.route(next)
	})
}
