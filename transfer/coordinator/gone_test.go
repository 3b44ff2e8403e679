package coordinator

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"weir/internal/db"
	"weir/internal/require"
	"weir/internal/tier"
	"weir/internal/wire"
	"weir/transfer"
	"weir/transfer/notify"
	"weir/transfer/transfertest"
)

// If the database is lost but the keys are not, the coordinator logs that it starts with an empty
// database. It does not log this at its first start.
func TestTheDatabaseIsGone(t *testing.T) {
	tier.Slow(t, "waits for time limits")
	t.Parallel()
	_, said, log := newWall(t)
	h := start(t, Config{Log: log})
	const text = "the state folder has keys but no database"
	if n := said.count(text); n != 0 {
		t.Errorf("said at the first start: %d", n)
	}
	h.End()
	for _, name := range []string{"weir.db", "weir.db-wal", "weir.db-shm"} {
		if err := os.Remove(filepath.Join(h.conf.State, name)); err != nil && !os.IsNotExist(err) {
			t.Fatal(err)
		}
	}
	h.Begin()
	if n := said.count(text); n != 1 {
		t.Errorf("said %d times", n)
	}
}

// Files that are at their destination according to the catalog wait until its agent has checked
// them. If the destination is down, the explanation reports this, although another site has the
// files.
func TestExplainADestinationThatIsDown(t *testing.T) {
	t.Parallel()
	h := start(t, Config{})
	a, b := h.FakeAgent("A"), h.FakeAgent("B")
	a.Register("https://127.0.0.1:1/")
	b.Register("")
	h.Register("/store/run1", "A", 2, 1000)
	h.Register("/store/run1", "B", 2, 1000)
	require.NoError(t, b.Client.Deregister(t.Context(), transfer.Deregister{Site: "B", Session: b.Session}))
	q, err := h.Client.Submit(t.Context(), transfer.Submission{Dataset: "/store/run1", To: "B", Approve: true})
	require.NoError(t, err)
	until(t, "it is said", func() bool {
		e, err := h.Client.Explain(t.Context(), q.ID, "")
		return err == nil && len(e.Reasons) == 1 && strings.HasPrefix(e.Reasons[0].Text, "Its destination B is down: its agent was stopped")
	})
}

// Refusals describe the error once.
func TestRefusalsAreSentences(t *testing.T) {
	t.Parallel()
	h := start(t, Config{})
	_, _, q := h.pair(1)
	_, err := h.Client.Request(t.Context(), q.ID+1)
	_, err2 := h.Client.Dataset(t.Context(), "/store/none")
	_, err3 := h.Client.Submit(t.Context(), transfer.Submission{Dataset: "/store/run1", To: "Q"})
	for want, err := range map[string]error{"there is no request 2": err, `there is no dataset "/store/none"`: err2,
		`there is no site "Q"`: err3} {
		if err == nil || err.Error() != want || wire.Status(err) != 404 {
			t.Errorf("%q, want %q", err, want)
		}
	}
}

// A request that was removed before its end was notified, as after a long time without a
// coordinator, does not delay the notifications of other requests.
func TestForgottenRequestsAreNotNotified(t *testing.T) {
	t.Parallel()
	h := start(t, Config{Notify: []notify.Target{{Name: "hook", Command: []string{"true"}, On: []transfer.Status{transfer.Completed}}}})
	_, b, q := h.pair(1)
	if _, err := b.Report(transfertest.Verified(b.WaitWork()[0])); err != nil {
		t.Fatal(err)
	}
	h.WaitEnd(q.ID)
	require.NoError(t, h.db.Exec(t.Context(), "DELETE FROM request WHERE id = ?", q.ID))
	require.NoError(t, h.db.Exec(t.Context(), "UPDATE notified SET event = 0"))
	until(t, "the events have been read", func() bool {
		last, err := db.Select(t.Context(), h.db, db.Value[int64], "SELECT event FROM notified")
		require.NoError(t, err)
		return last[0] > 0
	})
}
