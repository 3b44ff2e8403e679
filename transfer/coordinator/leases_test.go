package coordinator

import (
	"context"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"weir/internal/require"
	"weir/internal/tier"
	"weir/internal/wire"
	"weir/transfer"
	"weir/transfer/access"
	"weir/transfer/queue"
	"weir/transfer/transfertest"
)

// A lost response is sent again with the same epochs, since nothing else was decided.
func TestLostAnswersAreGivenAgain(t *testing.T) {
	t.Parallel()
	h := start(t, Config{})
	_, b, _ := h.pair(3)
	first := b.WaitWork()
	b.Holding = map[int64]transfer.Lease{} // the response was lost
	second := b.WaitWork()
	if len(first) != len(second) || first[0].Item != second[0].Item || first[0].Epoch != second[0].Epoch {
		t.Errorf("%+v, then %+v", first, second)
	}
}

// An outcome is applied once, even if it is reported several times.
func TestReportsAreTakenOnce(t *testing.T) {
	t.Parallel()
	h := start(t, Config{})
	_, b, q := h.pair(3)
	var all []transfer.Outcome
	for len(all) < 3 {
		for _, l := range b.WaitWork() {
			all = append(all, transfertest.Verified(l))
		}
	}
	for range 3 {
		if _, err := b.Report(all...); err != nil {
			t.Fatal(err)
		}
	}
	q = h.WaitEnd(q.ID)
	if q.Status != transfer.Completed || q.Count.Attempts != 3 || q.Count.Done != 3 {
		t.Errorf("%+v", q)
	}
	attempts, err := h.Client.Attempts(t.Context(), q.ID, 0, 0)
	if err != nil || len(attempts) != 3 {
		t.Errorf("%d attempts, %v", len(attempts), err)
	}
}

// A restarted coordinator continues its work. Agents keep the leases that they hold, and their
// reports are applied. Files whose leases the agents no longer hold are dispatched again.
func TestLeasesSurviveARestart(t *testing.T) {
	t.Parallel()
	h := start(t, Config{})
	a, b, q := h.pair(4)
	leases := map[int64]transfer.Lease{}
	for len(leases) < 4 {
		for _, l := range b.WaitWork() {
			leases[l.Item] = l
		}
	}
	h.End()
	h.Begin()
	a.Client, b.Client = h.As("agent A", access.AgentOf+"A"), h.As("agent B", access.AgentOf+"B")
	if _, err := b.Report(); wire.Status(err) != http.StatusGone {
		t.Fatalf("an agent that is not known: %v", err)
	}
	var lost transfer.Lease
	for _, l := range leases {
		lost = l
	}
	delete(b.Holding, lost.Item) // the agent has lost a lease
	a.Register("https://127.0.0.1:1/")
	b.Register("")
	var all []transfer.Outcome
	for item, l := range leases {
		if item != lost.Item {
			all = append(all, transfertest.Verified(l))
		}
	}
	if _, err := b.Report(all...); err != nil {
		t.Fatal(err)
	}
	until(t, "what was lost goes again", func() bool { // its pause has ended
		for _, l := range b.Work().Leases {
			if l.Item != lost.Item || l.Epoch <= lost.Epoch {
				t.Errorf("%+v after %+v", l, lost)
			}
			if _, err := b.Report(transfertest.Verified(l)); err != nil {
				t.Fatal(err)
			}
		}
		q, _ = h.Client.Request(t.Context(), q.ID)
		return q.Status.Ended()
	})
	if q.Status != transfer.Completed || q.Count.Done != 4 || q.Count.Attempts != 5 {
		t.Errorf("%+v", q)
	}
}

