package queue

import (
	"cmp"
	"context"
	"maps"
	"slices"
	"strings"
	"time"

	"weir/internal/db"
	"weir/transfer"
	"weir/transfer/catalog"
)

// An ExpiredLease is a lease whose holder has not reported in time. Its file may have arrived: the
// caller checks the destination and reports the result with Report, success or LeaseLost. Without a
// report the file is tried again after Options.Grace.
type ExpiredLease struct {
	transfer.Lease
	Heard time.Time // the last report of its holder
}

// batch is the number of files changed in one transaction.
const batch = 1000

// Expire applies the clock: leases expire, files whose pause is over become ready, requests expire,
// files stop waiting for sites that do not come back. It should be called about every second. It
// returns all expired leases, and the changes.
func (q *Queue) Expire(ctx context.Context) (expired []ExpiredLease, changes []Change, err error) {
	now := q.now()
	if err := q.endLeases(ctx, now, &changes); err != nil {
		return nil, changes, err
	}
	if expired, err = q.expired(ctx, now); err != nil {
		return nil, changes, err
	}
	for _, step := range []func(context.Context, time.Time) error{q.wake, q.nextHops, q.expireRequests, q.unreachable, q.prune} {
		if err := step(ctx, now); err != nil {
			return expired, changes, err
		}
	}
	return expired, changes, nil
}

// endLeases ends leases whose grace is over, and leases of stopped requests as soon as they have
// expired.
func (q *Queue) endLeases(ctx context.Context, now time.Time, changes *[]Change) error {
	items, err := db.Get(ctx, q.db, func(tx *db.Tx) ([]int64, error) {
		return db.Column[int64](tx, "SELECT item FROM lease WHERE until <= ? ORDER BY until LIMIT ?", now, batch)
	})
	if err != nil || len(items) == 0 {
		return err
	}
	return q.editFiles(ctx, items, func(e *edit, _ []*file) error {
		*changes = nil
		active, err := leases(e.tx, items)
		if err != nil {
			return err
		}
		var over []transfer.Outcome
		for _, item := range items {
			l, r := active[item], e.requests[requestOf(item)]
			if l == nil || l.until.After(now) || r.stop == "" && l.stop == "" && l.until.Add(e.q.o.Grace).After(now) {
				continue
			}
			over = append(over, transfer.Outcome{Item: item, Epoch: l.epoch, Fault: transfer.LeaseLost, Moved: l.moved, Begin: l.began, End: now,
				Reason: "no report of its mover since " + clock(l.heard)})
			*changes = append(*changes, Change{Item: item, Epoch: l.epoch, Request: r.ID})
		}
		if err := e.applyOutcomes(over, active); err != nil {
			return err
		}
		e.complete(*changes)
		return nil
	})
}

func clock(t time.Time) string { return t.UTC().Format("2006-01-02 15:04:05 UTC") }

// expired marks and returns leases that have expired.
func (q *Queue) expired(ctx context.Context, now time.Time) (all []ExpiredLease, err error) {
	late, err := db.Get(ctx, q.db, func(tx *db.Tx) ([]*lease, error) {
		return db.All(tx, scanLease, "SELECT "+leaseColumns+" FROM lease WHERE until <= ? ORDER BY until LIMIT ?", now, batch)
	})
	if err != nil || len(late) == 0 {
		return nil, err
	}
	if slices.ContainsFunc(late, func(l *lease) bool { return !l.missing }) {
		err = q.db.Write(ctx, func(tx *db.Tx) error {
			_, err := tx.Exec("UPDATE lease SET missing = TRUE WHERE until <= ?", now)
			return err
		})
		if err != nil {
			return nil, err
		}
	}
	heard := map[int64]time.Time{}
	for _, l := range late {
		heard[l.item] = l.heard
	}
	given, err := q.given(ctx, slices.Sorted(maps.Keys(heard)))
	for _, l := range given {
		all = append(all, ExpiredLease{Lease: l, Heard: heard[l.Item]})
	}
	return all, err
}

