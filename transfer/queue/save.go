package queue

import (
	"cmp"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"weir/internal/db"
	"weir/transfer"
)

// A change is the new state of a file. Many files of an edit change alike, and one statement
// changes them all, at a third of the cost.
type change struct {
	state          state
	sourceGroup    int64
	more           int64 // increase of the epoch
	tries, pauses  int
	due, ended     int64
	source         string
	mode           transfer.Mode
	fault          transfer.ErrorClass
	reason         string
	whole          bool // all its bytes were moved
	moved          int64
	sourceFailures sourceFailures
	again          bool
	adler          string // "": unchanged
	size           int64  // set if it was unknown; -1: unchanged
}

func changeOf(was, f *file) change {
	c := change{state: f.state, sourceGroup: f.sourceGroup, more: f.epoch - was.epoch, tries: f.tries, pauses: f.pauses,
		due: db.Nanos(f.due), ended: db.Nanos(f.ended), source: f.source, mode: f.mode, fault: f.fault, reason: f.reason,
		whole: f.moved == f.size, moved: f.moved, sourceFailures: f.sourceFailures, again: f.again}
	if c.whole {
		c.moved = 0
	}
	if c.size = -1; f.size != was.size {
		c.size, c.whole, c.moved = f.size, false, f.moved
	}
	if f.adler != was.adler {
		c.adler = f.adler
	}
	return c
}

// saveFiles stores the changed and the added files, and updates the counters of requests and source
// groups.
func (e *edit) saveFiles() error {
	alike := map[change][]int64{}
	var order []change
	for _, id := range slices.Sorted(maps.Keys(e.files)) {
		f, was := e.files[id], e.was[id]
		if *f == was {
			continue
		}
		c := changeOf(&was, f)
		if alike[c] == nil {
			order = append(order, c)
		}
		alike[c] = append(alike[c], id)
		e.count(&was, -1)
		e.count(f, +1)
	}
	for _, f := range e.added {
		e.count(f, +1)
	}
	_, err := e.tx.Many(`UPDATE item SET state = ?, lane = ?, epoch = epoch + ?, tries = ?, pauses = ?, due = ?, ended = ?,
		source = ?, mode = ?, fault = ?, reason = ?, moved = CASE WHEN ? THEN size ELSE ? END, trail = ?, again = ?,
		adler = CASE WHEN ? THEN adler ELSE ? END, size = CASE WHEN ? THEN size ELSE ? END WHERE id {{in}}`, db.Each(order, func(c change) []any {
		return []any{int64(c.state), c.sourceGroup, c.more, c.tries, c.pauses, c.due, c.ended,
			c.source, string(c.mode), string(c.fault), c.reason, c.whole, c.moved, string(c.sourceFailures), c.again,
			c.adler == "", c.adler, c.size < 0, c.size, alike[c]}
	}))
	if err != nil || len(e.added) == 0 {
		return err
	}
	_, err = e.tx.Bulk("item", strings.Split(fileColumns, ", "), db.Each(e.added, func(f *file) []any {
		return []any{f.id, f.in, f.name, f.size, f.adler, int64(f.state), f.sourceGroup, f.epoch, f.tries, f.pauses, f.due,
			f.source, string(f.mode), string(f.fault), f.reason, f.ended, f.moved, string(f.sourceFailures), f.again}
	}))
	return err
}

// A lease is an active attempt at a file.
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
	stop                string // the reason for which its file was cancelled; "": it was not
}

const leaseColumns = "item, epoch, dest, file, source, path, mode, size, began, heard, until, missing, stage, moved, stop"

func scanLease(rows *db.Rows) (*lease, error) {
	l := &lease{}
	return l, rows.Scan(&l.item, &l.epoch, &l.dest, &l.file, &l.source, &l.path, &l.mode, &l.size,
		db.When(&l.began), db.When(&l.heard), db.When(&l.until), &l.missing, &l.stage, &l.moved, &l.stop)
}

// leases reads the active leases of items.
func leases(tx *db.Tx, items []int64) (map[int64]*lease, error) {
	all, err := db.All(tx, scanLease, "SELECT "+leaseColumns+" FROM lease WHERE item {{in}}", items)
	m := map[int64]*lease{}
	for _, l := range all {
		m[l.item] = l
	}
	return m, err
}

// given returns the lease in the form in which its holder gets it.
func (l *lease) given(f *file, r *request) transfer.Lease {
	path := strings.TrimLeft(f.name, "/")
	return transfer.Lease{Item: f.id, Epoch: l.epoch, Request: f.request, Mode: l.mode, Until: l.until, Name: f.name, Size: f.size,
		Adler:  f.adler,
		Source: transfer.End{Site: l.source, Path: cmp.Or(l.path, path)}, Dest: transfer.End{Site: l.dest, Path: path}, Unchecked: r.Unchecked,
		Job: r.Job, Replace: r.replaces, Timeout: r.timeout, Streams: r.streams, Strict: r.Strict}
}

