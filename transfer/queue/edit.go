package queue

import (
	"context"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"time"

	"weir/internal/db"
	"weir/transfer"
	"weir/transfer/catalog/store"
)

// perRequest is how many numbers of files a request has.
const perRequest = 100_000_000

// requestOf is the request that an item belongs to.
func requestOf(item int64) int64 { return item / perRequest }

// An edit is one transaction: requests are locked, their files read, changed in
// memory, and all that changed is written at its end, counters with it. Nothing
// else changes files.
type edit struct {
	*Queue
	tx           *db.Tx
	now          time.Time
	requests     map[int64]*request
	files        map[int64]*file
	was          map[int64]file
	fresh        []*file                           // to be inserted
	sourceGroups map[int64]map[string]*sourceGroup // of a request, by sites
	more         map[int64]int64                   // ready files of source groups
	attempts     []transfer.Attempt
	over         []int64 // leases that end
	placed       []store.Placement
	spoiled      []store.Spoiled
	learned      map[int64]store.Learned // checksums, by file
	full         map[string]string       // destinations: why; "" is that one took a file
	events       []transfer.Event
	after        []func() // when it is committed

	missedNow map[string]badRun // nil: nothing was counted
}

// A source group is the files of a request that can come from the same sites.
type sourceGroup struct {
	id, request int64
	sites       string
	ready       int64
}

// edit runs f in an edit. It may run more than once.
func (q *Queue) edit(ctx context.Context, f func(*edit) error) error {
	var e *edit
	err := q.db.Write(ctx, func(tx *db.Tx) error {
		e = &edit{Queue: q, tx: tx, now: q.now(), requests: map[int64]*request{}, files: map[int64]*file{}, was: map[int64]file{},
			sourceGroups: map[int64]map[string]*sourceGroup{}, more: map[int64]int64{}, full: map[string]string{}, learned: map[int64]store.Learned{}}
		if err := f(e); err != nil {
			return err
		}
		return e.save()
	})
	if err != nil {
		return err
	}
	for _, do := range e.after {
		do()
	}
	return nil
}

// lock reads requests and keeps others from changing them or their files. It is
// called once in an edit, so that two edits never wait for each other.
func (e *edit) lock(ids ...int64) error {
	slices.Sort(ids)
	all, err := db.All(e.tx, scanRequest, "SELECT "+requestColumns+" FROM request WHERE id {{in}} ORDER BY id {{lock}}", slices.Compact(ids))
	for _, r := range all {
		e.requests[r.ID] = r
	}
	return err
}

// lockOf locks the requests of items.
func (e *edit) lockOf(items []int64) error {
	var ids []int64
	for _, item := range items {
		ids = append(ids, requestOf(item))
	}
	return e.lock(ids...)
}

const fileColumns = "id, file, name, size, adler, state, lane, epoch, tries, pauses, due, source, mode, fault, reason, ended, moved, trail, again"

func scanFile(rows *db.Rows) (*file, error) {
	f := &file{}
	err := rows.Scan(&f.id, &f.in, &f.name, &f.size, &f.adler, &f.state, &f.sourceGroup, &f.epoch, &f.tries, &f.pauses, db.When(&f.due), &f.source, &f.mode, &f.fault, &f.reason,
		db.When(&f.ended), &f.moved, &f.sourceFailures, &f.again)
	f.request = requestOf(f.id)
	return f, err
}

// load reads files of locked requests and returns those that there are, in the
// order of ids.
func (e *edit) load(query string, args ...any) ([]*file, error) {
	all, err := db.All(e.tx, scanFile, "SELECT "+fileColumns+" FROM item WHERE "+query, args...)
	if err != nil {
		return nil, err
	}
	for i, f := range all {
		if known := e.files[f.id]; known != nil {
			all[i] = known
			continue
		}
		e.files[f.id], e.was[f.id] = f, *f
	}
	return all, nil
}

func (e *edit) loadItems(items []int64) ([]*file, error) {
	return e.load("id {{in}} ORDER BY id", items)
}

// laneOf returns a request's source group for sites, made if need be.
func (e *edit) laneOf(request int64, sites []string) (*sourceGroup, error) {
	if err := e.readLanes(request); err != nil {
		return nil, err
	}
	key := strings.Join(sites, ",")
	if l := e.sourceGroups[request][key]; l != nil {
		return l, nil
	}
	l := &sourceGroup{request: request, sites: key}
	err := e.tx.Row("INSERT INTO lane (request, sites, ready) VALUES (?, ?, 0) RETURNING id", request, key).Scan(&l.id)
	e.sourceGroups[request][key] = l
	return l, err
}

