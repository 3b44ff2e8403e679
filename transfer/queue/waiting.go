package queue

import (
	"cmp"
	"context"
	"slices"
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
	Want      transfer.Mode // what the request asks for; "" is whatever works
	Share     string
	Priority  int
	Unchecked bool
	Replicas  []catalog.Replica // never empty: at sites that are up and not busy; those that failed this file least first; Dest alone: Check it there
	Failures  map[string]int    // of this file, by source
}

// Want says which candidates are asked for.
type Want struct {
	Dest string
	N    int      // at most so many, and at most 1000
	Busy []string // sources that are of no use now, as their limits are reached
}

// Destinations are the sites that files wait for.
func (q *Queue) Destinations(ctx context.Context) (all []string, err error) {
	err = q.db.Read(ctx, func(tx *db.Tx) error {
		all, err = db.Column[string](tx, "SELECT DISTINCT dest FROM request WHERE ended = 0 AND stop = '' AND ready_n > 0 ORDER BY dest")
		return err
	})
	return all, err
}

// Waiting are the files whose turn it is at a destination that is up: first by
// share, then by priority, then by turn of the requests and age. Files that
// cannot be begun do not stand in others' way: those that another request brings
// now, or for which there is no space, rest for a while and say why. One that the
// destination should have already has it for its only replica, to be checked there. It gives nothing while the destination
// is full or down.
func (q *Queue) Waiting(ctx context.Context, w Want) ([]Candidate, error) {
	w.N = min(max(w.N, 0), 1000)
	const rounds = 10 // each sets aside what the one before has found
	var found []Candidate
	for range rounds {
		var aside []put
		err := q.db.Read(ctx, func(tx *db.Tx) (err error) {
			found, aside, err = q.look(tx, w)
			return err
		})
		if err != nil || len(aside) == 0 {
			return found, err
		}
		if err := q.setAside(ctx, aside); err != nil {
			return nil, err
		}
	}
	return found, nil
}

// A put is what becomes of a file that is ready and cannot be begun: its sources
// have changed, or it rests for a reason.
type put struct {
	item   int64
	rest   time.Duration
	reason string
}

const (
	otherPause = 5 * time.Second  // another request brings the file
	spacePause = 30 * time.Second // the destination has no space
)

// A view is what is known of one destination at one moment.
type view struct {
	sites        map[string]catalog.Site
	requests     map[int64]*request // with a part of their columns only
	sourceGroups map[int64][]*sourceGroup
	all          []contender
	room         int64 // -1: not known, or enough for all that is asked for
	promised     int64
	alone        bool // no other request could bring a file there
	files        map[int64][]*file
	replicas     map[int64][]replica
	elsewhere    map[int64]int64 // item that brings a file now
}

func (q *Queue) look(tx *db.Tx, w Want) (found []Candidate, aside []put, err error) {
	v, err := q.view(tx, w)
	if err != nil || v == nil {
		return nil, nil, err
	}
	fairShare := q.next(w.Dest, v.all, w.N)
	if err := v.read(tx, w, fairShare); err != nil {
		return nil, nil, err
	}
	begun := map[int64]int64{}
	for _, id := range fairShare {
		if len(v.files[id]) == 0 {
			continue // it was counted but is gone: the next look will know
		}
		f := v.files[id][0]
		v.files[id] = v.files[id][1:]
		c, away := v.judge(f, w, begun)
		if away != nil {
			aside = append(aside, *away)
			continue
		}
		begun[f.in] = f.id
		found = append(found, c)
	}
	return found, aside, nil
}

// view reads which requests have files that could go to a destination now. It is
// nil if nothing can.
func (q *Queue) view(tx *db.Tx, w Want) (*view, error) {
	sites, err := readSites(tx)
	if err != nil || !sites[w.Dest].Up {
		return nil, err
	}
	if h, err := holdOf(tx, w.Dest); err != nil || q.now().Before(h.until) {
		return nil, err
	}
	v := &view{sites: sites, requests: map[int64]*request{}, sourceGroups: map[int64][]*sourceGroup{}, room: sites[w.Dest].Free}
	d, err := demandOf(tx, w.Dest)
	if err != nil {
		return nil, err
	}
	if v.alone = d.requests == 1; d.bytes <= v.room {
		v.room = -1
	}
	open, err := db.All(tx, scanOpen, `SELECT id, dest, sources, mode, share, priority, unchecked FROM request
		WHERE ended = 0 AND dest = ? AND stop = '' AND ready_n > 0 AND status IN ('resolving', 'running') ORDER BY id`, w.Dest)
	if err != nil {
		return nil, err
	}
	for _, r := range open {
		v.requests[r.ID] = r
	}
	sourceGroups, err := db.All(tx, scanSourceGroup, `SELECT l.id, l.request, l.sites, l.ready FROM lane l JOIN request r ON r.id = l.request
		WHERE r.ended = 0 AND r.dest = ? AND l.ready > 0 ORDER BY l.id`, w.Dest)
	if err != nil {
		return nil, err
	}
	ready := map[int64]int64{}
	for _, l := range sourceGroups {
		if v.requests[l.request] != nil && slices.ContainsFunc(l.list(), func(s string) bool { return v.usable(s, w) }) {
			v.sourceGroups[l.request] = append(v.sourceGroups[l.request], l)
			ready[l.request] += l.ready
		}
	}
	for _, r := range open {
		if ready[r.ID] > 0 {
			v.all = append(v.all, contender{id: r.ID, share: r.Share, priority: r.Priority, ready: ready[r.ID]})
		}
	}
	return v, nil
}

func (l *sourceGroup) list() []string { return strings.Split(l.sites, ",") }

