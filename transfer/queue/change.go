package queue

import (
	"context"
	"maps"
	"slices"
	"strings"
	"time"

	"weir/internal/db"
	"weir/transfer"
)

// A FileChange is a change of a file of a job, for programs that follow jobs from outside.
type FileChange struct {
	ID     int64
	At     time.Time
	Began  bool              // an attempt begins
	Ended  *transfer.Attempt // the attempt that ended; nil: no attempt ended
	Source string            // site of that attempt, or of the last attempt; "": there was no attempt
	Job    *JobState         // the current state
	File   *JobFile          // with the state and the reason after the change; all other fields are current
}

const changeColumns = "at, item, epoch, was, state, source"

// saveChanges records the changes of files of jobs, if they are to be kept.
func (e *edit) saveChanges() error {
	if !e.q.o.Changes {
		return nil
	}
	var rows [][]any
	add := func(f *file, was state) {
		if f.state == was || waiting(f.state) && waiting(was) {
			return
		}
		if r := e.requests[f.request]; r.Job != "" && !r.Delete {
			rows = append(rows, []any{e.now, f.id, f.epoch, int64(was), int64(f.state), f.source})
		}
	}
	for _, id := range slices.Sorted(maps.Keys(e.files)) {
		add(e.files[id], e.was[id].state)
	}
	for _, f := range e.added {
		add(f, 0)
	}
	if len(rows) == 0 {
		return nil
	}
	_, err := e.tx.Bulk("file_change", strings.Split(changeColumns, ", "), db.Each(rows, func(row []any) []any { return row }))
	return err
}

// waiting reports whether a file in this state waits for a lease.
func waiting(s state) bool { return s == ready || s == resting }

// A changeRow is a row of the table of changes.
type changeRow struct {
	id          int64
	at          time.Time
	item, epoch int64
	was, state  state
	source      string
}

// Changes returns the oldest n changes that have not been removed, for each file in their order. A
// change of a forgotten job has no Job and no File. Changes are kept only with Options.Changes.
func (q *Queue) Changes(ctx context.Context, n int) ([]*FileChange, error) {
	return db.Get(ctx, q.db, func(tx *db.Tx) ([]*FileChange, error) {
		rows, err := db.All(tx, func(r *db.Rows) (c changeRow, err error) {
			return c, r.Scan(&c.id, db.When(&c.at), &c.item, &c.epoch, &c.was, &c.state, &c.source)
		}, "SELECT id, "+changeColumns+" FROM file_change ORDER BY id LIMIT ?", n)
		if err != nil || len(rows) == 0 {
			return nil, err
		}
		items := slices.Compact(slices.Sorted(slices.Values(idsOf(rows, func(c changeRow) int64 { return c.item }))))
		files, err := filesOf(tx, "id {{in}} ORDER BY id", items)
		if err != nil {
			return nil, err
		}
		jobs, parts, err := jobsOfFiles(tx, files)
		if err != nil {
			return nil, err
		}
		shown, err := jobFiles(tx, files, parts, "item {{in}}", items)
		if err != nil {
			return nil, err
		}
		attempts, err := attemptsOf(tx, "item {{in}} AND late = 0", items)
		all := make([]*FileChange, len(rows))
		for i, row := range rows {
			at := slices.IndexFunc(files, func(f *file) bool { return f.id == row.item })
			if all[i] = (&FileChange{ID: row.id, At: row.at, Source: row.source}); at >= 0 {
				all[i].Job = jobs[row.item]
				all[i].fill(row, files[at], shown[at], attempts)
			}
		}
		return all, err
	})
}

// fill adds the file in its state after the change, and the attempt that ended with it.
func (c *FileChange) fill(row changeRow, f *file, now *JobFile, attempts []transfer.Attempt) {
	c.Began = row.state == leased
	if row.was == leased {
		i := slices.IndexFunc(attempts, func(a transfer.Attempt) bool { return a.Item == row.item && a.Epoch == row.epoch })
		if i >= 0 {
			c.Ended = &attempts[i]
		}
	}
	then := *now
	then.State, then.Waits, then.Held = row.state.shown(), waitsFor(row.state), row.state == held
	if f.state != row.state || f.epoch != row.epoch { // it has changed again
		then.Fault, then.Reason, then.Ended = "", "", time.Time{}
		if c.Ended != nil {
			then.Fault, then.Reason = c.Ended.Fault, c.Ended.Reason
		}
	}
	c.File = &then
}

// jobsOfFiles returns the jobs of files by item, and the parts of these jobs by request.
func jobsOfFiles(tx *db.Tx, files []*file) (by map[int64]*JobState, parts map[int64]*JobRequest, err error) {
	requests := slices.Compact(slices.Sorted(slices.Values(idsOf(files, func(f *file) int64 { return f.request }))))
	names, err := db.Column[string](tx, "SELECT DISTINCT job FROM request WHERE id {{in}}", requests)
	if err != nil {
		return nil, nil, err
	}
	jobs, err := jobsOf(tx, "id {{in}}", names)
	by, parts = map[int64]*JobState{}, map[int64]*JobRequest{}
	of := map[int64]*JobState{}
	for _, j := range jobs {
		for i := range j.Parts {
			parts[j.Parts[i].ID], of[j.Parts[i].ID] = &j.Parts[i], j
		}
	}
	for _, f := range files {
		by[f.id] = of[f.request]
	}
	return by, parts, err
}

// RemoveChanges removes changes by their IDs.
func (q *Queue) RemoveChanges(ctx context.Context, ids []int64) error {
	return q.db.Write(ctx, func(tx *db.Tx) error {
		_, err := tx.Exec("DELETE FROM file_change WHERE id {{in}}", ids)
		return err
	})
}

// droppedAtOnce is the maximum number of changes removed in one transaction.
const droppedAtOnce = 10_000

// DropChanges removes the oldest changes if they were made before a time, or if there are more than
// most, a bounded number at a time. It returns the number removed, and whether there may be more.
func (q *Queue) DropChanges(ctx context.Context, before time.Time, most int64) (n int64, more bool, err error) {
	err = q.db.Write(ctx, func(tx *db.Tx) error {
		n, err = tx.Exec(`DELETE FROM file_change WHERE (at < ? OR id <= (SELECT MAX(id) FROM file_change) - ?)
			AND id <= (SELECT MAX(id) FROM (SELECT id FROM file_change ORDER BY id LIMIT ?) oldest)`, before, most, droppedAtOnce)
		return err
	})
	return n, n == droppedAtOnce, err
}

// KeptChanges returns the approximate number of changes that have not been removed, and the time of
// the oldest; zero if there are no changes.
func (q *Queue) KeptChanges(ctx context.Context) (n int64, oldest time.Time, err error) {
	err = q.db.Read(ctx, func(tx *db.Tx) error {
		return tx.Row(`SELECT COALESCE(MAX(id) - MIN(id) + 1, 0), COALESCE((SELECT at FROM file_change ORDER BY id LIMIT 1), 0)
			FROM file_change`).Scan(&n, db.When(&oldest))
	})
	return n, oldest, err
}