// saveLeases adds leases of the same edit, except leases of files that another request is bringing
// to the same destination.
func (e *edit) saveLeases(all []*lease) error {
	type common struct {
		dest, source, path string
		mode               transfer.Mode
	}
	alike := map[common][]int64{}
	for _, l := range all {
		c := common{l.dest, l.source, l.path, l.mode}
		alike[c] = append(alike[c], l.item)
	}
	order := slices.SortedFunc(maps.Keys(alike), func(a, b common) int {
		return cmp.Or(cmp.Compare(a.dest, b.dest), cmp.Compare(a.source, b.source), cmp.Compare(a.path, b.path), cmp.Compare(a.mode, b.mode))
	})
	_, err := e.tx.Many("INSERT INTO lease ("+leaseColumns+`) SELECT id, epoch + 1, CAST(? AS TEXT), file, CAST(? AS TEXT), CAST(? AS TEXT),
		CAST(? AS TEXT), size, CAST(? AS BIGINT), CAST(? AS BIGINT), CAST(? AS BIGINT), FALSE, '', 0, '' FROM item
		WHERE id {{in}} ORDER BY file ON CONFLICT DO NOTHING`, db.Each(order, func(c common) []any {
		return []any{c.dest, c.source, c.path, string(c.mode), e.now, e.now, e.now.Add(e.q.o.Lease), alike[c]}
	}))
	return err
}

const attemptColumns = "item, epoch, late, source, dest, mode, fault, reason, after, size, adler, verified, existed, moved, resumed, " +
	"began, ended, cpu"

func scanAttempt(rows *db.Rows) (transfer.Attempt, error) {
	var a transfer.Attempt
	var late int64
	err := rows.Scan(&a.Item, &a.Epoch, &late, &a.Source, &a.Dest, &a.Mode, &a.Fault, &a.Reason, &a.After, &a.Size, &a.Adler,
		&a.Verified, &a.Existed, &a.Moved, &a.Resumed, db.When(&a.Begin), db.When(&a.End), &a.CPU)
	a.Late = late > 0
	return a, err
}

func attemptsOf(tx *db.Tx, rest string, args ...any) ([]transfer.Attempt, error) {
	return db.All(tx, scanAttempt, "SELECT "+attemptColumns+" FROM attempt WHERE "+rest, args...)
}

// lateColumn returns the value of the column late for a.Late.
func lateColumn(a transfer.Attempt) int64 {
	if a.Late {
		return 1
	}
	return 0
}

// saveAttempts ends leases and adds attempts. Late attempts may have been added before.
func (e *edit) saveAttempts() error {
	if len(e.over) > 0 {
		if _, err := e.tx.Exec("DELETE FROM lease WHERE item {{in}}", e.over); err != nil {
			return err
		}
	}
	if len(e.attempts) == 0 {
		return nil
	}
	row := func(a transfer.Attempt) []any {
		return []any{a.Item, a.Epoch, lateColumn(a), a.Source, a.Dest, string(a.Mode), string(a.Fault), a.Reason, int64(a.After), a.Size, a.Adler,
			a.Verified, a.Existed, a.Moved, a.Resumed, db.Nanos(a.Begin), db.Nanos(a.End), a.CPU}
	}
	var late, current []transfer.Attempt
	for _, a := range e.attempts {
		if a.Late {
			late = append(late, a)
		} else {
			current = append(current, a)
		}
	}
	columns := strings.Split(attemptColumns, ", ")
	if _, err := e.tx.Bulk("attempt", columns, db.Each(current, row)); err != nil {
		return err
	}
	values := strings.Repeat(", ?", len(columns))[2:]
	_, err := e.tx.Many("INSERT INTO attempt ("+attemptColumns+") VALUES ("+values+") ON CONFLICT DO NOTHING", db.Each(late, row))
	return err
}

// saveEvents numbers events. The row of the last number is locked until the transaction commits, so
// numbers become visible in their order.
func (e *edit) saveEvents() error {
	n := int64(len(e.events))
	if n == 0 {
		return nil
	}
	var last int64
	if err := e.tx.Row("UPDATE event_last SET id = id + ? WHERE one = 1 RETURNING id", n).Scan(&last); err != nil {
		return err
	}
	last -= n
	_, err := e.tx.Many("INSERT INTO event (id, at, request, item, status, text) VALUES (?, ?, ?, ?, ?, ?)",
		db.Each(e.events, func(v transfer.Event) []any {
			last++
			if r := e.requests[v.Request]; r != nil {
				v.Status = r.Status
			}
			return []any{last, v.Time, v.Request, v.Item, string(v.Status), v.Text}
		}))
	return err
}

func number(n int64) string { return strconv.FormatInt(n, 10) }
