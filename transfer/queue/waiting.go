package queue

import (
	"cmp"
	"context"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"weir/internal/db"
	"weir/transfer"
	"weir/transfer/catalog"
)

// A Candidate is a file whose turn it is, and the sites that it can come from.
type Candidate struct {
	transfer.Item
	Request   int64
	Dest      string
	Want      transfer.Mode // the requested mode; "" is any mode
	Share     string
	Priority  int
	Unchecked bool
	Job       string // of a URL pair
	Delete    bool   // it is to be removed
	Check     bool   // the destination should have it already: it is to be verified there
	// never empty: at sites that are up and not busy; sites with the fewest failures for this file
	// first; only Dest if the file is to be checked there
	Replicas []catalog.Replica
	Failures map[string]int // of this file, by source
}

// Want selects candidates.
type Want struct {
	Dest string
	N    int      // at most N, and at most 1000
	Busy []string // sources that cannot be used now, as their limits are reached
}

const destinations = `WITH RECURSIVE next (dest) AS (
	SELECT MIN(dest) FROM request WHERE ended = 0 AND stop = '' AND ready_n > 0
	UNION ALL
	SELECT (SELECT MIN(dest) FROM request WHERE ended = 0 AND stop = '' AND ready_n > 0 AND dest > next.dest) FROM next
	WHERE next.dest IS NOT NULL)
	SELECT dest FROM next WHERE dest IS NOT NULL`

// Destinations returns the sites that files wait for.
func (q *Queue) Destinations(ctx context.Context) ([]string, error) {
	return db.Get(ctx, q.db, func(tx *db.Tx) ([]string, error) {
		return db.Column[string](tx, destinations) // DISTINCT would read all of their requests
	})
}

// Waiting returns the files that are next at a destination: first by share, then by priority, then
// by the requests' turns and age. Files that cannot begin do not block others: if another request
// brings a file now, or if there is no space for it, it pauses for a while with a reason. A file
// that the destination should already have has the destination as its only replica, to be checked
// there. The result is empty while the destination is full or down.
func (q *Queue) Waiting(ctx context.Context, w Want) ([]Candidate, error) {
	w.N = min(max(w.N, 0), 1000)
	const rounds = 10 // each round defers the blocked files found before
	var found []Candidate
	for range rounds {
		var deferred []deferral
		err := q.db.Read(ctx, func(tx *db.Tx) (err error) {
			found, deferred, err = q.look(tx, w)
			return err
		})
		if err != nil || len(deferred) == 0 {
			return found, err
		}
		if err := q.deferAll(ctx, deferred); err != nil {
			return nil, err
		}
	}
	return found, nil
}

// A deferral is the change of a ready file that cannot begin: its sources have changed, or it
// pauses for a reason.
type deferral struct {
	item   int64
	pause  time.Duration
	reason string
}

const (
	otherPause = 5 * time.Second  // another request brings the file
	spacePause = 30 * time.Second // the destination has no space
)

// A siteView is a snapshot of the state of one destination.
type siteView struct {
	full      bool // files can only be removed
	sites     map[string]catalog.Site
	requests  map[int64]*request // the requests whose turn it is, with some of their columns only
	groups    map[int64][]*sourceGroup
	all       []contender
	free      int64 // -1: unknown, or enough for all requests
	promised  int64
	alone     bool // no other request could bring a file there
	files     map[int64][]*file
	replicas  map[int64][]replica
	elsewhere map[int64]int64 // the item that brings a file now
}

func (q *Queue) look(tx *db.Tx, w Want) (found []Candidate, deferred []deferral, err error) {
	v, err := q.view(tx, w)
	if err != nil || v == nil {
		return nil, nil, err
	}
	order := q.next(w.Dest, v.all, w.N)
	if err := v.read(tx, w, order); err != nil {
		return nil, nil, err
	}
	begun := map[int64]int64{}
	for _, id := range order {
		if len(v.files[id]) == 0 {
			continue // it was counted but is gone: the next look reads the new state
		}
		f := v.files[id][0]
		v.files[id] = v.files[id][1:]
		c, away := v.judge(f, w, begun)
		if away != nil {
			deferred = append(deferred, *away)
			continue
		}
		begun[f.in] = f.id
		found = append(found, c)
	}
	return found, deferred, nil
}

