package queue

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"weir/internal/db"
	"weir/internal/say"
	"weir/transfer"
	"weir/transfer/catalog/store"
)

// Defaults and bounds of submissions.
const (
	defaultShare = "default"
	defaultTries = 5
	shownFiles   = 1000 // maximum number of names in a Request
	firstFiles   = 1000 // files that are dropped, or retried, at once
)

// Submit stores a request. The same key by the same user is the same request, which is returned in
// its current state. ErrRefused describes an invalid submission, ErrNotFound an unknown dataset,
// block, file or site.
func (q *Queue) Submit(ctx context.Context, by string, s transfer.Submission) (transfer.Request, error) {
	by = text(by, 1000)
	if err := check(&s, q.now()); err != nil {
		return transfer.Request{}, err
	}
	var id int64
	submit := func(e *edit) (err error) {
		id, err = e.submit(by, s)
		return err
	}
	err := q.edit(ctx, submit)
	if errors.Is(err, db.ErrExists) { // the same key was submitted just now
		err = q.edit(ctx, submit)
	}
	if err != nil {
		return transfer.Request{}, err
	}
	return q.Read.Get(ctx, id)
}

// check refuses invalid submissions, and fills in the defaults.
func check(s *transfer.Submission, now time.Time) error {
	if s.Share == "" {
		s.Share = defaultShare
	}
	if s.Tries == 0 {
		s.Tries = defaultTries
	}
	s.Files = slices.Compact(slices.Sorted(slices.Values(s.Files)))
	s.From = slices.Compact(slices.Sorted(slices.Values(s.From)))
	switch {
	case s.Dataset == "":
		return refused("no dataset is named")
	case s.To == "":
		return refused("no destination is named")
	case s.Check() != nil:
		return refused("%w", s.Check())
	case !s.Expires.IsZero() && !s.Expires.After(now):
		return refused("it would have expired at %s already", clock(s.Expires))
	case len(s.Share) > 100 || len(s.Key) > 1000 || len(s.Comment) > 10_000:
		return refused("share, key or comment is too long (100, 1000 and 10000 bytes at most)")
	}
	for _, one := range slices.Concat([]string{s.Share, s.Key, s.Comment, s.Dataset, s.Block, s.To}, s.From, s.Files) {
		if !utf8.ValidString(one) || strings.ContainsRune(one, 0) { // no database stores these
			return refused("%q is not text", one)
		}
	}
	return nil
}

// Approve lets a request that awaits approval begin.
func (q *Queue) Approve(ctx context.Context, id int64, by, reason string) (transfer.Request, error) {
	return q.answer(ctx, id, by, reason, transfer.Resolving)
}

// Reject ends a request that awaits approval.
func (q *Queue) Reject(ctx context.Context, id int64, by, reason string) (transfer.Request, error) {
	return q.answer(ctx, id, by, reason, transfer.Rejected)
}

// answer approves or rejects a request that awaits approval.
func (q *Queue) answer(ctx context.Context, id int64, by, reason string, to transfer.Status) (transfer.Request, error) {
	return q.change(ctx, id, func(e *edit, r *request) error {
		if r.Status != transfer.Awaiting {
			return refused("request %d does not await approval: it is %s", id, r.Status)
		}
		r.decided(by, reason)
		word := "rejected"
		if r.Status = to; to == transfer.Rejected {
			r.Ended = e.now
		} else {
			word, r.work, r.Began = "approved", resolving, e.now
		}
		e.event(r, 0, fmt.Sprintf("request %d was %s by %s", id, word, by))
		return nil
	})
}

// decided stores the user who has changed a request, and the reason.
func (r *request) decided(by, reason string) {
	r.Decided, r.Reason = text(by, 1000), text(reason, 2000)
}

// Cancel stops a request. Waiting files are dropped, the first thousand at once and the others by
// Work; files that are being moved are dropped when their mover reports it or their lease ends, and
// if they still arrive they are done.
func (q *Queue) Cancel(ctx context.Context, id int64, by, reason string) (transfer.Request, error) {
	return q.change(ctx, id, func(e *edit, r *request) error {
		if r.Status.Ended() {
			return refused("request %d has ended: it is %s", id, r.Status)
		}
		if r.stop != "" {
			return nil
		}
		r.decided(by, reason)
		return e.stop(r, transfer.Cancelled)
	})
}

// stop lets no file of a request begin any more.
func (e *edit) stop(r *request, why transfer.Status) error {
	if r.Status == transfer.Awaiting {
		r.Status, r.Ended = why, e.now
		e.event(r, 0, ending(r))
		return nil
	}
	r.stop, r.work, r.place = why, dropping, r.ID*perRequest
	e.event(r, 0, fmt.Sprintf("request %d is being stopped: %s", r.ID, why))
	return e.drop(r, e.q.first)
}

