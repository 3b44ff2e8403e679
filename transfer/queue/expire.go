package queue

import (
	"context"
	"slices"
	"strings"
	"time"

	"weir/internal/db"
	"weir/transfer"
	"weir/transfer/catalog"
)

// A Missing is a lease whose holder was not heard of in time. Its file may be at
// the destination all the same: whoever can asks there, and says with Report
// what he found: success, or LeaseLost. If nobody does, the file goes again
// after Options.Grace.
type Missing struct {
	transfer.Lease
	Heard time.Time // when its holder was last heard of
}

// batch is how many files the clock moves at a time.
const batch = 1000

// Expire does what the clock demands: leases run out, files that rested are
// ready, requests expire, files wait no longer for sites that do not come back.
// Call it every second or so. It returns all leases that are missing, and what
// changed by itself.
func (q *Queue) Expire(ctx context.Context) (missing []Missing, changes []Change, err error) {
	now := q.now()
	if err := q.giveUp(ctx, now, &changes); err != nil {
		return nil, changes, err
	}
	if missing, err = q.missing(ctx, now); err != nil {
		return nil, changes, err
	}
	if err := q.wake(ctx, now); err != nil {
		return missing, changes, err
	}
	if err := q.outdate(ctx, now); err != nil {
		return missing, changes, err
	}
	if err := q.unreachable(ctx, now); err != nil {
		return missing, changes, err
	}
	return missing, changes, q.prune(ctx)
}

// giveUp ends leases that were missing for too long, and those of stopped
// requests as soon as they ran out.
func (q *Queue) giveUp(ctx context.Context, now time.Time, changes *[]Change) error {
	var items []int64
	err := q.db.Read(ctx, func(tx *db.Tx) (err error) {
		items, err = db.Column[int64](tx, "SELECT item FROM lease WHERE until <= ? ORDER BY until LIMIT ?", now, batch)
		return err
	})
	if err != nil || len(items) == 0 {
		return err
	}
	return q.edit(ctx, func(e *edit) error {
		*changes = nil
		if err := e.lockOf(items); err != nil {
			return err
		}
		if _, err := e.loadItems(items); err != nil {
			return err
		}
		held, err := leases(e.tx, items)
		if err != nil {
			return err
		}
		var gone []transfer.Outcome
		for _, item := range items {
			l, r := held[item], e.requests[requestOf(item)]
			if l == nil || l.until.After(now) || r.stop == "" && l.until.Add(e.o.Grace).After(now) {
				continue
			}
			gone = append(gone, transfer.Outcome{Item: item, Epoch: l.epoch, Fault: transfer.LeaseLost, Moved: l.moved, Begin: l.began, End: now,
				Reason: "who moved it was not heard of since " + clock(l.heard)})
			*changes = append(*changes, Change{Item: item, Epoch: l.epoch, Request: r.ID})
		}
		if err := e.settle(gone, held); err != nil {
			return err
		}
		e.tell(*changes)
		return nil
	})
}

func clock(t time.Time) string { return t.UTC().Format("2006-01-02 15:04:05 UTC") }

// missing marks and returns leases that have run out.
func (q *Queue) missing(ctx context.Context, now time.Time) (all []Missing, err error) {
	var late []*lease
	err = q.db.Read(ctx, func(tx *db.Tx) error {
		late, err = db.All(tx, scanLease, "SELECT "+leaseColumns+" FROM lease WHERE until <= ? ORDER BY until LIMIT ?", now, batch)
		return err
	})
	if err != nil || len(late) == 0 {
		return nil, err
	}
	fresh := slices.ContainsFunc(late, func(l *lease) bool { return !l.missing })
	if fresh {
		err = q.db.Write(ctx, func(tx *db.Tx) error {
			_, err := tx.Exec("UPDATE lease SET missing = TRUE WHERE until <= ?", now)
			return err
		})
		if err != nil {
			return nil, err
		}
	}
	var items []int64
	heard := map[int64]time.Time{}
	for _, l := range late {
		items = append(items, l.item)
		heard[l.item] = l.heard
	}
	orders, err := q.orders(ctx, items)
	for _, o := range orders {
		all = append(all, Missing{Lease: o, Heard: heard[o.Item]})
	}
	return all, err
}

// orders are the leases of items as their holders got them.
func (q *Queue) orders(ctx context.Context, items []int64) (all []transfer.Lease, err error) {
	err = q.db.Read(ctx, func(tx *db.Tx) error {
		all = nil
		held, err := leases(tx, items)
		if err != nil {
			return err
		}
		files, err := db.All(tx, scanFile, "SELECT "+fileColumns+" FROM item WHERE id {{in}} ORDER BY id", items)
		if err != nil {
			return err
		}
		unchecked, err := db.Column[int64](tx, "SELECT DISTINCT r.id FROM request r WHERE r.unchecked AND r.ended = 0")
		if err != nil {
			return err
		}
		for _, f := range files {
			if l := held[f.id]; l != nil {
				r := &request{}
				r.Unchecked = slices.Contains(unchecked, f.request)
				r.To = l.dest
				all = append(all, order(f, r, l))
			}
		}
		return nil
	})
	return all, err
}

