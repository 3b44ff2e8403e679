package queue

import (
	"cmp"
	"context"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"time"

	"weir/internal/db"
	"weir/transfer"
	"weir/transfer/catalog"
	"weir/transfer/catalog/store"
)

// perRequest is the number of file numbers of a request.
const perRequest = 100_000_000

// requestOf returns the request that an item belongs to.
func requestOf(item int64) int64 { return item / perRequest }

// idsOf returns the ids of all.
func idsOf[T any](all []T, id func(T) int64) []int64 {
	ids := make([]int64, len(all))
	for i, one := range all {
		ids[i] = id(one)
	}
	return ids
}

// An edit is one transaction: requests are locked, their files are read and changed in memory, and
// all changes are written at its end, together with the counters. Nothing else changes files.
type edit struct {
	q         *Queue
	tx        *db.Tx
	now       time.Time
	requests  map[int64]*request
	ended     map[int64]bool // requests that had ended before
	files     map[int64]*file
	was       map[int64]file
	added     []*file                           // to be inserted
	groups    map[int64]map[string]*sourceGroup // of a request, by sites
	more      map[int64]int64                   // ready files of source groups
	attempts  []transfer.Attempt
	over      []int64 // leases that end
	placed    []store.Placement
	bad       []store.BadReplica
	checksums map[int64]store.Checksum // by file
	tape      []TapeFile
	full      map[string]string // destinations with the reason; "": the destination accepted a file
	events    []transfer.Event
	after     []func() // run after the commit

	badRuns map[string]badRun // of sources; nil: nothing was counted
}