func (e *edit) readLanes(request int64) error {
	if e.sourceGroups[request] != nil {
		return nil
	}
	all, err := db.All(e.tx, scanSourceGroup, "SELECT "+sourceGroupColumns+" FROM lane WHERE request = ?", request)
	e.sourceGroups[request] = map[string]*sourceGroup{}
	for _, l := range all {
		e.sourceGroups[request][l.sites] = l
	}
	return err
}

const sourceGroupColumns = "id, request, sites, ready"

func scanSourceGroup(rows *db.Rows) (*sourceGroup, error) {
	l := &sourceGroup{}
	return l, rows.Scan(&l.id, &l.request, &l.sites, &l.ready)
}

// route has files that are to be ready wait in the source group of the sources that they
// have now; those that have none fail.
func (e *edit) route(files []*file) error {
	replicas, err := e.replicas(files)
	if err != nil {
		return err
	}
	return e.routed(files, replicas)
}

func (e *edit) routed(files []*file, replicas map[int64][]replica) error {
	for _, f := range files {
		r := e.requests[f.request]
		sites := r.sources(f, replicas[f.in])
		if len(sites) == 0 && !f.again { // what was bad may have been put right: each is asked once
			f.again = true
			sites = r.sources(f, replicas[f.in])
		}
		if len(sites) == 0 {
			fault, reason := f.fault, f.reason
			if fault == "" {
				fault, reason = transfer.SourceBad, r.why(replicas[f.in])
			}
			f.lose(failed, fault, reason, e.now)
			continue
		}
		l, err := e.laneOf(f.request, sites)
		if err != nil {
			return err
		}
		f.state, f.sourceGroup, f.due = ready, l.id, time.Time{}
	}
	return nil
}

// event tells those who watch; of files that failed, the first of an edit.
func (e *edit) event(r *request, item int64, text string) {
	if item != 0 && len(e.events) >= batch/10 {
		return
	}
	e.events = append(e.events, transfer.Event{Request: r.ID, Item: item, Time: e.now, Text: text})
}

// save writes what has changed.
func (e *edit) save() error {
	for _, step := range []func() error{e.saveFiles, e.saveLanes, e.saveLeases, e.saveAttempts, e.savePlaced, e.saveRequests, e.saveEvents} {
		if err := step(); err != nil {
			return err
		}
	}
	return nil
}

// count counts a file in its request and, while it is ready, in its source group.
func (e *edit) count(f *file, sign int64) {
	e.requests[f.request].count(f, sign)
	if f.state == ready {
		e.more[f.sourceGroup] += sign
	}
}

func (e *edit) saveLanes() error {
	_, err := e.tx.Many("UPDATE lane SET ready = ready + ? WHERE id = ?", func(yield func([]any) bool) {
		for _, id := range slices.Sorted(maps.Keys(e.more)) {
			if e.more[id] != 0 && !yield([]any{e.more[id], id}) {
				return
			}
		}
	})
	return err
}

// saveRequests ends those of which nothing is left to do.
func (e *edit) saveRequests() error {
	for _, id := range slices.Sorted(maps.Keys(e.requests)) {
		r := e.requests[id]
		if r.settled() {
			e.conclude(r)
		}
		if err := r.update(e.tx); err != nil {
			return err
		}
	}
	return nil
}

func (e *edit) conclude(r *request) {
	there := r.Count.Done + r.Count.Skipped
	r.Status = conclude(r.Count.Files, there, r.stop)
	if r.stop != "" && !r.resolved {
		r.Status = r.stop // there is more than was written down
	}
	r.Ended = e.now
	if r.Count.Files == 0 && r.Reason == "" {
		r.Reason = "the catalog has no such files any more"
	}
	e.event(r, 0, ending(r))
	e.after = append(e.after, func() { e.paces.forget(r.ID) })
}

// ending says what a request came to.
func ending(r *request) string {
	c := r.Count
	return "request " + number(r.ID) + " ended as " + string(r.Status) + ": " + number(c.Done+c.Skipped) + " of " + number(c.Files) + " files are at " + r.To
}

func (q *Queue) random() float64 {
	if q.o.Rand != nil {
		return q.o.Rand()
	}
	return rand.Float64()
}