// given returns the leases of items in the form in which their holders got them.
func (q *Queue) given(ctx context.Context, items []int64) ([]transfer.Lease, error) {
	return db.Get(ctx, q.db, func(tx *db.Tx) (all []transfer.Lease, err error) {
		active, err := leases(tx, items)
		if err != nil {
			return nil, err
		}
		files, err := filesOf(tx, "id {{in}} ORDER BY id", items)
		if err != nil {
			return nil, err
		}
		of, err := copyTermsOf(tx, files)
		for _, f := range files {
			if l := active[f.id]; l != nil {
				all = append(all, l.given(f, of[f.request]))
			}
		}
		return all, err
	})
}

// Leases returns all active leases.
func (q *Queue) Leases(ctx context.Context) ([]transfer.Lease, error) {
	items, err := db.Get(ctx, q.db, func(tx *db.Tx) ([]int64, error) { return db.Column[int64](tx, "SELECT item FROM lease") })
	if err != nil || len(items) == 0 {
		return nil, err
	}
	return q.given(ctx, items)
}

// wake makes files ready whose pause is over, a bounded number at a time.
func (q *Queue) wake(ctx context.Context, now time.Time) error {
	for range 10 {
		items, err := db.Get(ctx, q.db, func(tx *db.Tx) ([]int64, error) {
			return db.Column[int64](tx, "SELECT id FROM item WHERE state = 2 AND due <= ? ORDER BY due LIMIT ?", now, batch)
		})
		if err != nil || len(items) == 0 {
			return err
		}
		err = q.editFiles(ctx, items, func(e *edit, files []*file) error {
			files = slices.DeleteFunc(files, func(f *file) bool {
				return f.state != resting || f.due.After(now) || !e.requests[f.request].open()
			})
			return e.route(files) // the reason of the pause is kept: it may be the last known reason
		})
		if err != nil || len(items) < batch {
			return err
		}
	}
	return nil
}

