package queue

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"weir/internal/db"
	"weir/transfer"
)

// haltTime is the time for which a request is suspended after its work has failed.
const haltTime = 10 * time.Second

// Work continues changes of requests by n files: files are added, dropped after a cancellation, or
// retried. Requests take turns. Each call is one transaction, and the next call, of any process,
// continues after it. more reports whether there is more to do. A request for which it fails does
// not block others: the error becomes the request's reason, and it is tried again after the others;
// a request that can never succeed has failed. The error returned by Work is an error of the
// database as a whole.
func (q *Queue) Work(ctx context.Context, n int) (more bool, err error) {
	n = min(max(n, 1), 10_000)
	var of *request
	err = q.edit(ctx, func(e *edit) error {
		r, err := e.nextWork()
		if of = r; err != nil || r == nil {
			more = false
			return err
		}
		more = true
		switch r.work {
		case resolving:
			err = e.resolve(r, n)
		case dropping:
			err = e.drop(r, n)
		case retrying:
			err = e.retry(r, n)
		}
		return err
	})
	if of == nil {
		return more, err
	}
	failed := err != nil && !errors.Is(err, db.ErrBusy) && ctx.Err() == nil
	q.mu.Lock()
	q.worked = of.ID
	delete(q.halted, of.ID)
	if failed {
		q.halted[of.ID] = q.now().Add(haltTime)
	}
	q.mu.Unlock()
	if failed {
		return true, q.workFailed(ctx, of.ID, err)
	}
	return more, err
}

// workFailed records that the work of a request has failed.
func (q *Queue) workFailed(ctx context.Context, id int64, why error) error {
	reason := text("its files cannot be dealt with: "+why.Error(), 2000)
	return q.edit(ctx, func(e *edit) error {
		if err := e.lock(id); err != nil {
			return err
		}
		r := e.requests[id]
		if r == nil || r.work == "" {
			return nil
		}
		if r.Reason != reason {
			r.Reason = reason
			e.event(r, 0, fmt.Sprintf("request %d: %s", id, reason))
		}
		if errors.Is(why, ErrRefused) && r.stop == "" {
			return e.stop(r, transfer.Failed)
		}
		return nil
	})
}

// nextWork locks the next request that has work, preferably a request that is not locked now.
func (e *edit) nextWork() (*request, error) {
	e.q.mu.Lock()
	last := e.q.worked
	halted := []int64{0}
	for id, until := range e.q.halted {
		if e.now.Before(until) {
			halted = append(halted, id)
		} else {
			delete(e.q.halted, id)
		}
	}
	e.q.mu.Unlock()
	for _, try := range []struct {
		after int64
		lock  string
	}{{last, "{{skip}}"}, {0, "{{skip}}"}, {0, "{{lock}}"}} {
		all, err := db.All(e.tx, scanRequest, "SELECT "+requestColumns+" FROM request WHERE work <> '' AND id > ? AND NOT id {{in}} "+
			"ORDER BY id LIMIT 1 "+try.lock, try.after, halted)
		if err != nil {
			return nil, err
		}
		if len(all) > 0 {
			e.requests[all[0].ID] = all[0]
			return all[0], nil
		}
	}
	return nil, nil
}

// resolve stores the next n files of a request.
func (e *edit) resolve(r *request, n int) error {
	names, err := db.Column[string](e.tx, "SELECT name FROM wanted WHERE request = ? AND name > ? ORDER BY name LIMIT ?", r.ID, r.at, n)
	if err != nil {
		return err
	}
	set, err := datasetOf(e.tx, r.Dataset, r.Block)
	if err == nil {
		set.upto = r.upto
	}
	gone := errors.Is(err, ErrNotFound) // it was removed after the submission
	if err != nil && !gone {
		return err
	}
	var files []*file
	switch {
	case gone && len(names) == 0:
	case gone:
		files = orphans(names, nil)
	case len(names) > 0 || e.named(r):
		if files, err = set.named(e.tx, names); err == nil {
			files = append(files, orphans(names, files)...)
			slices.SortFunc(files, func(a, b *file) int { return strings.Compare(a.name, b.name) })
		}
	default:
		files, err = set.page(e.tx, r.at, n)
	}
	if err != nil {
		return err
	}
	if err := e.enter(r, files); err != nil {
		return err
	}
	if len(files) < n {
		r.resolved, r.work, r.Status = true, "", transfer.Running
	}
	return nil
}

// named reports whether a request names its files.
func (e *edit) named(r *request) bool {
	var one int64
	return e.tx.Row("SELECT request FROM wanted WHERE request = ? LIMIT 1", r.ID).Scan(&one) == nil
}

// orphans returns files with these names that are not in the catalog any more.
func orphans(names []string, known []*file) []*file {
	there := map[string]bool{}
	for _, f := range known {
		there[f.name] = true
	}
	var all []*file
	for _, name := range names {
		if !there[name] {
			all = append(all, &file{name: name})
		}
	}
	return all
}

// enter adds files to a request: each is ready, or has failed because it has no source.
func (e *edit) enter(r *request, files []*file) error {
	var waiting []*file
	for i, f := range files {
		f.request, f.id = r.ID, r.ID*perRequest+r.Count.Files+int64(i)+1
		if f.in == 0 {
			f.fail(failed, transfer.Permanent, "the catalog does not know it any more", e.now)
		} else {
			waiting = append(waiting, f)
		}
		r.at = f.name
	}
	if len(files) > 0 && r.Count.Files+int64(len(files)) >= perRequest {
		return refused("request %d has more than %d files", r.ID, perRequest-1)
	}
	e.added = append(e.added, files...)
	return e.route(waiting)
}

// drop ends the next n waiting files of a stopped request.
func (e *edit) drop(r *request, n int) error {
	files, err := e.load("id > ? AND id < ? AND state IN (1, 2, 8, 9, 10) ORDER BY id LIMIT ?", r.place, (r.ID+1)*perRequest, n)
	if err != nil {
		return err
	}
	w, err := e.q.Read.waits(&view{tx: e.tx, r: r})
	if err != nil {
		return err
	}
	for _, f := range files {
		held := f.reason
		if held == "" && f.state == ready {
			held, _ = w.reason(f.sourceGroup)
		}
		if held == "" {
			held = "its turn had not come"
		}
		f.fail(dropped, f.fault, held+"; "+r.stopped(), e.now)
		r.place = f.id
	}
	if len(files) < n {
		r.work = ""
	}
	return nil
}

// retry makes the next n files that did not arrive ready again.
func (e *edit) retry(r *request, n int) error {
	files, err := e.load("id > ? AND id < ? AND state IN (6, 7) ORDER BY id LIMIT ?", r.place, (r.ID+1)*perRequest, n)
	if err != nil {
		return err
	}
	var again []*file
	for _, f := range files {
		r.place = f.id
		if f.in == 0 {
			continue // it is not in the catalog
		}
		f.tries, f.pauses, f.sourceFailures, f.again, f.ended, f.fault, f.reason = 0, 0, "", true, time.Time{}, "", ""
		again = append(again, f)
	}
	if r.Stage > 0 {
		again, err = e.stageAgain(r, again)
		if err != nil {
			return err
		}
	}
	if err := e.route(again); err != nil {
		return err
	}
	if len(files) < n {
		r.work = ""
		if !r.resolved {
			r.work, r.Status = resolving, transfer.Resolving
		}
	}
	return nil
}
