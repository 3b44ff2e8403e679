package queue

import (
	"cmp"
	"maps"
	"slices"
	"strings"

	"weir/internal/db"
	"weir/transfer"
)

// A change is what becomes of a file. Many files of an edit change alike, and one
// statement changes them all, at a third of the cost.
type change struct {
	state          state
	sourceGroup    int64
	more           int64 // epochs
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
	adler          string // "": as it was
}

func changeOf(was, f *file) change {
	c := change{state: f.state, sourceGroup: f.sourceGroup, more: f.epoch - was.epoch, tries: f.tries, pauses: f.pauses, due: db.Nanos(f.due), ended: db.Nanos(f.ended), source: f.source, mode: f.mode,
		fault: f.fault, reason: f.reason, whole: f.moved == f.size, moved: f.moved, sourceFailures: f.sourceFailures, again: f.again}
	if c.whole {
		c.moved = 0
	}
	if f.adler != was.adler {
		c.adler = f.adler
	}
	return c
}

// saveFiles also keeps the counters of requests and source groups.
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
	for _, f := range e.fresh {
		e.count(f, +1)
	}
	_, err := e.tx.Many(`UPDATE item SET state = ?, lane = ?, epoch = epoch + ?, tries = ?, pauses = ?, due = ?, ended = ?, source = ?, mode = ?, fault = ?, reason = ?,
		moved = CASE WHEN ? THEN size ELSE ? END, trail = ?, again = ?, adler = CASE WHEN ? THEN adler ELSE ? END WHERE id {{in}}`, func(yield func([]any) bool) {
		for _, c := range order {
			if !yield([]any{int64(c.state), c.sourceGroup, c.more, c.tries, c.pauses, c.due, c.ended, c.source, string(c.mode), string(c.fault), c.reason,
				c.whole, c.moved, string(c.sourceFailures), c.again, c.adler == "", c.adler, alike[c]}) {
				return
			}
		}
	})
	if err != nil || len(e.fresh) == 0 {
		return err
	}
	_, err = e.tx.Bulk("item", strings.Split(fileColumns, ", "), func(yield func([]any) bool) {
		for _, f := range e.fresh {
			if !yield([]any{f.id, f.in, f.name, f.size, f.adler, int64(f.state), f.sourceGroup, f.epoch, f.tries, f.pauses, f.due, f.source, string(f.mode), string(f.fault), f.reason,
				f.ended, f.moved, string(f.sourceFailures), f.again}) {
				return
			}
		}
	})
	return err
}

// A giving is what leases that are given at once have in common.
type giving struct {
	dest, source, path string
	mode               transfer.Mode
}

// saveGiven writes leases of the same edit down, but for those whose file
// somebody else brings to the same destination.
func (e *edit) saveGiven(all []*lease) error {
	alike := map[giving][]int64{}
	for _, l := range all {
		g := giving{l.dest, l.source, l.path, l.mode}
		alike[g] = append(alike[g], l.item)
	}
	order := slices.SortedFunc(maps.Keys(alike), func(a, b giving) int {
		return cmp.Or(cmp.Compare(a.dest, b.dest), cmp.Compare(a.source, b.source), cmp.Compare(a.path, b.path), cmp.Compare(a.mode, b.mode))
	})
	_, err := e.tx.Many("INSERT INTO lease ("+leaseColumns+`) SELECT id, epoch + 1, CAST(? AS TEXT), file, CAST(? AS TEXT), CAST(? AS TEXT), CAST(? AS TEXT), size,
		CAST(? AS BIGINT), CAST(? AS BIGINT), CAST(? AS BIGINT), FALSE, '', 0 FROM item WHERE id {{in}} ORDER BY file ON CONFLICT DO NOTHING`, func(yield func([]any) bool) {
		for _, g := range order {
			if !yield([]any{g.dest, g.source, g.path, string(g.mode), e.now, e.now, e.now.Add(e.o.Lease), alike[g]}) {
				return
			}
		}
	})
	return err
}