// view reads the requests that have files that could go to a destination now. It returns nil if
// the destination is down.
func (q *Queue) view(tx *db.Tx, w Want) (*siteView, error) {
	sites, err := readSites(tx)
	if err != nil || !sites[w.Dest].Up {
		return nil, err
	}
	h, err := holdOf(tx, w.Dest)
	if err != nil {
		return nil, err
	}
	v := &siteView{full: q.now().Before(h.until), sites: sites, requests: map[int64]*request{},
		groups: map[int64][]*sourceGroup{}, free: sites[w.Dest].Free}
	d, err := demandOf(tx, w.Dest)
	if err != nil {
		return nil, err
	}
	if v.alone = d.requests == 1; d.bytes <= v.free {
		v.free = -1
	}
	return v, v.readContenders(tx, w)
}

// readContenders reads the requests that have files whose sources are usable. There may be many
// requests: the database aggregates requests with equal sites, share and priority.
func (v *siteView) readContenders(tx *db.Tx, w Want) error {
	by, only := map[int64]*contender{}, ""
	if v.full {
		only = "AND r.deletes"
	}
	_, err := db.All(tx, func(rows *db.Rows) (none struct{}, err error) {
		var sites, share, joined string
		var priority int
		if err = rows.Scan(&sites, &share, &priority, &joined); err != nil {
			return none, err
		}
		if !slices.ContainsFunc(strings.Split(sites, ","), func(s string) bool { return v.usable(s, w) }) {
			return none, nil
		}
		for one := range strings.SplitSeq(joined, " ") {
			g := &sourceGroup{sites: sites}
			for i, number := range strings.SplitN(one, ":", 3) {
				n, err := strconv.ParseInt(number, 10, 64)
				if err != nil {
					return none, err
				}
				*[]*int64{&g.id, &g.request, &g.ready}[i] = n
			}
			v.groups[g.request] = append(v.groups[g.request], g)
			if by[g.request] == nil {
				by[g.request] = &contender{id: g.request, share: share, priority: priority}
			}
			by[g.request].ready += g.ready
		}
		return none, nil
	}, `SELECT l.sites, r.share, r.priority,
		STRING_AGG(CAST(l.id AS TEXT) || ':' || CAST(l.request AS TEXT) || ':' || CAST(l.ready AS TEXT), ' ')
		FROM request r JOIN lane l ON l.request = r.id
		WHERE r.ended = 0 AND r.stop = '' AND r.ready_n > 0 AND r.dest = ? AND r.status IN ('resolving', 'running') AND l.ready > 0
		`+only+` GROUP BY l.sites, r.share, r.priority`, w.Dest)
	for _, id := range slices.Sorted(maps.Keys(by)) {
		v.all = append(v.all, *by[id])
		slices.SortFunc(v.groups[id], func(a, b *sourceGroup) int { return cmp.Compare(a.id, b.id) })
	}
	return err
}

// readRequests reads the requests whose turn it is.
func (v *siteView) readRequests(tx *db.Tx, ids []int64) error {
	all, err := db.All(tx, func(rows *db.Rows) (*request, error) {
		r := &request{}
		var sources, more string
		err := rows.Scan(&r.ID, &r.To, &sources, &r.Mode, &r.Share, &r.Priority, &r.Unchecked, &r.Job, &r.orderly, &more)
		r.From = unlist(sources)
		return r, cmp.Or(err, r.parse(more))
	}, "SELECT id, dest, sources, mode, share, priority, unchecked, job, orderly, terms FROM request WHERE id {{in}}", ids)
	for _, r := range all {
		v.requests[r.ID] = r
	}
	return err
}

func (v *siteView) usable(site string, w Want) bool {
	return v.sites[site].Up && !slices.Contains(w.Busy, site)
}

// read reads the files of the requests that are next, the oldest of each source group, with their
// replicas and active leases.
func (v *siteView) read(tx *db.Tx, w Want, order []int64) (err error) {
	v.files, v.elsewhere = map[int64][]*file{}, map[int64]int64{}
	wanted := map[int64]int{}
	for _, id := range order {
		wanted[id]++
	}
	if err := v.readRequests(tx, slices.Sorted(maps.Keys(wanted))); err != nil {
		return err
	}
	var all []*file
	for id, n := range wanted {
		var of []*file
		for _, g := range v.groups[id] {
			some, err := filesOf(tx, "lane = ? AND state = 1 ORDER BY id LIMIT ?", g.id, n)
			if err != nil {
				return err
			}
			of = append(of, some...)
		}
		slices.SortFunc(of, func(a, b *file) int { return cmp.Compare(a.id, b.id) })
		v.files[id] = of[:min(n, len(of))]
		all = append(all, v.files[id]...)
	}
	if v.replicas, err = readReplicas(tx, all); err != nil {
		return err
	}
	if v.free >= 0 {
		if v.promised, err = promised(tx, w.Dest); err != nil {
			return err
		}
	}
	if v.alone {
		return nil
	}
	active, err := db.All(tx, scanLease, "SELECT "+leaseColumns+" FROM lease WHERE dest = ? AND file {{in}}", w.Dest, idsOf(all, catalogID))
	for _, l := range active {
		v.elsewhere[l.file] = l.item
	}
	return err
}