// A cancellation reaches running copies at the latest with the next report.
func TestCancelReachesTheMover(t *testing.T) {
	t.Parallel()
	h := start(t, Config{})
	_, b, q := h.pair(2)
	leases := b.WaitWork()
	if _, err := h.Client.Cancel(t.Context(), q.ID, "not needed"); err != nil {
		t.Fatal(err)
	}
	ack, err := b.Report()
	if err != nil || len(ack.Cancel) < len(leases) || len(ack.Lost) > 0 {
		t.Fatalf("%+v, %v", ack, err)
	}
	var all []transfer.Outcome
	for _, l := range leases {
		all = append(all, transfer.Outcome{Item: l.Item, Epoch: l.Epoch, Fault: transfer.RequestCancelled, Reason: "cancelled"})
	}
	if _, err := b.Report(all...); err != nil {
		t.Fatal(err)
	}
	if q = h.WaitEnd(q.ID); q.Status != transfer.Cancelled || q.Count.Cancelled != 2 {
		t.Errorf("%+v", q)
	}
}

// Cancelled files whose leases never reached the agent end with the agent's next poll, and not when
// the leases expire.
func TestCancelOfWhatNeverCame(t *testing.T) {
	t.Parallel()
	h := start(t, Config{Lease: time.Hour})
	_, b, q := h.pair(2)
	leases := b.WaitWork()
	b.Holding = map[int64]transfer.Lease{} // the response was lost
	if _, err := h.Client.Cancel(t.Context(), q.ID, "not needed"); err != nil {
		t.Fatal(err)
	}
	if w := b.Work(); len(w.Leases) > 0 {
		t.Errorf("%+v are given after the cancellation of %+v", w, leases)
	}
	if q = h.WaitEnd(q.ID); q.Status != transfer.Cancelled || q.Count.Cancelled != 2 {
		t.Errorf("%+v", q)
	}
}

// A site whose agent deregisters is down at once. Leases that the agent does not hold are
// dispatched again as soon as an agent registers, and count as no attempts.
func TestGoodbye(t *testing.T) {
	t.Parallel()
	h := start(t, Config{Lease: time.Hour})
	_, b, q := h.pair(3)
	var leases []transfer.Lease
	for len(leases) < 3 {
		leases = append(leases, b.WaitWork()...)
	}
	keeps := transfer.LeaseID{Item: leases[0].Item, Epoch: leases[0].Epoch} // its outcome could not be reported
	if err := b.Client.Deregister(t.Context(), transfer.Deregister{Site: "B", Session: b.Session,
		Holding: []transfer.LeaseID{keeps}}); err != nil {
		t.Fatal(err)
	}
	sites, err := h.Client.Sites(t.Context())
	if err != nil || len(sites) != 2 || sites[1].Up || !strings.Contains(sites[1].Problem, "its agent was stopped at 2") {
		t.Errorf("%+v, %v", sites, err)
	}
	if q, err = h.Client.Request(t.Context(), q.ID); err != nil || q.Count.Leased != 1 || q.Count.Queued+q.Count.NoSource != 2 {
		t.Errorf("%+v, %v", q, err)
	}
	if _, err := b.Report(); wire.Status(err) != http.StatusGone {
		t.Errorf("it tells more after its goodbye: %v", err)
	}
	next := h.FakeAgent("B")
	next.Session, next.Holding = "two", map[int64]transfer.Lease{leases[0].Item: leases[0]}
	next.Register("")
	for len(next.Holding) < 3 {
		next.WaitWork()
	}
	items, err := h.Client.Items(t.Context(), q.ID, transfer.Leased, 0, 0)
	if err != nil || len(items) != 3 || items[0].Tries+items[1].Tries+items[2].Tries > 0 {
		t.Errorf("%+v, %v", items, err)
	}
	if l := next.Holding[leases[0].Item]; l.Epoch != leases[0].Epoch {
		t.Errorf("what it held was given anew: %+v", l)
	}
}

