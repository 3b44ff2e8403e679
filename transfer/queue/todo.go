package queue

import (
	"context"
	"errors"
	"iter"
	"time"

	"weir/transfer"
)

var errSoon = errors.New("queue: being written")

// A Queue is safe for concurrent use. (Open(ctx, *db.DB, Options) (*Queue, error) comes with internal/db.)
// Errors: errors.Is(err, ErrNotFound): no such request, site, dataset, file. ErrRefused: not possible in
// this status, or the submission is wrong; its text says why. db.ErrBusy: come again.
type Queue struct{}

// ErrNotFound and ErrRefused are what is wrong with a question or an order.
var (
	ErrNotFound = errors.New("not found")
	ErrRefused  = errors.New("refused")
)

// Submit writes a request down. The same key by the same user is the same request.
func (q *Queue) Submit(ctx context.Context, by string, s transfer.Submission) (transfer.Request, error) {
	return transfer.Request{}, errSoon
}

// Approve lets a request begin.
func (q *Queue) Approve(ctx context.Context, id int64, by, reason string) (transfer.Request, error) {
	return transfer.Request{}, errSoon
}

// Reject ends a request that awaits approval.
func (q *Queue) Reject(ctx context.Context, id int64, by, reason string) (transfer.Request, error) {
	return transfer.Request{}, errSoon
}

// Cancel stops a request: files that wait are dropped (by Work), those that are being moved when their mover says so or its lease ends.
func (q *Queue) Cancel(ctx context.Context, id int64, by, reason string) (transfer.Request, error) {
	return transfer.Request{}, errSoon
}

// Retry lets the files of an ended request that did not arrive go again.
func (q *Queue) Retry(ctx context.Context, id int64, by, reason string) (transfer.Request, error) {
	return transfer.Request{}, errSoon
}

// Work does the next n files' worth of what requests wait for: writing their files down, dropping them, letting them
// go again. more: call it again at once.
func (q *Queue) Work(ctx context.Context, n int) (more bool, err error) { return false, errSoon }

// Destinations are the sites that files wait for.
func (q *Queue) Destinations(ctx context.Context) ([]string, error) { return nil, errSoon }

// Waiting are the files whose turn it is, by share, priority, turn of the request, and age.
func (q *Queue) Waiting(ctx context.Context, w Want) ([]Candidate, error) { return nil, errSoon }

// Take makes leases of choices. A choice whose file cannot be had any more is left out. URL, Token and Pin of ends are the caller's to fill in.
func (q *Queue) Take(ctx context.Context, choices []Choice) ([]transfer.Lease, error) {
	return nil, errSoon
}

// Renew writes down how far movers are and extends their leases. gone are the items that their holders shall let go: cancelled, or leased anew.
func (q *Queue) Renew(ctx context.Context, p []transfer.Progress) (gone []int64, err error) {
	return nil, errSoon
}

// Report writes attempts down and does what follows from them.
func (q *Queue) Report(ctx context.Context, o []transfer.Outcome) ([]Change, error) {
	return nil, errSoon
}

// Expire does what the clock demands. Call it every second or so. Leases that are newly or still missing are returned.
func (q *Queue) Expire(ctx context.Context) ([]Missing, []Change, error) { return nil, nil, errSoon }

// Get is a request as it stands.
func (q *Queue) Get(ctx context.Context, id int64) (transfer.Request, error) {
	return transfer.Request{}, errSoon
}

// List are requests, the latest first.
func (q *Queue) List(ctx context.Context, f Filter) ([]transfer.Request, error) { return nil, errSoon }

// Items is a page of the files of a request after an item's id (0: the first), those in one state or ("") all. next is 0 at the end.
func (q *Queue) Items(ctx context.Context, id int64, state transfer.State, after int64, n int) (items []transfer.Item, next int64, err error) {
	return nil, 0, errSoon
}

// Item is one file and its request's id.
func (q *Queue) Item(ctx context.Context, item int64) (transfer.Item, int64, error) {
	return transfer.Item{}, 0, errSoon
}

// Find is the file of that name in a request.
func (q *Queue) Find(ctx context.Context, request int64, name string) (transfer.Item, error) {
	return transfer.Item{}, errSoon
}

// Attempts are those at one item, the oldest first.
func (q *Queue) Attempts(ctx context.Context, item int64) ([]transfer.Attempt, error) {
	return nil, errSoon
}

// RequestAttempts is a page of the attempts of a request, in the order of items; after is the last seen of the page before.
func (q *Queue) RequestAttempts(ctx context.Context, id int64, after transfer.Attempt, n int) ([]transfer.Attempt, error) {
	return nil, errSoon
}

// Since are attempts that ended after a time, the oldest first, for what learns from them.
func (q *Queue) Since(ctx context.Context, after time.Time, n int) ([]transfer.Attempt, error) {
	return nil, errSoon
}

// Links counts what is queued and active on each way, and how the attempts since a time went. Limit and Why are the scheduler's.
func (q *Queue) Links(ctx context.Context, since time.Time) ([]transfer.Link, error) {
	return nil, errSoon
}

// Leases are all that are held, for the page and for a coordinator that starts again.
func (q *Queue) Leases(ctx context.Context) ([]transfer.Lease, error) { return nil, errSoon }

// Manifest is what a request came to. All are its files, from the database as they are asked for; the digest is that of all.
func (q *Queue) Manifest(ctx context.Context, id int64) (transfer.Manifest, error) {
	return transfer.Manifest{}, errSoon
}

// All are the files of a request, read page by page.
func (q *Queue) All(ctx context.Context, id int64) iter.Seq2[transfer.Item, error] { return nil }

// Events are those after an id, the oldest first, at most n. Last is the newest id.
func (q *Queue) Events(ctx context.Context, after int64, n int) ([]Event, error) { return nil, errSoon }
