package agent

import (
	"errors"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"weir/internal/require"
	"weir/internal/tier"
	"weir/internal/wire"
	"weir/transfer"
)

// An agent pulls a file from another agent's endpoint with a token for just that file, reports the
// outcome once, with the coordinator's clock, and samples its host.
func TestPullThroughADoor(t *testing.T) {
	t.Parallel()
	b := newBoss(t)
	from, to := b.runs("A", t.TempDir()), b.runs("B", t.TempDir())
	l := b.lease(from, to, 1, 1, large(1<<20))
	b.gives("B", transfer.Work{Leases: []transfer.Lease{l}})
	out, _ := b.ended(1, 1)
	if out.Fault != "" || !out.Verified || out.Moved != l.Size || out.Adler != l.Adler {
		t.Errorf("%+v", out)
	}
	if ahead := time.Until(out.End); ahead < 55*time.Minute || ahead > time.Hour {
		t.Errorf("the coordinator's clock is an hour ahead, the outcome %v", ahead)
	}
	to.has(t, 1, large(1<<20))
	require.Eventually(t, "samples", func() bool {
		b.mu.Lock()
		defer b.mu.Unlock()
		for _, r := range b.reports {
			for _, s := range r.Samples {
				if s.Cores > 0 && s.Total > 0 && s.OwnMemory > 0 && s.Seconds > 0 {
					return true
				}
			}
		}
		return false
	})
	if err := to.stop(); err != nil {
		t.Error(err)
	}
	if _, told := b.ended(1, 1); told != 1 {
		t.Errorf("the outcome was told %d times", told)
	}
}

// The coordinator's clock is set: the agent notices it in the next response, and follows it from
// then on. It requests the time only if the deviation is large.
func TestTheCoordinatorsClockIsSet(t *testing.T) {
	tier.Slow(t, "waits for time limits")
	t.Parallel()
	b := newBoss(t)
	s := b.runs("A", t.TempDir())
	asked := func() int {
		b.mu.Lock()
		defer b.mu.Unlock()
		return b.asked
	}
	require.Eventually(t, "a report", func() bool {
		b.mu.Lock()
		defer b.mu.Unlock()
		return len(b.reports) > 2
	})
	if n := asked(); n > 2*questions {
		t.Errorf("it asked %d times what time it is", n)
	}
	for _, ahead := range []time.Duration{6 * time.Hour, -6 * time.Hour} {
		b.set(func() { b.ahead = ahead })
		require.Eventually(t, "the new time", func() bool {
			return (time.Until(s.clock.now()) - ahead).Abs() < time.Minute
		})
	}
}

// Duplicate leases, lost responses and a forgotten registration change nothing: a file is copied
// once, and its outcome is reported until it is acknowledged.
func TestDuplicatesAndLostAnswers(t *testing.T) {
	t.Parallel()
	b := newBoss(t)
	from, to := b.runs("A", t.TempDir()), b.runs("B", t.TempDir())
	l := b.lease(from, to, 1, 1, "one")
	b.set(func() { b.deaf = true })
	b.gives("B", transfer.Work{Leases: []transfer.Lease{l, l}})
	require.Eventually(t, "the outcome to be told again", func() bool { _, told := b.ended(1, 1); return told > 1 })
	b.gives("B", transfer.Work{Leases: []transfer.Lease{l}})
	b.set(func() { b.deaf, b.forget = false, true })
	require.Eventually(t, "all to be known", func() bool { all, _ := to.activity.holding(); return len(all) == 0 })
	b.mu.Lock()
	defer b.mu.Unlock()
	moved := map[int64]bool{}
	for _, o := range b.outcomes {
		moved[o.Moved] = true
		if o.Fault != "" {
			t.Errorf("%+v", o)
		}
	}
	if len(moved) != 1 {
		t.Errorf("the outcomes differ: %v", b.outcomes)
	}
}

// While the coordinator is unavailable copies continue; their outcomes are reported when it is
// back, also by the next process.
func TestCoordinatorAway(t *testing.T) {
	t.Parallel()
	b := newBoss(t)
	from, to := b.runs("A", t.TempDir()), b.runs("B", t.TempDir())
	one, two := b.lease(from, to, 1, 1, large(1<<16)), b.lease(from, to, 2, 1, large(1<<16))
	b.gives("B", transfer.Work{Leases: []transfer.Lease{one, two}})
	require.Eventually(t, "the orders", func() bool { all, _ := to.activity.holding(); return len(all) == 2 || len(b.outcomesOf()) > 0 })
	b.set(func() { b.away = true })
	require.Eventually(t, "the files", func() bool { all, _ := filepath.Glob(filepath.Join(to.root, "store/f?")); return len(all) == 2 })
	require.NoError(t, to.stop())
	again := b.runs("B", to.root)
	b.set(func() { b.away = false })
	for item := range int64(2) {
		if out, _ := b.ended(item+1, 1); out.Fault != "" || !out.Verified {
			t.Errorf("%+v", out)
		}
	}
	require.Eventually(t, "all to be known", func() bool { all, _ := again.activity.holding(); return len(all) == 0 })
}