// If two agents of one site register, the later agent is accepted, and requests of the earlier
// agent are refused.
func TestTwoAgentsOfOneSite(t *testing.T) {
	t.Parallel()
	h := start(t, Config{})
	_, b, _ := h.pair(1)
	leases := b.WaitWork()
	other := h.FakeAgent("B")
	other.Session = "two"
	other.Register("")
	if _, err := b.Report(transfertest.Verified(leases[0])); wire.Status(err) != http.StatusGone {
		t.Errorf("the first one reports: %v", err)
	}
	_, err := b.Client.Register(t.Context(), transfer.Register{Site: "B", Session: b.Session, Slots: 1})
	if wire.Status(err) != http.StatusConflict || !strings.Contains(err.Error(), "there can be only one") {
		t.Errorf("the first one comes again: %v", err)
	}
	if again := other.WaitWork(); again[0].Epoch <= leases[0].Epoch {
		t.Errorf("%+v after %+v", again[0], leases[0])
	}
}

// An agent that was replaced by another agent of its site returns when the other agent is gone. A
// user who has started a second agent by mistake only has to end it.
func TestTheOtherAgentGoes(t *testing.T) {
	t.Parallel()
	var later atomic.Int64
	h := start(t, Config{Now: func() time.Time { return time.Now().Add(time.Duration(later.Load())) }})
	first, other := h.FakeAgent("A"), h.FakeAgent("A")
	other.Session = "two"
	first.Register("")
	other.Register("")
	comes := func() error {
		_, err := first.Client.Register(t.Context(), transfer.Register{Site: "A", Session: first.Session, Slots: 1})
		return err
	}
	if err := comes(); wire.Status(err) != http.StatusConflict {
		t.Error(err)
	}
	later.Add(int64(16 * time.Second))
	if err := comes(); err != nil {
		t.Error(err)
	}
	if _, err := other.Client.Register(t.Context(), transfer.Register{Site: "A", Session: other.Session,
		Slots: 1}); wire.Status(err) != http.StatusConflict {
		t.Errorf("the other one comes again: %v", err)
	}
}

