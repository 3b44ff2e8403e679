package queue

import (
	"cmp"
	"context"
	"math"
	"slices"
	"time"

	"weir/internal/db"
	"weir/transfer"
)

// A Choice assigns a source and a mode to a file.
type Choice struct {
	Item   int64
	Source string
	Mode   transfer.Mode
}

// Take makes leases of choices. It leaves out a choice whose file is not available any more: it is
// leased, it was cancelled, the source no longer has a replica, another request brings the same
// file, or the destination has no space for it. The caller fills in URL, Token and Pin of the ends.
func (q *Queue) Take(ctx context.Context, choices []Choice) (given []transfer.Lease, err error) {
	if len(choices) == 0 {
		return nil, nil
	}
	chosen := map[int64]Choice{}
	for _, c := range choices {
		chosen[c.Item] = c
	}
	err = q.editFiles(ctx, idsOf(choices, func(c Choice) int64 { return c.Item }), func(e *edit, files []*file) error {
		files = slices.DeleteFunc(files, func(f *file) bool { return f.state != ready || !e.requests[f.request].open() })
		replicas, err := readReplicas(e.tx, files)
		if err == nil {
			err = e.fillChecksums(files)
		}
		if err != nil {
			return err
		}
		wanted, err := e.fitting(e.wanted(files, chosen, replicas))
		if err == nil {
			given, err = e.give(wanted)
		}
		return err
	})
	return given, err
}

// wanted returns the leases for choices, if their sources are sources of the files.
func (e *edit) wanted(files []*file, chosen map[int64]Choice, replicas map[int64][]replica) []*lease {
	var all []*lease
	for _, f := range files {
		r, c := e.requests[f.request], chosen[f.id]
		if !slices.Contains(r.sources(f, replicas[f.replicaKey()]), c.Source) || (c.Mode == transfer.Check) != r.checks(c.Source) ||
			(c.Mode == transfer.Delete) != r.Delete {
			continue
		}
		moved := int64(0)
		if c.Mode == transfer.Check { // it needs no space
			moved = f.size
		}
		i := slices.IndexFunc(replicas[f.replicaKey()], func(one replica) bool { return one.site == c.Source })
		all = append(all, &lease{item: f.id, epoch: f.epoch + 1, dest: r.To, file: f.in, source: c.Source, path: replicas[f.replicaKey()][i].path,
			mode: c.Mode, size: f.size, moved: moved, began: e.now, heard: e.now, until: e.now.Add(e.q.o.Lease)})
	}
	return all
}

// fitting leaves out leases for which their destination has no space.
func (e *edit) fitting(all []*lease) ([]*lease, error) {
	sites, err := readSites(e.tx)
	if err != nil {
		return nil, err
	}
	free := map[string]int64{} // of destinations; below 0: enough for all requests, or unknown
	for _, l := range all {
		if _, known := free[l.dest]; known {
			continue
		}
		if free[l.dest] = sites[l.dest].Free; free[l.dest] < 0 {
			continue
		}
		d, err := demandOf(e.tx, l.dest)
		if err != nil {
			return nil, err
		}
		if d.bytes <= free[l.dest] {
			free[l.dest] = -1
			continue
		}
		promised, err := promised(e.tx, l.dest)
		if err != nil {
			return nil, err
		}
		free[l.dest] = max(0, free[l.dest]-promised)
	}
	return slices.DeleteFunc(all, func(l *lease) bool {
		need := max(l.size-l.moved, 0)
		if free[l.dest] < 0 {
			return false
		}
		if free[l.dest] < need {
			return true
		}
		free[l.dest] -= need
		return false
	}), nil
}

// A demand is the number of requests of a destination, and of their bytes that have not arrived,
// including the bytes on their way.
type demand struct {
	requests, bytes int64
}

func demandOf(tx *db.Tx, dest string) (d demand, err error) {
	var bytes float64 // may be more than an integer holds
	err = tx.Row(`SELECT COUNT(*), CAST(COALESCE(SUM(CAST(bytes_n - there_bytes AS DOUBLE PRECISION)), 0) AS DOUBLE PRECISION)
		FROM request WHERE ended = 0 AND dest = ?`, dest).Scan(&d.requests, &bytes)
	d.bytes = whole(bytes)
	return d, err
}