func (b *boss) outcomesOf() []transfer.Outcome {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.outcomes
}

// An attempt begun by a killed process is reported by the next process: as done if the file is at
// its destination, otherwise to be tried again.
func TestRecall(t *testing.T) {
	t.Parallel()
	b := newBoss(t)
	from := b.runs("A", t.TempDir())
	to := &site{Agent: &Agent{o: Options{Site: "B"}}, root: t.TempDir()}
	done, not := b.lease(from, to, 1, 1, "done"), b.lease(from, to, 2, 1, "not done")
	wrong := b.lease(from, to, 3, 1, "wrong")
	state := filepath.Join(to.root, stateName)
	if err := errors.Join(os.MkdirAll(state, 0o700), os.MkdirAll(filepath.Join(to.root, "store"), 0o700),
		os.WriteFile(filepath.Join(to.root, "store/f1"), []byte("done"), 0o600),
		os.WriteFile(filepath.Join(to.root, "store/f3"), []byte("WRONG"), 0o600)); err != nil {
		t.Fatal(err)
	}
	j, _ := opened(t, state) // the journal of the process that is killed now
	j.begin(done)
	j.begin(not)
	j.begin(wrong)
	closed(t, j)
	b.runs("B", to.root)
	if out, _ := b.ended(1, 1); out.Fault != "" || !out.Verified || out.Size != 4 {
		t.Errorf("%+v", out)
	}
	for _, item := range []int64{2, 3} {
		if out, _ := b.ended(item, 1); out.Fault != transfer.LeaseLost || !strings.Contains(out.Reason, "started again") {
			t.Errorf("%+v", out)
		}
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	if n := len(b.doors["B"].Holding); n != 3 {
		t.Errorf("the agent came in with %d attempts", n)
	}
}

// A cancellation ends running and waiting attempts.
func TestCancel(t *testing.T) {
	t.Parallel()
	b := newBoss(t)
	from, to := b.runs("A", t.TempDir()), b.runs("B", t.TempDir())
	hang := newHang(t)
	var leases []transfer.Lease
	var ids []transfer.LeaseID
	for item := int64(1); item <= 6; item++ { // four of them run at once
		l := b.lease(from, to, item, 1, "content")
		l.Source.URL = hang
		leases, ids = append(leases, l), append(ids, transfer.LeaseID{Item: item, Epoch: 1})
	}
	b.gives("B", transfer.Work{Leases: leases})
	require.Eventually(t, "the copies", func() bool { _, n := to.activity.movedBytes(); return n == 6 })
	begin := time.Now()
	b.set(func() { b.cancel = ids })
	for _, id := range ids {
		if out, _ := b.ended(id.Item, id.Epoch); out.Fault != transfer.RequestCancelled {
			t.Errorf("%+v", out)
		}
	}
	t.Logf("%v from the cancellation to the last outcome", time.Since(begin))
	if parts, _ := filepath.Glob(filepath.Join(to.root, ".weir", "*.part")); len(parts) > 0 {
		t.Errorf("%v are left", parts)
	}
}

// An agent that ends reports the outcomes of all its attempts, then its end; it sends nothing after
// that.
func TestGoodbye(t *testing.T) {
	t.Parallel()
	b := newBoss(t)
	from, to := b.runs("A", t.TempDir()), b.runs("B", t.TempDir())
	hang := newHang(t)
	var leases []transfer.Lease
	for item := int64(1); item <= 6; item++ { // four of them run at once
		l := b.lease(from, to, item, 1, "content")
		l.Source.URL = hang
		leases = append(leases, l)
	}
	b.gives("B", transfer.Work{Leases: leases})
	require.Eventually(t, "the copies", func() bool { _, n := to.activity.movedBytes(); return n == 6 })
	if err := to.stop(); err != nil {
		t.Error(err)
	}
	for _, l := range leases {
		if out, told := b.ended(l.Item, 1); out.Fault != transfer.MoverStopped || told != 1 || !strings.Contains(out.Reason, "was ended") {
			t.Errorf("%+v, told %d times", out, told)
		}
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	if len(b.byes) != 1 || b.byes[0].Site != "B" || b.byes[0].Session != b.doors["B"].Session || len(b.byes[0].Holding) > 0 {
		t.Errorf("%+v", b.byes)
	}
}

// An agent whose root was unmounted reports it, and does not fail the files; an agent that is
// started without the root does not begin.
func TestRootIsGone(t *testing.T) {
	t.Parallel()
	b := newBoss(t)
	from, root := b.runs("A", t.TempDir()), filepath.Join(t.TempDir(), "root")
	o := b.options("B", root)
	o.State = t.TempDir()
	require.NoError(t, os.Mkdir(root, 0o700))
	to := b.run(o)
	if err := errors.Join(os.Rename(root, root+".away"), os.Mkdir(root, 0o700)); err != nil { // as after umount -l
		t.Fatal(err)
	}
	l := b.lease(from, to, 1, 1, "content")
	b.gives("B", transfer.Work{Leases: []transfer.Lease{l}})
	if out, _ := b.ended(1, 1); out.Fault != transfer.Throttled || !strings.Contains(out.Reason, "is its storage mounted?") {
		t.Errorf("%+v", out)
	}
	if err := to.stop(); err != nil {
		t.Error(err)
	}
	if a, err := New(t.Context(), o); err == nil || !strings.Contains(err.Error(), "is its storage mounted?") {
		t.Errorf("%v, %v", a, err)
	}
}

// newHang returns the URL of a file that never comes.
func newHang(t *testing.T) string {
	t.Helper()
	b := newBoss(t)
	b.server.Config.Handler = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Length", "7")
		w.WriteHeader(http.StatusOK)
		_ = http.NewResponseController(w).Flush()
		<-r.Context().Done()
	})
	return b.server.URL + "/f"
}

