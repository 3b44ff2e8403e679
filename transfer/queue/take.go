package queue

import (
	"cmp"
	"context"
	"math"
	"slices"
	"strings"
	"time"

	"weir/internal/db"
	"weir/transfer"
)

// A Choice is who brings a file.
type Choice struct {
	Item   int64
	Source string
	Mode   transfer.Mode
}

// Take makes leases of choices. A choice whose file cannot be had (any more) is
// left out: another has it, it was cancelled, its source is not one any more,
// another request brings the same file, or the destination has no space for it.
// URL, Token and Pin of the ends are the caller's to fill in.
func (q *Queue) Take(ctx context.Context, choices []Choice) (given []transfer.Lease, err error) {
	if len(choices) == 0 {
		return nil, nil
	}
	err = q.edit(ctx, func(e *edit) error {
		given, err = e.take(choices)
		return err
	})
	return given, err
}

func (e *edit) take(choices []Choice) ([]transfer.Lease, error) {
	chosen := map[int64]Choice{}
	var items []int64
	for _, c := range choices {
		chosen[c.Item] = c
		items = append(items, c.Item)
	}
	if err := e.lockOf(items); err != nil {
		return nil, err
	}
	files, err := e.loadItems(items)
	if err != nil {
		return nil, err
	}
	files = slices.DeleteFunc(files, func(f *file) bool { return f.state != ready || !e.requests[f.request].open() })
	replicas, err := e.replicas(files)
	if err == nil {
		err = e.informed(files)
	}
	if err != nil {
		return nil, err
	}
	wanted, err := e.fitting(e.wanted(files, chosen, replicas))
	if err != nil {
		return nil, err
	}
	return e.give(wanted)
}

// wanted are the leases that choices ask for, of sources that are some.
func (e *edit) wanted(files []*file, chosen map[int64]Choice, replicas map[int64][]replica) []*lease {
	var all []*lease
	for _, f := range files {
		r, c := e.requests[f.request], chosen[f.id]
		if !slices.Contains(r.sources(f, replicas[f.in]), c.Source) || (c.Mode == transfer.Check) != (c.Source == r.To) {
			continue
		}
		i := slices.IndexFunc(replicas[f.in], func(one replica) bool { return one.site == c.Source })
		all = append(all, &lease{item: f.id, epoch: f.epoch + 1, dest: r.To, file: f.in, source: c.Source, path: replicas[f.in][i].path, mode: c.Mode, size: f.size,
			moved: movedBy(c.Mode, f.size), began: e.now, heard: e.now, until: e.now.Add(e.o.Lease)})
	}
	return all
}

// movedBy is what a lease has moved when it begins: a check needs no space.
func movedBy(m transfer.Mode, size int64) int64 {
	if m == transfer.Check {
		return size
	}
	return 0
}

// fitting leaves out leases for which their destination has no space.
func (e *edit) fitting(all []*lease) ([]*lease, error) {
	sites, err := readSites(e.tx)
	if err != nil {
		return nil, err
	}
	room, enough := map[string]int64{}, map[string]bool{}
	for _, l := range all {
		if _, known := room[l.dest]; known || enough[l.dest] || sites[l.dest].Free < 0 {
			continue
		}
		d, err := demandOf(e.tx, l.dest)
		if err != nil {
			return nil, err
		}
		if enough[l.dest] = d.bytes <= sites[l.dest].Free; enough[l.dest] {
			continue
		}
		promised, err := promised(e.tx, l.dest)
		if err != nil {
			return nil, err
		}
		room[l.dest] = sites[l.dest].Free - promised
	}
	return slices.DeleteFunc(all, func(l *lease) bool {
		left, known := room[l.dest]
		need := l.size - l.moved
		if known && left < need {
			return true
		}
		if known {
			room[l.dest] = left - need
		}
		return false
	}), nil
}

// A demand is what is asked for at a site, and not there yet. What is on its way
// there is a part of it: where there is room for all, nobody need add up that.
type demand struct {
	requests, bytes int64
}

func demandOf(tx *db.Tx, dest string) (d demand, err error) {
	var bytes float64 // of which there can be more than an integer holds
	err = tx.Row("SELECT COUNT(*), CAST(COALESCE(SUM(CAST(bytes_n - there_bytes AS DOUBLE PRECISION)), 0) AS DOUBLE PRECISION) FROM request WHERE ended = 0 AND dest = ?", dest).Scan(&d.requests, &bytes)
	d.bytes = whole(bytes)
	return d, err
}