// promised returns the number of bytes on their way to a site that have not arrived yet.
func promised(tx *db.Tx, dest string) (n int64, err error) {
	var bytes float64
	err = tx.Row(`SELECT CAST(COALESCE(SUM(CAST(CASE WHEN size > moved THEN size - moved ELSE 0 END AS DOUBLE PRECISION)), 0)
		AS DOUBLE PRECISION) FROM lease WHERE dest = ?`, dest).Scan(&bytes)
	return whole(bytes), err
}

// whole converts a number of bytes, bounded by the largest integer.
func whole(bytes float64) int64 {
	if bytes >= math.MaxInt64 {
		return math.MaxInt64
	}
	return int64(bytes)
}

// give makes leases, unless their files are leased to another request.
func (e *edit) give(all []*lease) (given []transfer.Lease, err error) {
	if len(all) == 0 {
		return nil, nil
	}
	if err := e.saveLeases(all); err != nil {
		return nil, err
	}
	items := idsOf(all, func(l *lease) int64 { return l.item })
	mine, err := db.Column[int64](e.tx, "SELECT item FROM lease WHERE item {{in}} ORDER BY item", items)
	if err != nil {
		return nil, err
	}
	for _, l := range all {
		if _, there := slices.BinarySearch(mine, l.item); !there {
			continue // another request brings the same file
		}
		f := e.files[l.item]
		r := e.requests[f.request]
		f.state, f.epoch, f.source, f.mode, f.moved, f.fault, f.reason = leased, l.epoch, l.source, l.mode, 0, "", ""
		given = append(given, l.given(f, r))
		e.after = append(e.after, func() { e.q.pay(r.To, r.Share, r.ID, max(f.size, 0)) })
	}
	slices.SortFunc(given, func(a, b transfer.Lease) int { return cmp.Compare(a.Item, b.Item) })
	return given, nil
}

// Renew stores the progress of movers and renews their leases until then. lost are the attempts
// that their holders must abort: cancelled, leased again, or ended.
func (q *Queue) Renew(ctx context.Context, progress []transfer.Progress) (until time.Time, lost []transfer.LeaseID, err error) {
	now := q.now()
	until = now.Add(q.o.Lease)
	if len(progress) == 0 {
		return until, nil, nil
	}
	items := idsOf(progress, func(p transfer.Progress) int64 { return p.Item })
	var moved map[int64]int64
	err = q.db.Write(ctx, func(tx *db.Tx) error {
		lost, moved = nil, map[int64]int64{}
		active, err := leases(tx, items)
		if err != nil {
			return err
		}
		requests := slices.Compact(slices.Sorted(slices.Values(idsOf(items, requestOf))))
		stopped, err := db.Column[int64](tx, "SELECT id FROM request WHERE id {{in}} AND stop <> ''", requests)
		if err != nil {
			return err
		}
		var alive []transfer.Progress
		for _, p := range progress {
			l, request := active[p.Item], requestOf(p.Item)
			if l == nil || l.epoch != p.Epoch || l.stop != "" || slices.Contains(stopped, request) {
				lost = append(lost, transfer.LeaseID{Item: p.Item, Epoch: p.Epoch})
				continue
			}
			p.Moved, p.Stage = l.within(p.Moved), transfer.Stage(text(string(p.Stage), 100))
			moved[request] += max(p.Moved-l.moved, 0)
			alive = append(alive, p)
		}
		slices.SortFunc(alive, func(a, b transfer.Progress) int { return cmp.Compare(a.Item, b.Item) })
		_, err = tx.Many("UPDATE lease SET heard = ?, until = ?, missing = FALSE, stage = ?, moved = ? WHERE item = ? AND epoch = ?",
			db.Each(alive, func(p transfer.Progress) []any { return []any{now, until, string(p.Stage), p.Moved, p.Item, p.Epoch} }))
		return err
	})
	for request, n := range moved {
		q.rates.add(request, n, now)
	}
	return until, lost, err
}