// Files of the agent are not copied, and files outside the root are not copied either.
func TestOwnFilesStay(t *testing.T) {
	t.Parallel()
	b := newBoss(t)
	from, to := b.runs("A", t.TempDir()), b.runs("B", t.TempDir())
	for i, path := range []string{stateName + "/journal", ".weir/1.1.part", "x/.weir-serve-agent/y", "../out", "/etc/out"} {
		l := b.lease(from, to, int64(i+1), 1, "content")
		l.Dest.Path = path
		b.gives("B", transfer.Work{Leases: []transfer.Lease{l}})
		if out, _ := b.ended(l.Item, 1); out.Fault != transfer.Denied && out.Fault != transfer.Permanent {
			t.Errorf("%s: %+v", path, out)
		}
	}
}

// A later attempt at the same file ends an earlier attempt.
func TestNewerAttempt(t *testing.T) {
	t.Parallel()
	b := newBoss(t)
	from, to := b.runs("A", t.TempDir()), b.runs("B", t.TempDir())
	first := b.lease(from, to, 1, 1, "content")
	second := first
	second.Epoch = 2
	first.Source.URL = newHang(t)
	b.gives("B", transfer.Work{Leases: []transfer.Lease{first}})
	require.Eventually(t, "the copy", func() bool { _, n := to.activity.movedBytes(); return n == 1 })
	b.gives("B", transfer.Work{Leases: []transfer.Lease{second}})
	if out, _ := b.ended(1, 2); out.Fault != "" {
		t.Errorf("%+v", out)
	}
	if out, _ := b.ended(1, 1); out.Fault != transfer.LeaseLost {
		t.Errorf("%+v", out)
	}
	to.has(t, 1, "content")
}

// A root has only one agent.
func TestSecondAgent(t *testing.T) {
	t.Parallel()
	b := newBoss(t)
	first := b.runs("A", t.TempDir())
	if a, err := New(t.Context(), b.options("A", first.root)); !errors.Is(err, ErrTaken) {
		t.Errorf("%v, %v", a, err)
	}
	o := b.options("B", first.root)
	o.State = t.TempDir()
	if a, err := New(t.Context(), o); !errors.Is(err, ErrTaken) {
		t.Errorf("with another state: %v, %v", a, err)
	}
}

// An agent whose first registration is refused ends; after a successful registration it keeps
// trying.
func TestRefusal(t *testing.T) {
	t.Parallel()
	b := newBoss(t)
	b.set(func() { b.refuse = http.StatusForbidden })
	a, err := New(t.Context(), b.options("A", t.TempDir()))
	require.NoError(t, err)
	defer a.Close()
	if err := a.Run(t.Context()); wire.Status(err) != http.StatusForbidden || !strings.Contains(err.Error(), "site A") {
		t.Errorf("%v", err)
	}
}

// Without a token of the coordinator for just that file no file can be read.
func TestDoorIsShut(t *testing.T) {
	t.Parallel()
	b := newBoss(t)
	from, to := b.runs("A", t.TempDir()), b.runs("B", t.TempDir())
	l := b.lease(from, to, 1, 1, "secret")
	other := b.lease(from, to, 2, 1, "other")
	require.Eventually(t, "the agents", func() bool { b.mu.Lock(); defer b.mu.Unlock(); return len(b.doors) == 2 })
	for _, c := range []struct {
		path, token string
		status      int
	}{
		{"/store/f1", l.Source.Token, http.StatusOK},
		{"/store/f1", other.Source.Token, http.StatusForbidden},
		{"/store/f1", "", http.StatusUnauthorized},
		{"/" + stateName + "/journal", l.Source.Token, http.StatusNotFound},
		{"/../../etc/passwd", l.Source.Token, http.StatusBadRequest},
	} {
		req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, from.URL(), http.NoBody)
		require.NoError(t, err)
		req.URL.Path = c.path
		if c.token != "" {
			req.Header.Set("Authorization", "Bearer "+c.token)
		}
		res, err := http.DefaultClient.Do(req)
		require.NoError(t, err)
		_ = res.Body.Close()
		if res.StatusCode != c.status {
			t.Errorf("%s: %d, want %d", c.path, res.StatusCode, c.status)
		}
	}
}
