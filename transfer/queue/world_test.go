package queue

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"weir/internal/db"
	"weir/transfer"
	"weir/transfer/catalog/store"
)

// A world is a queue with a catalog and a clock that is moved by tests.
type world struct {
	*Queue
	t     testing.TB
	ctx   context.Context
	db    *db.DB
	store *store.Store

	mu  sync.Mutex
	now time.Time
}

var start = time.Date(2026, 11, 22, 12, 0, 0, 0, time.UTC)

func newWorld(t testing.TB, d *db.DB, o Options) *world {
	t.Helper()
	w := &world{t: t, ctx: t.Context(), db: d, now: start}
	o.Now = w.clock
	if o.Rand == nil {
		o.Rand = func() float64 { return 0.5 }
	}
	var err error
	w.store, err = store.Open(w.ctx, d)
	w.must(err)
	q, err := Open(w.ctx, d, o)
	w.must(err)
	w.Queue = q
	return w
}

func (w *world) clock() time.Time {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.now
}

// pass moves the clock and runs the operations that are due.
func (w *world) pass(d time.Duration) ([]ExpiredLease, []Change) {
	w.t.Helper()
	w.mu.Lock()
	w.now = w.now.Add(d)
	w.mu.Unlock()
	missing, changes, err := w.Expire(w.ctx)
	w.must(err)
	return missing, changes
}

func (w *world) must(err error) {
	w.t.Helper()
	if err != nil {
		w.t.Fatal(err)
	}
}

// work does all work that is waiting.
func (w *world) work() {
	w.t.Helper()
	for more := true; more; {
		var err error
		more, err = w.Work(w.ctx, 100)
		w.must(err)
	}
}

func (w *world) submit(s transfer.Submission) transfer.Request {
	w.t.Helper()
	s.Approve = true
	r, err := w.Submit(w.ctx, "alice", s)
	w.must(err)
	w.work()
	return w.get(r.ID)
}

func (w *world) get(id int64) transfer.Request {
	w.t.Helper()
	r, err := w.Read.Get(w.ctx, id)
	w.must(err)
	return r
}

func (w *world) waiting(dest string, n int, busy ...string) []Candidate {
	w.t.Helper()
	c, err := w.Waiting(w.ctx, Want{Dest: dest, N: n, Busy: busy})
	w.must(err)
	return c
}

// lease leases all waiting files, each from its first replica.
func (w *world) lease(dest string, n int) []transfer.Lease {
	w.t.Helper()
	var choices []Choice
	for _, c := range w.waiting(dest, n) {
		choices = append(choices, Choice{Item: c.ID, Source: c.Replicas[0].Site, Mode: modeOf(c)})
	}
	l, err := w.Take(w.ctx, choices)
	w.must(err)
	return l
}

// modeOf returns the mode for a candidate in these tests.
func modeOf(c Candidate) transfer.Mode {
	if c.Check {
		return transfer.Check
	}
	return transfer.Pull
}

func success(l transfer.Lease) transfer.Outcome {
	return transfer.Outcome{Existed: l.Mode == transfer.Check, Item: l.Item, Epoch: l.Epoch, Size: l.Size, Adler: l.Adler, Verified: true,
		Moved: l.Size, Begin: start, End: start.Add(time.Second)}
}

func failure(l transfer.Lease, f transfer.ErrorClass, reason string) transfer.Outcome {
	return transfer.Outcome{Item: l.Item, Epoch: l.Epoch, Fault: f, Reason: reason, Begin: start, End: start.Add(time.Second)}
}

func (w *world) report(o ...transfer.Outcome) []Change {
	w.t.Helper()
	c, err := w.Report(w.ctx, "", o)
	w.must(err)
	return c
}

func (w *world) item(id int64) transfer.Item {
	w.t.Helper()
	one, _, err := w.Read.Item(w.ctx, id)
	w.must(err)
	return one
}

func (w *world) all(id int64) []transfer.Item {
	w.t.Helper()
	var all []transfer.Item
	for one, err := range w.Read.All(w.ctx, id) {
		w.must(err)
		all = append(all, one)
	}
	return all
}

// audit checks the database against the invariants.
func (w *world) audit() {
	w.t.Helper()
	w.must(w.db.Read(w.ctx, func(tx *db.Tx) error {
		requests, err := db.All(tx, scanRequest, "SELECT "+requestColumns+" FROM request")
		if err != nil {
			return err
		}
		files, err := db.All(tx, scanFile, "SELECT "+fileColumns+" FROM item ORDER BY id")
		if err != nil {
			return err
		}
		held, err := db.All(tx, scanLease, "SELECT "+leaseColumns+" FROM lease")
		if err != nil {
			return err
		}
		sourceGroups, err := db.All(tx, scanSourceGroup, "SELECT "+sourceGroupColumns+" FROM lane")
		if err != nil {
			return err
		}
		attempts, err := db.All(tx, scanAttempt, "SELECT "+attemptColumns+" FROM attempt")
		if err != nil {
			return err
		}
		replicas, err := readReplicas(tx, files)
		if err != nil {
			return err
		}
		a := audit{requests: map[int64]*request{}, held: map[int64]*lease{}, sourceGroups: map[int64]*sourceGroup{},
			attempts: map[int64][]transfer.Attempt{}, replicas: replicas}
		for _, r := range requests {
			a.requests[r.ID] = r
		}
		for _, l := range held {
			a.held[l.item] = l
		}
		for _, l := range sourceGroups {
			a.sourceGroups[l.id] = l
		}
		for _, t := range attempts {
			a.attempts[t.Item] = append(a.attempts[t.Item], t)
		}
		return a.check(files)
	}))
}