// Retry makes the files of an ended request that did not arrive ready again, with their tries
// reset, and tries bad sources once more. The other files do not change.
func (q *Queue) Retry(ctx context.Context, id int64, by, reason string) (transfer.Request, error) {
	return q.change(ctx, id, func(e *edit, r *request) error {
		switch r.Status {
		case transfer.Partial, transfer.Failed, transfer.Cancelled, transfer.Expired:
		case transfer.Completed:
			return refused("request %d is completed: there is nothing to try again", id)
		case transfer.Rejected:
			return refused("request %d was rejected: submit it anew", id)
		default:
			return refused("request %d has not ended: it is %s", id, r.Status)
		}
		if r.Began.IsZero() {
			return refused("request %d was never approved: submit it anew", id)
		}
		if !r.Expires.IsZero() && !r.Expires.After(e.now) {
			r.Expires = e.now.Add(r.Expires.Sub(r.Made)) // the same duration again
		}
		if r.Count.Files == 0 {
			r.resolved, r.at = false, ""
		}
		r.decided(by, reason)
		r.stop, r.Ended = "", time.Time{}
		r.Status, r.work, r.place = transfer.Running, retrying, r.ID*perRequest
		e.event(r, 0, fmt.Sprintf("request %d goes again: %s", id, say.Plural(int(r.Count.Failed+r.Count.Cancelled), "file")))
		return e.retry(r, e.q.first)
	})
}

// change changes one request.
func (q *Queue) change(ctx context.Context, id int64, f func(*edit, *request) error) (transfer.Request, error) {
	err := q.edit(ctx, func(e *edit) error {
		if err := e.lock(id); err != nil {
			return err
		}
		r := e.requests[id]
		if r == nil {
			return unknown("there is no request %d", id)
		}
		return f(e, r)
	})
	if err != nil {
		return transfer.Request{}, err
	}
	return q.Read.Get(ctx, id)
}

func refused(format string, args ...any) error {
	return fmt.Errorf("%w: "+format, append([]any{ErrRefused}, args...)...)
}

func unknown(format string, args ...any) error {
	return fmt.Errorf("%w: "+format, append([]any{ErrNotFound}, args...)...)
}

// submit stores a request and the names of its files.
func (e *edit) submit(by string, s transfer.Submission) (int64, error) {
	if s.Key != "" {
		if id, err := e.keyed(by, s); !errors.Is(err, db.ErrNone) {
			return id, err
		}
	}
	upto, err := store.Next(e.tx) // before any other query of the catalog
	if err != nil {
		return 0, err
	}
	asked, err := e.known(s)
	switch {
	case err != nil:
		return 0, err
	case asked.Files >= perRequest:
		return 0, refused("%d files: a request has less than %d, so ask for blocks of them", asked.Files, perRequest)
	}
	r := &request{upto: upto, Request: transfer.Request{Submission: s, Status: transfer.Awaiting, By: by, Made: e.now, Asked: asked}}
	if s.Approve {
		r.Status, r.work, r.Began = transfer.Resolving, resolving, e.now
	}
	if err := r.insert(e.tx); err != nil {
		return 0, err
	}
	_, err = e.tx.Bulk("wanted", []string{"request", "name"}, db.Each(s.Files, func(name string) []any { return []any{r.ID, name} }))
	e.event(r, 0, fmt.Sprintf("request %d by %s: %s to %s, %s", r.ID, by, s.Dataset, s.To, r.Status))
	return r.ID, err
}

// keyed returns the request of a user that has the key of a submission. It refuses the key of a
// different request: the caller would wait for other files, or another site.
func (e *edit) keyed(by string, s transfer.Submission) (id int64, err error) {
	var was transfer.Submission
	var sources string
	err = e.tx.Row("SELECT id, dataset, block, dest, sources, mode, unchecked FROM request WHERE made_by = ? AND key = ? AND "+
		"key <> ''", by, s.Key).
		Scan(&id, &was.Dataset, &was.Block, &was.To, &sources, &was.Mode, &was.Unchecked)
	if err != nil {
		return id, err
	}
	names, err := db.Column[string](e.tx, "SELECT name FROM wanted WHERE request = ? ORDER BY name", id)
	if err != nil {
		return id, err
	}
	other := ""
	switch {
	case was.Dataset != s.Dataset || was.Block != s.Block || was.To != s.To:
		other = fmt.Sprintf("%s at %s", &dataset{name: was.Dataset, block: was.Block}, was.To)
	case sources != list(s.From):
		other = "other sources"
	case was.Mode != s.Mode || was.Unchecked != s.Unchecked:
		other = "another mode, or for another check of checksums"
	case slices.Equal(names, s.Files):
		return id, nil
	case len(names) == 0:
		other = "all files"
	case len(names) == 1:
		other = "file " + names[0] + " only"
	default:
		other = fmt.Sprintf("%d files, %s among them", len(names), names[0])
	}
	return id, refused("key %q is that of request %d, which asks for %s: use another key", s.Key, id, other)
}

// known checks that the catalog has everything named in a submission.
func (e *edit) known(s transfer.Submission) (asked transfer.Requested, err error) {
	sites, err := readSites(e.tx)
	if err != nil {
		return asked, err
	}
	for _, name := range append([]string{s.To}, s.From...) {
		if _, ok := sites[name]; !ok {
			return asked, unknown("there is no site %q", name)
		}
	}
	set, err := datasetOf(e.tx, s.Dataset, s.Block)
	if err != nil {
		return asked, err
	}
	if len(s.Files) == 0 {
		asked, err = set.size(e.tx)
		if err == nil && asked.Files == 0 {
			err = refused("%s has no files", set)
		}
		return asked, err
	}
	for names := range slices.Chunk(s.Files, batch) {
		files, err := set.named(e.tx, names)
		if err != nil {
			return asked, err
		}
		if missing := orphans(names, files); len(missing) > 0 {
			return asked, unknown("%s has no file %q", set, missing[0].name)
		}
		for _, f := range files {
			asked.Files++
			asked.Bytes += f.size
		}
	}
	return asked, nil
}