// edit runs f in an edit. f may run more than once.
func (q *Queue) edit(ctx context.Context, f func(*edit) error) error {
	var e *edit
	err := q.db.Write(ctx, func(tx *db.Tx) error {
		e = &edit{q: q, tx: tx, now: q.now(), requests: map[int64]*request{}, ended: map[int64]bool{},
			files: map[int64]*file{}, was: map[int64]file{},
			groups: map[int64]map[string]*sourceGroup{}, more: map[int64]int64{}, full: map[string]string{}, checksums: map[int64]store.Checksum{}}
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
	if q.o.Ended != nil {
		q.o.Ended(e.whatEnded())
	}
	return nil
}

// editFiles runs f in an edit with the files of items, their requests locked.
func (q *Queue) editFiles(ctx context.Context, items []int64, f func(*edit, []*file) error) error {
	return q.edit(ctx, func(e *edit) error {
		files, err := e.lockFiles(items)
		if err != nil {
			return err
		}
		return f(e, files)
	})
}

// lock reads requests and locks them and their files against other edits. It is called once in an
// edit, so that two edits never wait for each other.
func (e *edit) lock(ids ...int64) error {
	slices.Sort(ids)
	all, err := db.All(e.tx, scanRequest, "SELECT "+requestColumns+" FROM request WHERE id {{in}} ORDER BY id {{lock}}", slices.Compact(ids))
	for _, r := range all {
		e.requests[r.ID], e.ended[r.ID] = r, r.Status.Ended()
	}
	return err
}

// lockFiles locks the requests of items and returns the existing files.
func (e *edit) lockFiles(items []int64) ([]*file, error) {
	if err := e.lock(idsOf(items, requestOf)...); err != nil {
		return nil, err
	}
	return e.load("id {{in}} ORDER BY id", items)
}

const fileColumns = "id, file, name, size, adler, state, lane, epoch, tries, pauses, due, source, mode, fault, reason, ended, " +
	"moved, trail, again"

func scanFile(rows *db.Rows) (*file, error) {
	f := &file{}
	err := rows.Scan(&f.id, &f.in, &f.name, &f.size, &f.adler, &f.state, &f.sourceGroup, &f.epoch, &f.tries, &f.pauses,
		db.When(&f.due), &f.source, &f.mode, &f.fault, &f.reason, db.When(&f.ended), &f.moved, &f.sourceFailures, &f.again)
	f.request = requestOf(f.id)
	return f, err
}

func filesOf(tx *db.Tx, where string, args ...any) ([]*file, error) {
	return db.All(tx, scanFile, "SELECT "+fileColumns+" FROM item WHERE "+where, args...)
}

// load reads files of locked requests, in the order of ids.
func (e *edit) load(where string, args ...any) ([]*file, error) {
	all, err := filesOf(e.tx, where, args...)
	for i, f := range all {
		if known := e.files[f.id]; known != nil {
			all[i] = known
			continue
		}
		e.files[f.id], e.was[f.id] = f, *f
	}
	return all, err
}

// A sourceGroup is the files of a request that can come from the same sites.
type sourceGroup struct {
	id, request int64
	sites       string
	ready       int64
}

const sourceGroupColumns = "id, request, sites, ready"

func scanSourceGroup(rows *db.Rows) (*sourceGroup, error) {
	g := &sourceGroup{}
	return g, rows.Scan(&g.id, &g.request, &g.sites, &g.ready)
}

func (g *sourceGroup) list() []string { return strings.Split(g.sites, ",") }

// up reports whether one of its sites is up.
func (g *sourceGroup) up(sites map[string]catalog.Site) bool {
	return slices.ContainsFunc(g.list(), func(s string) bool { return sites[s].Up })
}

// group returns a request's source group for sites, and adds it if it does not exist.
func (e *edit) group(request int64, sites []string) (*sourceGroup, error) {
	if e.groups[request] == nil {
		all, err := db.All(e.tx, scanSourceGroup, "SELECT "+sourceGroupColumns+" FROM lane WHERE request = ?", request)
		if err != nil {
			return nil, err
		}
		e.groups[request] = map[string]*sourceGroup{}
		for _, g := range all {
			e.groups[request][g.sites] = g
		}
	}
	key := strings.Join(sites, ",")
	if g := e.groups[request][key]; g != nil {
		return g, nil
	}
	g := &sourceGroup{request: request, sites: key}
	e.groups[request][key] = g
	return g, e.tx.Row("INSERT INTO lane (request, sites, ready) VALUES (?, ?, 0) RETURNING id", request, key).Scan(&g.id)
}

// route makes files ready in the source group of their current sources. Files without a source
// fail.
func (e *edit) route(files []*file) error {
	replicas, err := readReplicas(e.tx, files)
	if err != nil {
		return err
	}
	for _, f := range files {
		r := e.requests[f.request]
		sites := r.sources(f, replicas[f.replicaKey()])
		if len(sites) == 0 && !f.again { // a bad replica may have been repaired: each is tried once
			f.again = true
			sites = r.sources(f, replicas[f.replicaKey()])
		}
		if len(sites) == 0 {
			fault, reason := f.fault, f.reason
			if fault == "" {
				fault, reason = transfer.SourceBad, r.noSource(replicas[f.replicaKey()])
			}
			f.fail(failed, fault, reason, e.now)
			continue
		}
		g, err := e.group(f.request, sites)
		if err != nil {
			return err
		}
		f.state, f.sourceGroup, f.due = ready, g.id, time.Time{}
	}
	return nil
}

// event adds an event; the number of events about failed files is limited.
func (e *edit) event(r *request, item int64, text string) {
	if item != 0 && len(e.events) >= batch/10 {
		return
	}
	e.events = append(e.events, transfer.Event{Request: r.ID, Item: item, Time: e.now, Text: text})
}

// count counts a file in its request and, while it is ready, in its source group.
func (e *edit) count(f *file, sign int64) {
	e.requests[f.request].count(f, sign)
	if f.state == ready {
		e.more[f.sourceGroup] += sign
	}
}

// conclude ends a request whose files have all ended.
func (e *edit) conclude(r *request) {
	why := r.stop
	if r.Count.Files > 0 && r.Count.Cancelled == r.Count.Files {
		why = cmp.Or(why, transfer.Cancelled) // file by file
	}
	r.Status = conclude(r.Count.Files, r.Count.Done+r.Count.Skipped, why)
	if r.stop != "" && !r.resolved {
		r.Status = r.stop // it has more files than were added
	}
	r.Ended = e.now
	if r.Count.Files == 0 && r.Reason == "" {
		r.Reason = "the catalog has no such files any more"
	}
	e.event(r, 0, ending(r))
	e.after = append(e.after, func() { e.q.rates.forget(r.ID) })
}

// ending describes the end of a request.
func ending(r *request) string {
	c := r.Count
	return "request " + number(r.ID) + " ended as " + string(r.Status) + ": " + number(c.Done+c.Skipped) + " of " + number(c.Files) +
		" files are at " + r.To
}

func (q *Queue) random() float64 {
	if q.o.Rand != nil {
		return q.o.Rand()
	}
	return rand.Float64()
}

// save writes all changes.
func (e *edit) save() error {
	for _, step := range []func() error{e.saveFiles, e.saveTape, e.saveGroups, e.saveAttempts, e.saveReplicas, e.saveFull, e.saveRequests,
		e.saveJobs, e.saveChanges, e.saveEvents} {
		if err := step(); err != nil {
			return err
		}
	}
	return nil
}

func (e *edit) saveGroups() error {
	changed := slices.DeleteFunc(slices.Sorted(maps.Keys(e.more)), func(id int64) bool { return e.more[id] == 0 })
	_, err := e.tx.Many("UPDATE lane SET ready = ready + ? WHERE id = ?",
		db.Each(changed, func(id int64) []any { return []any{e.more[id], id} }))
	return err
}

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