type audit struct {
	requests     map[int64]*request
	held         map[int64]*lease
	sourceGroups map[int64]*sourceGroup
	attempts     map[int64][]transfer.Attempt
	replicas     map[int64][]replica
}

func (a audit) check(files []*file) error {
	var wrong []string
	bad := func(format string, args ...any) { wrong = append(wrong, fmt.Sprintf(format, args...)) }
	counted := map[int64]*request{}
	waits := map[int64]int64{}
	for id := range a.requests {
		counted[id] = &request{}
	}
	leasedN := 0
	for _, f := range files {
		r := a.requests[f.request]
		if r == nil {
			bad("file %d has no request", f.id)
			continue
		}
		counted[f.request].count(f, 1)
		if f.state == ready {
			waits[f.sourceGroup]++
			if l := a.sourceGroups[f.sourceGroup]; l == nil || l.request != f.request || l.sites == "" {
				bad("file %d is ready in lane %d, which is not one of its request", f.id, f.sourceGroup)
			}
		}
		l := a.held[f.id]
		if (f.state == leased) != (l != nil) || l != nil && l.epoch != f.epoch {
			bad("file %d has state %d, epoch %d and lease %v", f.id, f.state, f.epoch, l)
		}
		first := int64(0)
		for _, t := range a.attempts[f.id] {
			if t.Epoch > f.epoch || t.Epoch < 1 {
				bad("file %d of epoch %d has an attempt of epoch %d", f.id, f.epoch, t.Epoch)
			}
			if !t.Late {
				first++
			}
		}
		if l != nil {
			first++
			leasedN++
		}
		if first != f.epoch {
			bad("file %d has epoch %d and %d attempts and leases", f.id, f.epoch, first)
		}
		counted[f.request].Count.Attempts += first
		if l != nil {
			counted[f.request].Count.Attempts--
		}
		if (f.state == done || f.state == skipped) && !r.Unchecked && r.Job == "" &&
			!slices.ContainsFunc(a.replicas[f.in], func(o replica) bool { return o.site == r.To && !o.verified.IsZero() }) {
			bad("file %d is done, and %s is not known to have it", f.id, r.To)
		}
		if f.state.final() == f.ended.IsZero() || (f.state == failed) && f.reason == "" {
			bad("file %d: state %d, ended %v, reason %q", f.id, f.state, f.ended, f.reason)
		}
		if f.tries > r.Tries || f.state != failed && f.tries == r.Tries && !f.state.final() && f.state != leased {
			bad("file %d has %d tries of %d in state %d", f.id, f.tries, r.Tries, f.state)
		}
		if f.state == resting && f.due.IsZero() {
			bad("file %d rests for ever", f.id)
		}
	}
	if leasedN != len(a.held) {
		bad("%d leases for %d leased files", len(a.held), leasedN)
	}
	for id, r := range a.requests {
		want := counted[id]
		want.Count.Queued = want.ready + want.resting
		if r.Count != want.Count || r.ready != want.ready || r.resting != want.resting {
			bad("request %d is counted as %+v, but is %+v", id, r.Count, want.Count)
		}
		c := r.Count
		if sum := c.Queued + c.Leased + c.Done + c.Skipped + c.Failed + c.Cancelled; sum != c.Files {
			bad("request %d has %d files and %d counted", id, c.Files, sum)
		}
		if all := c.Files > 0 && c.Done+c.Skipped == c.Files && r.resolved; all && r.work == "" != (r.Status == transfer.Completed) {
			bad("request %d is %s with %d of %d files there", id, r.Status, c.Done+c.Skipped, c.Files)
		} else if !all && r.Status == transfer.Completed {
			bad("request %d is completed with %d of %d files there", id, c.Done+c.Skipped, c.Files)
		}
		if r.Status.Ended() == r.Ended.IsZero() || r.Status.Ended() && (c.Queued+c.Leased > 0 || r.work != "") || r.settled() {
			bad("request %d is %s, ended %v, with %d queued, %d leased, work %q", id, r.Status, r.Ended, c.Queued, c.Leased, r.work)
		}
	}
	for id, l := range a.sourceGroups {
		if l.ready != waits[id] {
			bad("lane %d is counted as %d ready, but has %d", id, l.ready, waits[id])
		}
	}
	if len(wrong) > 0 {
		return errors.New(strings.Join(wrong, "\n"))
	}
	return nil
}

func (s state) final() bool { return s >= done }

// Manifest returns the data that the coordinator's clients read page by page.
func (q *Queue) Manifest(ctx context.Context, id int64) (m transfer.Manifest, err error) {
	if m.Request, err = q.Read.Get(ctx, id); err != nil {
		return m, err
	}
	sum := transfer.NewManifestHash()
	for one, err := range q.Read.All(ctx, id) {
		if err != nil {
			return m, err
		}
		m.Items = append(m.Items, one)
		sum.Add(one)
	}
	m.Digest = sum.Digest()
	return m, nil
}