// Leases are all that are held, for a page, and for a coordinator that starts
// again.
func (q *Queue) Leases(ctx context.Context) ([]transfer.Lease, error) {
	var items []int64
	err := q.db.Read(ctx, func(tx *db.Tx) (err error) {
		items, err = db.Column[int64](tx, "SELECT item FROM lease")
		return err
	})
	if err != nil || len(items) == 0 {
		return nil, err
	}
	return q.orders(ctx, items)
}

// wake makes files ready whose time has come, a bounded number at a time.
func (q *Queue) wake(ctx context.Context, now time.Time) error {
	for range 10 {
		var items []int64
		err := q.db.Read(ctx, func(tx *db.Tx) (err error) {
			items, err = db.Column[int64](tx, "SELECT id FROM item WHERE state = 2 AND due <= ? ORDER BY due LIMIT ?", now, batch)
			return err
		})
		if err != nil || len(items) == 0 {
			return err
		}
		err = q.edit(ctx, func(e *edit) error {
			if err := e.lockOf(items); err != nil {
				return err
			}
			files, err := e.loadItems(items)
			if err != nil {
				return err
			}
			files = slices.DeleteFunc(files, func(f *file) bool {
				return f.state != resting || f.due.After(now) || !e.requests[f.request].open()
			})
			return e.route(files) // what it rested for is kept: it may be the last that is known of it
		})
		if err != nil || len(items) < batch {
			return err
		}
	}
	return nil
}

// outdate stops requests whose time has run out.
func (q *Queue) outdate(ctx context.Context, now time.Time) error {
	var ids []int64
	err := q.db.Read(ctx, func(tx *db.Tx) (err error) {
		ids, err = db.Column[int64](tx, "SELECT id FROM request WHERE ended = 0 AND stop = '' AND expires > 0 AND expires <= ? ORDER BY id LIMIT ?", now, batch)
		return err
	})
	if err != nil || len(ids) == 0 {
		return err
	}
	return q.edit(ctx, func(e *edit) error {
		if err := e.lock(ids...); err != nil {
			return err
		}
		for _, r := range e.requests {
			if r.Status.Ended() || r.stop != "" || r.Expires.IsZero() || r.Expires.After(now) {
				continue
			}
			r.Reason = "its time ran out at " + clock(r.Expires)
			if err := e.stop(r, transfer.Expired); err != nil {
				return err
			}
		}
		return nil
	})
}

// unreachable looks after source groups none of whose sites is up: their files may have got
// other sources meanwhile, and do not wait for ever. It looks at a batch of one
// source group at a time.
func (q *Queue) unreachable(ctx context.Context, now time.Time) error {
	var lost *sourceGroup
	var moved, stay []put
	reason := ""
	err := q.db.Read(ctx, func(tx *db.Tx) error {
		sites, err := readSites(tx)
		if err != nil {
			return err
		}
		sourceGroups, err := db.All(tx, scanSourceGroup, `SELECT l.id, l.request, l.sites, l.ready FROM lane l JOIN request r ON r.id = l.request
			WHERE r.ended = 0 AND r.stop = '' AND l.ready > 0 ORDER BY l.id`)
		if err != nil {
			return err
		}
		sourceGroups = slices.DeleteFunc(sourceGroups, func(l *sourceGroup) bool {
			return slices.ContainsFunc(l.list(), func(s string) bool { return sites[s].Up })
		})
		if len(sourceGroups) == 0 {
			return nil
		}
		lost = q.following(sourceGroups)
		moved, stay, reason, err = q.waiters(tx, lost, sites, now)
		return err
	})
	if err != nil || lost == nil {
		return err
	}
	if len(moved) > 0 {
		err = q.setAside(ctx, moved)
	}
	if err != nil || reason == "" {
		return err
	}
	return q.abandon(ctx, stay, reason)
}

// following is the source group after the one that was looked at before.
func (q *Queue) following(sourceGroups []*sourceGroup) *sourceGroup {
	q.mu.Lock()
	defer q.mu.Unlock()
	for _, l := range sourceGroups {
		if l.id > q.sourceGroup {
			q.sourceGroup = l.id
			return l
		}
	}
	q.sourceGroup = sourceGroups[0].id
	return sourceGroups[0]
}