// expireRequests stops requests that have expired.
func (q *Queue) expireRequests(ctx context.Context, now time.Time) error {
	ids, err := db.Get(ctx, q.db, func(tx *db.Tx) ([]int64, error) {
		return db.Column[int64](tx, "SELECT id FROM request WHERE ended = 0 AND stop = '' AND expires > 0 AND expires <= ? "+
			"ORDER BY expires LIMIT ?", now, batch)
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

// unreachable handles source groups without a site that is up: their files may have other sources
// by now, and do not wait forever. Each call handles a batch of one group.
func (q *Queue) unreachable(ctx context.Context, now time.Time) error {
	var group *sourceGroup
	var moved []deferral
	var stay []int64
	reason := ""
	err := q.db.Read(ctx, func(tx *db.Tx) error {
		sites, err := readSites(tx)
		if err != nil {
			return err
		}
		// Not ordered by l.id: SQLite would read the source groups of all requests that have ended.
		groups, err := db.All(tx, scanSourceGroup, `SELECT l.id, l.request, l.sites, l.ready FROM request r CROSS JOIN lane l
			WHERE l.request = r.id AND r.ended = 0 AND r.stop = '' AND r.ready_n > 0 AND l.ready > 0`)
		slices.SortFunc(groups, func(a, b *sourceGroup) int { return cmp.Compare(a.id, b.id) })
		groups = slices.DeleteFunc(groups, func(g *sourceGroup) bool { return g.up(sites) })
		if err != nil || len(groups) == 0 {
			return err
		}
		group = q.following(groups)
		moved, stay, reason, err = q.waiters(tx, group, sites, now)
		return err
	})
	if err == nil && len(moved) > 0 {
		err = q.deferAll(ctx, moved)
	}
	if err != nil || group == nil || reason == "" || len(stay) == 0 {
		return err
	}
	return q.abandon(ctx, stay, reason)
}

// following returns the source group after the group that was handled last.
func (q *Queue) following(groups []*sourceGroup) *sourceGroup {
	q.mu.Lock()
	defer q.mu.Unlock()
	maps.DeleteFunc(q.places, func(id, _ int64) bool { // its request has ended, or a site is up
		return !slices.ContainsFunc(groups, func(g *sourceGroup) bool { return g.id == id })
	})
	i := max(0, slices.IndexFunc(groups, func(g *sourceGroup) bool { return g.id > q.sourceGroup }))
	q.sourceGroup = groups[i].id
	return groups[i]
}

// waiters returns the next files of an unreachable source group: the files that have other sources
// now, the files that have not, and the reason why the latter stop waiting, if they do.
func (q *Queue) waiters(tx *db.Tx, g *sourceGroup, sites map[string]catalog.Site, now time.Time) (moved []deferral, stay []int64,
	reason string, err error) {
	q.mu.Lock()
	after := q.places[g.id]
	q.mu.Unlock()
	files, err := filesOf(tx, "lane = ? AND state = 1 AND id > ? ORDER BY id LIMIT ?", g.id, after, batch)
	if err != nil {
		return nil, nil, "", err
	}
	q.mu.Lock()
	if delete(q.places, g.id); len(files) == batch {
		q.places[g.id] = files[len(files)-1].id
	}
	q.mu.Unlock()
	r, err := requestRow(tx, g.request)
	if err != nil {
		return nil, nil, "", err
	}
	replicas, err := readReplicas(tx, files)
	for _, f := range files {
		if strings.Join(r.sources(f, replicas[f.replicaKey()]), ",") == g.sites {
			stay = append(stay, f.id)
		} else {
			moved = append(moved, deferral{item: f.id})
		}
	}
	since := r.Began
	for _, s := range g.list() {
		if seen := sites[s].Seen; seen.After(since) {
			since = seen
		}
	}
	if now.Sub(since) >= q.o.Patience {
		reason = away(g.list(), sites)
	}
	return moved, stay, reason, err
}

// away describes since when sites are down.
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
func (q *Queue) abandon(ctx context.Context, items []int64, reason string) error {
	return q.editFiles(ctx, items, func(e *edit, files []*file) error {
		for _, f := range files {
			if f.state != ready {
				continue
			}
			why := reason
			if f.fault != "" {
				why = f.reason + "; " + reason
			}
			f.fail(failed, transfer.Transient, why, e.now)
			e.event(e.requests[f.request], f.id, f.name+" failed: "+f.reason)
		}
		return nil
	})
}

// keptEvents is the number of events that are kept.
const keptEvents = 20_000

func (q *Queue) prune(ctx context.Context, now time.Time) error {
	q.rates.prune(now)
	var first, last int64
	err := q.db.Read(ctx, func(tx *db.Tx) error {
		return tx.Row("SELECT COALESCE((SELECT MIN(id) FROM event), 0), COALESCE((SELECT MAX(id) FROM event), 0)").Scan(&first, &last)
	})
	if err != nil || last-first < 2*keptEvents {
		return err
	}
	return q.db.Write(ctx, func(tx *db.Tx) error {
		_, err := tx.Exec("DELETE FROM event WHERE id <= ?", last-keptEvents)
		return err
	})
}

// keptParts is the time for which the temporary file of a failed file is kept for a Retry.
const keptParts = 24 * time.Hour

// Over returns the temporary files that no attempt will resume: their files are at the destination,
// were cancelled, or failed a day ago. Files that are not in the queue are left out.
func (q *Queue) Over(ctx context.Context, parts []transfer.LeaseID) (over []transfer.LeaseID, err error) {
	if len(parts) == 0 {
		return nil, nil
	}
	files, err := db.Get(ctx, q.db, func(tx *db.Tx) ([]*file, error) {
		return filesOf(tx, "id {{in}}", idsOf(parts, func(p transfer.LeaseID) int64 { return p.Item }))
	})
	gone := map[int64]bool{}
	for _, f := range files {
		gone[f.id] = f.state == done || f.state == skipped || f.state == dropped || f.state == failed && q.now().Sub(f.ended) > keptParts
	}
	for _, p := range parts {
		if gone[p.Item] {
			over = append(over, p)
		}
	}
	return over, err
}