// judge returns a file as a candidate if it can begin, or else its deferral.
func (v *siteView) judge(f *file, w Want, begun map[int64]int64) (Candidate, *deferral) {
	r := v.requests[f.request]
	all := v.replicas[f.replicaKey()]
	if other := cmp.Or(v.elsewhere[f.in], begun[f.in]); other != 0 {
		return Candidate{}, &deferral{f.id, otherPause, "request " + number(requestOf(other)) + " brings the same file now"}
	}
	var replicas []catalog.Replica
	for _, site := range r.sources(f, all) {
		if !v.usable(site, w) {
			continue
		}
		one := all[slices.IndexFunc(all, func(one replica) bool { return one.site == site })]
		replicas = append(replicas, catalog.Replica{File: f.name, Site: site, Path: one.path, Verified: one.verified, Bad: one.bad})
	}
	if len(replicas) == 0 {
		return Candidate{}, &deferral{item: f.id}
	}
	if !r.checks(replicas[0].Site) && !r.Delete {
		if v.free >= 0 && v.promised+max(f.size, 0) > v.free {
			return Candidate{}, &deferral{f.id, spacePause, w.Dest + " has " + sized(v.free) + " free, of which " + sized(v.promised) +
				" are promised to files on their way, and this one needs " + sized(f.size)}
		}
		v.promised += max(f.size, 0)
	}
	failures := f.sourceFailures.counts()
	if r.orderly {
		replicas = inOrder(replicas, all)
	}
	slices.SortStableFunc(replicas, func(a, b catalog.Replica) int { return cmp.Compare(failures[a.Site], failures[b.Site]) })
	if r.orderly {
		replicas = replicas[:1]
	}
	return Candidate{Item: f.item(), Request: f.request, Dest: w.Dest, Want: r.Mode, Share: r.Share, Priority: r.Priority,
		Unchecked: r.Unchecked, Job: r.Job, Delete: r.Delete, Check: r.checks(replicas[0].Site),
		Replicas: replicas, Failures: failures}, nil
}

// item returns the file in the form of the API.
func (f *file) item() transfer.Item {
	return transfer.Item{ID: f.id, Name: f.name, Size: f.size, Adler: f.adler, State: f.state.shown(), Tries: f.tries, Source: f.source,
		Mode: f.mode, Moved: f.moved, NotBefore: f.due, Fault: f.fault, Reason: f.reason, Ended: f.ended, Held: f.state >= staging}
}

// deferAll applies deferrals to files that are still ready.
func (q *Queue) deferAll(ctx context.Context, deferred []deferral) error {
	by := map[int64]deferral{}
	for _, d := range deferred {
		by[d.item] = d
	}
	return q.editFiles(ctx, slices.Sorted(maps.Keys(by)), func(e *edit, files []*file) error {
		var again []*file
		for _, f := range files {
			d := by[f.id]
			switch {
			case f.state != ready:
			case d.pause > 0:
				f.state, f.due, f.fault, f.reason = resting, e.now.Add(d.pause), "", d.reason
			default:
				again = append(again, f)
			}
		}
		return e.route(again)
	})
}

// next returns the requests whose turn it is, one request for each of n files.
func (q *Queue) next(dest string, all []contender, n int) []int64 {
	q.mu.Lock()
	defer q.mu.Unlock()
	t := q.fairShare[dest]
	if t == nil {
		t = newFairShare(q.shares)
		q.fairShare[dest] = t
	}
	t.admit(all)
	return t.next(all, n)
}

// pay charges a file that was begun to its share and request.
func (q *Queue) pay(dest, share string, request, size int64) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if t := q.fairShare[dest]; t != nil {
		t.pay(share, request, size)
	}
}
