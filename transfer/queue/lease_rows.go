package queue

import (
	"strconv"
	"strings"
	"time"

	"weir/internal/db"
	"weir/transfer"
)

// A lease is who moves a file now.
type lease struct {
	item, epoch         int64
	dest                string
	file                int64
	source, path        string
	mode                transfer.Mode
	size                int64
	began, heard, until time.Time
	missing             bool
	stage               transfer.Stage
	moved               int64
}

const leaseColumns = "item, epoch, dest, file, source, path, mode, size, began, heard, until, missing, stage, moved"

func scanLease(rows *db.Rows) (*lease, error) {
	l := &lease{}
	return l, rows.Scan(&l.item, &l.epoch, &l.dest, &l.file, &l.source, &l.path, &l.mode, &l.size, db.When(&l.began), db.When(&l.heard), db.When(&l.until), &l.missing, &l.stage, &l.moved)
}

// leases reads those of items.
func leases(tx *db.Tx, items []int64) (map[int64]*lease, error) {
	all, err := db.All(tx, scanLease, "SELECT "+leaseColumns+" FROM lease WHERE item {{in}}", items)
	m := map[int64]*lease{}
	for _, l := range all {
		m[l.item] = l
	}
	return m, err
}

const attemptColumns = "item, epoch, late, source, dest, mode, fault, reason, after, size, adler, verified, existed, moved, resumed, began, ended, cpu"

func scanAttempt(rows *db.Rows) (transfer.Attempt, error) {
	var a transfer.Attempt
	var late int64
	err := rows.Scan(&a.Item, &a.Epoch, &late, &a.Source, &a.Dest, &a.Mode, &a.Fault, &a.Reason, &a.After, &a.Size, &a.Adler, &a.Verified, &a.Existed, &a.Moved, &a.Resumed,
		db.When(&a.Begin), db.When(&a.End), &a.CPU)
	a.Late = late > 0
	return a, err
}

func (e *edit) saveLeases() error {
	if len(e.over) > 0 {
		if _, err := e.tx.Exec("DELETE FROM lease WHERE item {{in}}", e.over); err != nil {
			return err
		}
	}
	return nil
}

// saveAttempts writes attempts once: of those that came late there may be some.
func (e *edit) saveAttempts() error {
	rows := func(late bool) func(yield func([]any) bool) {
		return func(yield func([]any) bool) {
			for _, a := range e.attempts {
				var n int64
				if a.Late {
					n = 1
				}
				if a.Late == late && !yield([]any{a.Item, a.Epoch, n, a.Source, a.Dest, string(a.Mode), string(a.Fault), a.Reason, int64(a.After), a.Size, a.Adler, a.Verified, a.Existed,
					a.Moved, a.Resumed, db.Nanos(a.Begin), db.Nanos(a.End), a.CPU}) {
					return
				}
			}
		}
	}
	if len(e.attempts) == 0 {
		return nil
	}
	if _, err := e.tx.Bulk("attempt", strings.Split(attemptColumns, ", "), rows(false)); err != nil {
		return err
	}
	_, err := e.tx.Many("INSERT INTO attempt ("+attemptColumns+") VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?) ON CONFLICT DO NOTHING", rows(true))
	return err
}

// saveEvents numbers events. Whoever does holds the row of the last number until
// it commits, so numbers become visible in their order.
func (e *edit) saveEvents() error {
	n := int64(len(e.events))
	if n == 0 {
		return nil
	}
	var last int64
	if err := e.tx.Row("UPDATE event_last SET id = id + ? WHERE one = 1 RETURNING id", n).Scan(&last); err != nil {
		return err
	}
	_, err := e.tx.Many("INSERT INTO event (id, at, request, item, status, text) VALUES (?, ?, ?, ?, ?, ?)", func(yield func([]any) bool) {
		for i, v := range e.events {
			if r := e.requests[v.Request]; r != nil {
				v.Status = r.Status
			}
			if !yield([]any{last - n + 1 + int64(i), v.Time, v.Request, v.Item, string(v.Status), v.Text}) {
				return
			}
		}
	})
	return err
}

func number(n int64) string { return strconv.FormatInt(n, 10) }