// waiters are the next files of a unreachable source group: those that have got other
// sources, those that have not, and why these shall wait no longer, if so.
func (q *Queue) waiters(tx *db.Tx, l *sourceGroup, sites map[string]catalog.Site, now time.Time) (moved, stay []put, reason string, err error) {
	files, err := db.All(tx, scanFile, "SELECT "+fileColumns+" FROM item WHERE lane = ? AND state = 1 AND id > ? ORDER BY id LIMIT ?", l.id, q.place(l.id, -1), batch)
	if err != nil {
		return nil, nil, "", err
	}
	to := int64(0)
	if len(files) == batch {
		to = files[len(files)-1].id
	}
	q.place(l.id, to)
	r, err := requestRow(tx, l.request)
	if err != nil {
		return nil, nil, "", err
	}
	replicas, err := readReplicas(tx, files)
	if err != nil {
		return nil, nil, "", err
	}
	for _, f := range files {
		if strings.Join(r.sources(f, replicas[f.in]), ",") == l.sites {
			stay = append(stay, put{item: f.id})
		} else {
			moved = append(moved, put{item: f.id})
		}
	}
	return moved, stay, r.patience(l, sites, now, q.o.Patience), nil
}

// place is how far a unreachable source group was looked at; to is kept if it is not
// negative, 0 is the beginning.
func (q *Queue) place(sourceGroup, to int64) int64 {
	q.mu.Lock()
	defer q.mu.Unlock()
	from := q.places[sourceGroup]
	switch {
	case to > 0:
		q.places[sourceGroup] = to
	case to == 0:
		delete(q.places, sourceGroup)
	}
	return from
}

// patience tells why files wait for the sites of a source group no longer; it is "" as
// long as they do.
func (r *request) patience(l *sourceGroup, sites map[string]catalog.Site, now time.Time, patience time.Duration) string {
	since := r.Began
	for _, s := range l.list() {
		if seen := sites[s].Seen; seen.After(since) {
			since = seen
		}
	}
	if now.Sub(since) < patience {
		return ""
	}
	return away(l.list(), sites)
}

// away says of sites that they are not up.
func away(names []string, sites map[string]catalog.Site) string {
	var parts []string
	for _, s := range names {
		site, known := sites[s]
		part := s + " cannot be reached"
		switch {
		case !known:
			part = s + " is not a site any more"
		case site.Seen.IsZero():
			part += ", and never was"
		default:
			part += " since " + clock(site.Seen)
		}
		if site.Problem != "" {
			part += " (" + site.Problem + ")"
		}
		parts = append(parts, part)
	}
	return strings.Join(parts, "; ")
}

// abandon fails files that have waited long enough.
func (q *Queue) abandon(ctx context.Context, aside []put, reason string) error {
	var items []int64
	for _, p := range aside {
		items = append(items, p.item)
	}
	if len(items) == 0 {
		return nil
	}
	return q.edit(ctx, func(e *edit) error {
		if err := e.lockOf(items); err != nil {
			return err
		}
		files, err := e.loadItems(items)
		if err != nil {
			return err
		}
		for _, f := range files {
			if f.state != ready {
				continue
			}
			why := reason
			if f.fault != "" {
				why = f.reason + "; " + reason
			}
			f.lose(failed, transfer.Transient, why, e.now)
			e.event(e.requests[f.request], f.id, f.name+" failed: "+f.reason)
		}
		return nil
	})
}

// keptEvents is how many events are kept.
const keptEvents = 20_000

func (q *Queue) prune(ctx context.Context) error {
	var first, last int64
	err := q.db.Read(ctx, func(tx *db.Tx) error {
		return tx.Row("SELECT COALESCE(MIN(id), 0), COALESCE(MAX(id), 0) FROM event").Scan(&first, &last)
	})
	if err != nil || last-first < 2*keptEvents {
		return err
	}
	return q.db.Write(ctx, func(tx *db.Tx) error {
		_, err := tx.Exec("DELETE FROM event WHERE id <= ?", last-keptEvents)
		return err
	})
}

// keptParts is how long what a failed file has left is kept for a Retry.
const keptParts = 24 * time.Hour

// Over returns those temporaries with which nobody will go on: their files are at
// the destination, were cancelled, or failed a day ago. Of files that the queue
// does not know it says nothing.
func (q *Queue) Over(ctx context.Context, parts []transfer.LeaseID) (over []transfer.LeaseID, err error) {
	if len(parts) == 0 {
		return nil, nil
	}
	var items []int64
	for _, p := range parts {
		items = append(items, p.Item)
	}
	var all []*file
	err = q.db.Read(ctx, func(tx *db.Tx) (err error) {
		all, err = db.All(tx, scanFile, "SELECT "+fileColumns+" FROM item WHERE id {{in}}", items)
		return err
	})
	if err != nil {
		return nil, err
	}
	gone := map[int64]bool{}
	for _, f := range all {
		gone[f.id] = f.state == done || f.state == skipped || f.state == dropped || f.state == failed && q.now().Sub(f.ended) > keptParts
	}
	for _, p := range parts {
		if gone[p.Item] {
			over = append(over, p)
		}
	}
	return over, nil
}