func (v *view) usable(site string, w Want) bool {
	return v.sites[site].Up && !slices.Contains(w.Busy, site)
}

func scanOpen(rows *db.Rows) (*request, error) {
	r := &request{}
	var sources string
	err := rows.Scan(&r.ID, &r.To, &sources, &r.Mode, &r.Share, &r.Priority, &r.Unchecked)
	r.From = unlist(sources)
	return r, err
}

// read reads the files of the requests whose turn it is, the oldest of each
// source group, and what must be known of them.
func (v *view) read(tx *db.Tx, w Want, fairShare []int64) error {
	v.files, v.elsewhere = map[int64][]*file{}, map[int64]int64{}
	wanted := map[int64]int{}
	for _, id := range fairShare {
		wanted[id]++
	}
	var all []*file
	for id, n := range wanted {
		var of []*file
		for _, l := range v.sourceGroups[id] {
			some, err := db.All(tx, scanFile, "SELECT "+fileColumns+" FROM item WHERE lane = ? AND state = 1 ORDER BY id LIMIT ?", l.id, n)
			if err != nil {
				return err
			}
			of = append(of, some...)
		}
		slices.SortFunc(of, func(a, b *file) int { return cmp.Compare(a.id, b.id) })
		v.files[id] = of[:min(n, len(of))]
		all = append(all, v.files[id]...)
	}
	var err error
	if v.replicas, err = readReplicas(tx, all); err != nil {
		return err
	}
	if v.room >= 0 {
		if v.promised, err = promised(tx, w.Dest); err != nil {
			return err
		}
	}
	if v.alone {
		return nil
	}
	held, err := db.All(tx, scanLease, "SELECT "+leaseColumns+" FROM lease WHERE dest = ? AND file {{in}}", w.Dest, numbers(all))
	for _, l := range held {
		v.elsewhere[l.file] = l.item
	}
	return err
}

// numbers are the catalog's numbers of files.
func numbers(files []*file) []int64 {
	var all []int64
	for _, f := range files {
		all = append(all, f.in)
	}
	return all
}

// judge tells whether a file can be begun; if not, what becomes of it.
func (v *view) judge(f *file, w Want, begun map[int64]int64) (Candidate, *put) {
	r := v.requests[f.request]
	all := v.replicas[f.in]
	other := v.elsewhere[f.in]
	if other == 0 {
		other = begun[f.in]
	}
	if other != 0 {
		return Candidate{}, &put{item: f.id, rest: otherPause, reason: "request " + number(requestOf(other)) + " brings the same file now"}
	}
	var replicas []catalog.Replica
	for _, site := range r.sources(f, all) {
		if !v.usable(site, w) {
			continue
		}
		i := slices.IndexFunc(all, func(one replica) bool { return one.site == site })
		replicas = append(replicas, catalog.Replica{File: f.name, Site: site, Path: all[i].path, Verified: all[i].verified, Bad: all[i].bad})
	}
	if len(replicas) == 0 {
		return Candidate{}, &put{item: f.id}
	}
	here := replicas[0].Site == w.Dest
	if v.room >= 0 && v.promised+f.size > v.room && !here {
		return Candidate{}, &put{item: f.id, rest: spacePause, reason: w.Dest + " has " + sized(v.room) + " free, of which " + sized(v.promised) +
			" are promised to files on their way, and this one needs " + sized(f.size)}
	}
	if !here {
		v.promised += f.size
	}
	failures := f.sourceFailures.counts()
	slices.SortStableFunc(replicas, func(a, b catalog.Replica) int { return cmp.Compare(failures[a.Site], failures[b.Site]) })
	return Candidate{Item: f.item(), Request: f.request, Dest: w.Dest, Want: r.Mode, Share: r.Share, Priority: r.Priority, Unchecked: r.Unchecked,
		Replicas: replicas, Failures: failures}, nil
}

// present tells whether a site has a file, verified.
func present(all []replica, site string) bool {
	return slices.ContainsFunc(all, func(one replica) bool { return one.site == site && one.bad == "" && !one.verified.IsZero() })
}

// item is a file as others see it.
func (f *file) item() transfer.Item {
	return transfer.Item{ID: f.id, Name: f.name, Size: f.size, Adler: f.adler, State: f.state.shown(), Tries: f.tries, Source: f.source, Mode: f.mode, Moved: f.moved,
		NotBefore: f.due, Fault: f.fault, Reason: f.reason, Ended: f.ended}
}

// setAside does to files that are still ready what was found out about them.
func (q *Queue) setAside(ctx context.Context, aside []put) error {
	return q.edit(ctx, func(e *edit) error {
		what := map[int64]put{}
		var items []int64
		for _, p := range aside {
			what[p.item] = p
			items = append(items, p.item)
		}
		if err := e.lockOf(items); err != nil {
			return err
		}
		files, err := e.loadItems(items)
		if err != nil {
			return err
		}
		var again []*file
		for _, f := range files {
			p := what[f.id]
			switch {
			case f.state != ready:
			case p.rest > 0:
				f.state, f.due, f.fault, f.reason = resting, e.now.Add(p.rest), "", p.reason
			default:
				again = append(again, f)
			}
		}
		return e.route(again)
	})
}

// next are the requests whose turn it is, one for each of n files.
func (q *Queue) next(dest string, all []contender, n int) []int64 {
	q.mu.Lock()
	defer q.mu.Unlock()
	t := q.fairShare[dest]
	if t == nil {
		t = newFairShare(q.o.Shares)
		q.fairShare[dest] = t
	}
	t.admit(all)
	return t.next(all, n)
}

// pay counts a file that was begun.
func (q *Queue) pay(dest, share string, request, size int64) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if t := q.fairShare[dest]; t != nil {
		t.pay(share, request, size)
	}
}