// An agent that was silent is up again when it polls for work, even if it cannot report its free
// space.
func TestSilentAgentComesBack(t *testing.T) {
	tier.Slow(t, "waits for time limits")
	t.Parallel()
	var later atomic.Int64
	h := start(t, Config{Now: func() time.Time { return time.Now().Add(time.Duration(later.Load())) }})
	r := h.FakeAgent("A")
	ask := transfer.PollRequest{Site: "A", Session: r.Session, Slots: 1, Free: -1}
	if _, err := r.Client.Register(t.Context(), transfer.Register{Site: "A", Session: r.Session, Slots: 1, Free: -1}); err != nil {
		t.Fatal(err)
	}
	up := func() bool {
		s, err := h.catalog.Site(t.Context(), "A")
		require.NoError(t, err)
		return s.Up
	}
	later.Add(int64(16 * time.Second))
	if err := h.registry.Watch(t.Context()); err != nil || up() {
		t.Fatalf("a silent agent is up: %v", err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	go func() { _, _ = r.Client.Work(ctx, ask) }() // the poll waits, because there is no work
	until(t, "the site to be up", up)
}

// An agent acts for its own site only, also in reports about copies.
func TestAgentsSpeakForThemselves(t *testing.T) {
	t.Parallel()
	h := start(t, Config{})
	a, b, q := h.pair(1)
	l := b.WaitWork()[0]
	if _, err := a.Report(transfertest.Verified(l)); err != nil {
		t.Fatal(err)
	}
	if q, err := h.Client.Request(t.Context(), q.ID); err != nil || q.Status.Ended() {
		t.Errorf("another site's agent has ended it: %+v, %v", q, err)
	}
	if ack, err := b.Report(); err != nil || len(ack.Lost)+len(ack.Cancel) > 0 {
		t.Errorf("another site's agent has aborted it: %+v, %v", ack, err)
	}
	_, err := a.Client.Register(t.Context(), transfer.Register{Site: "B", Session: "x"})
	if wire.Status(err) != http.StatusForbidden || !strings.Contains(err.Error(), "role agent:B") {
		t.Errorf("A says it is B: %v", err)
	}
	out := transfertest.Verified(l)
	out.End, out.Begin = time.Now().Add(1000*time.Hour), time.Time{}
	out.Reason, out.Moved, out.CPU = strings.Repeat("\x1b[2Jü", 1000), -5, -1
	if _, err := b.Report(out); err != nil {
		t.Fatal(err)
	}
	attempts, err := h.Client.Attempts(t.Context(), q.ID, 0, 0)
	if err != nil || len(attempts) != 1 || attempts[0].End.After(time.Now()) || len(attempts[0].Reason) > 1100 ||
		strings.Contains(attempts[0].Reason, "\x1b") {
		t.Errorf("%+v, %v", attempts, err)
	}
}

// A lease that the database granted while the connection to it was lost, so that no agent received
// it, is taken back at once instead of after its minute.
func TestLeasesThatNobodyWasToldOf(t *testing.T) {
	t.Parallel()
	h := start(t, Config{})
	_, b, q := h.pair(3)
	var waiting []queue.Candidate
	until(t, "files wait", func() (ok bool) {
		var err error
		waiting, err = h.queue.Waiting(t.Context(), queue.Want{Dest: "B", N: 10})
		return err == nil && len(waiting) == 3
	})
	lost, err := h.queue.Take(t.Context(), []queue.Choice{{Item: waiting[0].ID, Source: "A", Mode: transfer.Pull}})
	if err != nil || len(lost) != 1 {
		t.Fatalf("%+v, %v", lost, err)
	}
	h.uncertain.Store(true)
	for q.Count.Done < 3 {
		for _, l := range b.WaitWork() {
			if _, err := b.Report(transfertest.Verified(l)); err != nil {
				t.Fatal(err)
			}
		}
		if q, err = h.Client.Request(t.Context(), q.ID); err != nil {
			t.Fatal(err)
		}
	}
	tries, err := h.queue.Read.Attempts(t.Context(), lost[0].Item)
	if err != nil || len(tries) != 2 || tries[0].Fault != transfer.MoverStopped || tries[0].Epoch != lost[0].Epoch || tries[1].Fault != "" {
		t.Errorf("%+v, %v", tries, err)
	}
	if h.uncertain.Load() || q.Count.Attempts != 4 {
		t.Errorf("after it: %+v", q)
	}
}

// An agent is refused if its root differs from the previous root of its site: its storage is not
// mounted, or it was started by mistake. A new root must be confirmed by a user.
func TestAnotherRootIsRefused(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, conf Config) {
		h := start(t, conf)
		b := h.FakeAgent("B")
		register := func(session, root string, isNew bool) error {
			_, err := b.Client.Register(t.Context(), transfer.Register{Site: "B", Session: session, Slots: 4, Free: 1 << 40, Root: root,
				NewRoot: isNew})
			return err
		}
		require.NoError(t, register("one", "r1", false))
		if err := register("two", "r2", false); wire.Status(err) != http.StatusConflict || !strings.Contains(err.Error(), "another agent runs") {
			t.Errorf("while the first one runs: %v", err)
		}
		h.Register("/d", "B", 2, 10)
		require.NoError(t, b.Client.Deregister(t.Context(), transfer.Deregister{Site: "B", Session: "one"}))
		until(t, "it has gone", func() bool { // or it is silent for long enough
			err := register("two", "r2", false)
			return wire.Status(err) == http.StatusConflict && strings.Contains(err.Error(), "mounted")
		})
		if err := register("three", "r1", false); err != nil {
			t.Errorf("the right one: %v", err)
		}
		require.NoError(t, b.Client.Deregister(t.Context(), transfer.Deregister{Site: "B", Session: "three"}))
		until(t, "a new root is taken", func() bool { return register("four", "r2", true) == nil })
		if err := register("four", "r2", false); err != nil {
			t.Errorf("it is the site's now: %v", err)
		}
	})
}