// promised are the bytes on their way to a site that are not there yet.
func promised(tx *db.Tx, dest string) (n int64, err error) {
	var bytes float64
	err = tx.Row("SELECT CAST(COALESCE(SUM(CAST(CASE WHEN size > moved THEN size - moved ELSE 0 END AS DOUBLE PRECISION)), 0) AS DOUBLE PRECISION) FROM lease WHERE dest = ?", dest).Scan(&bytes)
	return whole(bytes), err
}

// whole is the nearest number of bytes.
func whole(bytes float64) int64 {
	if bytes >= math.MaxInt64 {
		return math.MaxInt64
	}
	return int64(bytes)
}

// give writes leases down, those that nobody else has, and makes their files
// leased.
func (e *edit) give(all []*lease) ([]transfer.Lease, error) {
	if err := e.saveGiven(all); err != nil {
		return nil, err
	}
	var items []int64
	for _, l := range all {
		items = append(items, l.item)
	}
	var mine []int64
	if len(items) > 0 {
		var err error
		if mine, err = db.Column[int64](e.tx, "SELECT item FROM lease WHERE item {{in}} ORDER BY item", items); err != nil {
			return nil, err
		}
	}
	var given []transfer.Lease
	for _, l := range all {
		if _, there := slices.BinarySearch(mine, l.item); !there {
			continue // another request brings the same file
		}
		f := e.files[l.item]
		r := e.requests[f.request]
		f.state, f.epoch, f.source, f.mode, f.moved, f.fault, f.reason = leased, l.epoch, l.source, l.mode, 0, "", ""
		given = append(given, order(f, r, l))
		e.after = append(e.after, func() { e.pay(r.To, r.Share, r.ID, f.size) })
	}
	slices.SortFunc(given, func(a, b transfer.Lease) int { return cmp.Compare(a.Item, b.Item) })
	return given, nil
}

// order is a lease as its holder gets it.
func order(f *file, r *request, l *lease) transfer.Lease {
	path := strings.TrimLeft(f.name, "/")
	from := l.path
	if from == "" {
		from = path
	}
	return transfer.Lease{Item: f.id, Epoch: l.epoch, Request: f.request, Mode: l.mode, Until: l.until, Name: f.name, Size: f.size, Adler: f.adler,
		Source: transfer.End{Site: l.source, Path: from}, Dest: transfer.End{Site: l.dest, Path: path}, Unchecked: r.Unchecked}
}

// Renew writes down how far movers are and extends their leases until then. gone
// are attempts that their holders shall let go: cancelled, leased anew, or ended.
func (q *Queue) Renew(ctx context.Context, progress []transfer.Progress) (until time.Time, gone []transfer.LeaseID, err error) {
	now := q.now()
	until = now.Add(q.o.Lease)
	if len(progress) == 0 {
		return until, nil, nil
	}
	var items, requests []int64
	for _, p := range progress {
		items = append(items, p.Item)
		requests = append(requests, requestOf(p.Item))
	}
	var moved map[int64]int64
	err = q.db.Write(ctx, func(tx *db.Tx) error {
		gone, moved = nil, map[int64]int64{}
		held, err := leases(tx, items)
		if err != nil {
			return err
		}
		slices.Sort(requests)
		stopped, err := db.Column[int64](tx, "SELECT id FROM request WHERE id {{in}} AND stop <> ''", slices.Compact(requests))
		if err != nil {
			return err
		}
		var alive []transfer.Progress
		for _, p := range progress {
			l := held[p.Item]
			if l == nil || l.epoch != p.Epoch || slices.Contains(stopped, requestOf(p.Item)) {
				gone = append(gone, transfer.LeaseID{Item: p.Item, Epoch: p.Epoch})
				continue
			}
			p.Moved, p.Stage = min(max(p.Moved, 0), l.size), transfer.Stage(text(string(p.Stage), 100))
			moved[requestOf(p.Item)] += max(p.Moved-l.moved, 0)
			alive = append(alive, p)
		}
		slices.SortFunc(alive, func(a, b transfer.Progress) int { return cmp.Compare(a.Item, b.Item) })
		_, err = tx.Many("UPDATE lease SET heard = ?, until = ?, missing = FALSE, stage = ?, moved = ? WHERE item = ? AND epoch = ?", func(yield func([]any) bool) {
			for _, p := range alive {
				if !yield([]any{now, until, string(p.Stage), p.Moved, p.Item, p.Epoch}) {
					return
				}
			}
		})
		return err
	})
	for request, n := range moved {
		q.paces.add(request, n, now)
	}
	return until, gone, err
}
