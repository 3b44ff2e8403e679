package coordinator

import (
	"path/filepath"
	"strings"
	"testing"

	"weir/internal/require"
	"weir/internal/tier"
	"weir/lab/dbtest"
	"weir/transfer"
	"weir/transfer/access"
	"weir/transfer/state"
	"weir/transfer/transfertest"
)

// A coordinator that moves to PostgreSQL and back while a request runs keeps its state: leases
// remain, ids continue, and tokens are valid.
func TestMoveDB(t *testing.T) {
	tier.Slow(t, "copies databases")
	t.Parallel()
	server := dbtest.Server(t)
	h := start(t, Config{Approve: -1})
	a, b, q := h.pair(30)
	if _, err := h.Client.AddSite(t.Context(), transfer.NewSite{Name: "X", URL: "https://127.0.0.1:1/", Token: "hush"}); err != nil {
		t.Fatal(err)
	}
	some := b.WaitWork()
	gone := transfertest.Verified(some[0])
	gone.Fault, gone.Reason = transfer.Permanent, "no"
	if _, err := b.Report(gone, transfertest.Verified(some[1])); err != nil {
		t.Fatal(err)
	}
	dir, back := h.conf.State, "sqlite:"+filepath.Join(t.TempDir(), "back.db")
	if _, err := state.MoveDB(t.Context(), dir, "", server, nil); err == nil || !strings.Contains(err.Error(), "end that first") {
		t.Errorf("while it runs: %v", err)
	}
	until(t, "it has been told of all its leases", func() bool { // leases that it has not received are given back
		now, err := h.Client.Request(t.Context(), q.ID)
		if err != nil || now.Count.Leased == int64(len(b.Holding)) {
			return err == nil
		}
		b.Work()
		return false
	})
	before, err := h.Client.Manifest(t.Context(), q.ID)
	require.NoError(t, err)
	for i, to := range []string{server, back} {
		from := []string{"", server}[i]
		h.End()
		all, err := state.MoveDB(t.Context(), dir, from, to, nil)
		if err != nil || len(all) < 10 {
			t.Fatalf("%v, %v", all, err)
		}
		if _, err := state.MoveDB(t.Context(), dir, from, to, nil); err == nil || !strings.Contains(err.Error(), "is not empty") {
			t.Errorf("once more: %v", err)
		}
		h.conf.DB = to
		h.Begin()
		a.Client, b.Client = h.As("agent A", access.AgentOf+"A"), h.As("agent B", access.AgentOf+"B") // with new tokens
		after, err := h.Client.Manifest(t.Context(), q.ID)
		if err != nil || after.Digest != before.Digest || after.Request.Count != before.Request.Count {
			t.Errorf("%+v is now %+v, %v", before.Request, after.Request, err)
		}
		a.Register("https://127.0.0.1:1/")
		b.Register("")
		secret := h.sites.Secrets("X").Token
		if secret != "hush" {
			t.Errorf("the secret of a site is %q", secret)
		}
		if ack, err := b.Report(); err != nil || len(ack.Lost)+len(ack.Cancel) > 0 {
			t.Errorf("its leases are not known: %+v, %v", ack, err)
		}
	}
	for q.Count.Failed+q.Count.Done < 30 {
		var all []transfer.Outcome
		for _, l := range b.Holding {
			all = append(all, transfertest.Verified(l))
		}
		if _, err := b.Report(all...); err != nil {
			t.Fatal(err)
		}
		if q, err = h.Client.Request(t.Context(), q.ID); err != nil {
			t.Fatal(err)
		}
		if !q.Status.Ended() {
			b.Work()
		}
	}
	if q.Status != transfer.Partial || q.Count.Done != 29 || q.Count.Attempts < 30 { // more if a lease had not reached the agent
		t.Errorf("%+v", q)
	}
	next, err := h.Client.Submit(t.Context(), transfer.Submission{Dataset: "/store/run1", To: "A"})
	if err != nil || next.ID != q.ID+1 {
		t.Errorf("the next request is %d, %v", next.ID, err)
	}
}

// A source that is missing, or is not a coordinator's database, is not copied and not created.
func TestMoveDBRefuses(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	none, server := filepath.Join(dir, "none.db"), dbtest.Server(t)
	for _, c := range []struct{ from, to, want string }{
		{"", server, "no such file"},
		{"sqlite:" + none, server, "no such file"},
		{none, server, "no such file"},
		{server, none, "not the database of a coordinator"},
	} {
		if _, err := state.MoveDB(t.Context(), dir, c.from, c.to, nil); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%q to %q: %v", c.from, c.to, err)
		}
	}
	if left, _ := filepath.Glob(filepath.Join(dir, "*")); len(left) > 0 {
		t.Errorf("it made %v", left)
	}
}
