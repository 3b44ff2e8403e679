package coordinator

import (
	"bytes"
	"context"
	"fmt"
	"hash/adler32"
	"log/slog"
	"math/rand/v2"
	"os"
	"path/filepath"
	"testing"
	"time"

	"weir/internal/require"
	"weir/internal/tier"
	"weir/lab/dbtest"
	"weir/transfer"
	"weir/transfer/access"
	realagent "weir/transfer/agent"
	"weir/transfer/client"
)

// each runs a test on a coordinator with SQLite and on one with PostgreSQL.
func each(t *testing.T, f func(t *testing.T, conf Config)) {
	t.Run("SQLite", func(t *testing.T) { f(t, Config{Approve: -1}) })
	t.Run("PostgreSQL", func(t *testing.T) { f(t, Config{Approve: -1, DB: dbtest.Server(t)}) })
}

// either runs a test on a coordinator with SQLite, and in the full tier on one with PostgreSQL as well.
func either(t *testing.T, f func(t *testing.T, conf Config)) {
	t.Run("SQLite", func(t *testing.T) { f(t, Config{Approve: -1}) })
	t.Run("PostgreSQL", func(t *testing.T) {
		tier.Full(t, "PostgreSQL, for tests that call either")
		f(t, Config{Approve: -1, DB: dbtest.Server(t)})
	})
}

// A place is a site with a real agent.
type place struct {
	t    *testing.T
	root string
	stop func()
}

// place starts an agent of a site, with a door or without.
func (h *house) place(site string, door bool) *place {
	h.t.Helper()
	p := &place{t: h.t, root: h.t.TempDir()}
	h.enter(p, site, door)
	return p
}

// passive starts an agent whose door copies with nobody: it only takes and gives.
func (h *house) passive(site string) *place {
	h.t.Helper()
	p := &place{t: h.t, root: h.t.TempDir()}
	h.enterBy(p, site, &realagent.EndpointOptions{Listen: "127.0.0.1:0"})
	return p
}

// enter starts an agent for what is there.
func (h *house) enter(p *place, site string, door bool) {
	h.t.Helper()
	var o *realagent.EndpointOptions
	if door {
		o = &realagent.EndpointOptions{Listen: "127.0.0.1:0", Private: true, Peers: []string{"*"}}
	}
	h.enterBy(p, site, o)
}

// enterBy starts an agent for what is there, and waits until the coordinator knows it.
func (h *house) enterBy(p *place, site string, door *realagent.EndpointOptions) {
	h.t.Helper()
	raw, err := h.admin.Token(h.t.Context(), transfer.NewToken{Subject: "agent " + site, Roles: []string{access.AgentOf + site},
		Life: time.Hour})
	if err != nil {
		h.t.Fatal(err)
	}
	o := realagent.Options{Site: site, Root: p.root, Slots: 8, SiteCA: h.conf.SiteCA,
		Coordinator: client.Config{URLs: append([]string{h.URL()}, h.also...), Pin: h.Pin(), Token: raw}}
	if testing.Verbose() {
		o.Log = slog.New(slog.NewTextHandler(h.t.Output(), nil)).With("agent", site)
	}
	o.Endpoint = door
	ctx, cancel := context.WithCancel(context.WithoutCancel(h.t.Context()))
	a, err := realagent.New(ctx, o)
	if err != nil {
		h.t.Fatal(err)
	}
	done := make(chan error, 1)
	go func() { done <- a.Run(ctx) }()
	p.stop = func() {
		cancel()
		if done == nil {
			return
		}
		if err := <-done; err != nil {
			h.t.Errorf("the agent of %s: %v", site, err)
		}
		done = nil
		if err := a.Close(); err != nil {
			h.t.Error(err)
		}
	}
	h.t.Cleanup(func() { p.stop() })
	h.up(site)
}

// write makes files of random bytes in a dataset's folder.
func (p *place) write(dataset string, files int, size int) {
	p.t.Helper()
	r := rand.NewChaCha8([32]byte{1})
	for i := range files {
		b := make([]byte, size)
		_, _ = r.Read(b) // never fails
		p.put(fmt.Sprintf("%s/f%d", dataset, i), b)
	}
}

func (p *place) put(name string, b []byte) {
	p.t.Helper()
	path := filepath.Join(p.root, name)
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		p.t.Fatal(err)
	}
	if err := os.WriteFile(path, b, 0o644); err != nil {
		p.t.Fatal(err)
	}
}

// same fails if a file is not the same at two places.
func same(t *testing.T, name string, a, b *place) {
	t.Helper()
	x, err := os.ReadFile(filepath.Join(a.root, name))
	require.NoError(t, err)
	y, err := os.ReadFile(filepath.Join(b.root, name))
	if err != nil || !bytes.Equal(x, y) {
		t.Errorf("%s: %d bytes with adler32 %08x, and %d with %08x (%v)", name, len(x), adler32.Checksum(x), len(y), adler32.Checksum(y), err)
	}
}

// up waits until a site is there.
func (h *house) up(site string) {
	h.t.Helper()
	until(h.t, "the agent is there", func() bool {
		sites, err := h.admin.Sites(h.t.Context())
		for _, s := range sites {
			if s.Name == site && s.Up {
				return err == nil
			}
		}
		return false
	})
}

// scan makes what a site has in a folder a dataset.
func (h *house) scan(dataset, site string) {
	h.t.Helper()
	h.up(site)
	h.scanAt(dataset, site, dataset)
}

// scanAt makes what a site has in another folder a dataset.
func (h *house) scanAt(dataset, site, path string) {
	h.t.Helper()
	s, err := h.admin.Scan(h.t.Context(), transfer.NewScan{Dataset: dataset, Site: site, Path: path})
	if err != nil {
		h.t.Fatal(err)
	}
	until(h.t, "the scan is done", func() bool {
		if s, err = h.admin.ScanState(h.t.Context(), s.ID); err != nil {
			h.t.Fatal(err)
		}
		return s.Done
	})
	if len(s.Problem) > 0 {
		h.t.Errorf("scan: %+v", s)
	}
}

// Agents pull where the source has a door, and push where only the destination has
// one.
func TestRealAgents(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, conf Config) {
		h := start(t, conf)
		a, b, c := h.place("A", true), h.place("B", true), h.place("C", false)
		a.write("/store/run1", 20, 300_000)
		h.scan("/store/run1", "A")
		for _, to := range []string{"C", "B"} {
			q, err := h.admin.Submit(t.Context(), transfer.Submission{Dataset: "/store/run1", To: to})
			require.NoError(t, err)
			if q = h.ended(q.ID); q.Status != transfer.Completed || q.Count.Done != 20 {
				t.Errorf("to %s: %+v", to, q)
				h.tell(q.ID)
			}
		}
		c.write("/store/run2", 20, 300_000)
		h.scan("/store/run2", "C")
		q, err := h.admin.Submit(t.Context(), transfer.Submission{Dataset: "/store/run2", To: "B"})
		require.NoError(t, err)
		if q = h.ended(q.ID); q.Status != transfer.Completed || q.Count.Done != 20 {
			t.Errorf("pushed: %+v", q)
			h.tell(q.ID)
		}
		attempts, err := h.admin.Attempts(t.Context(), q.ID, 0, 0)
		if err != nil || len(attempts) != 20 || attempts[0].Mode != transfer.Push {
			t.Errorf("%+v, %v", attempts, err)
		}
		for i := range 20 {
			same(t, fmt.Sprintf("/store/run1/f%d", i), a, b)
			same(t, fmt.Sprintf("/store/run1/f%d", i), a, c)
			same(t, fmt.Sprintf("/store/run2/f%d", i), c, b)
		}
		for i, spoil := range []func(string) error{os.Remove, func(f string) error { return os.Truncate(f, 5) }} { // behind the catalog's back
			require.NoError(t, spoil(filepath.Join(b.root, fmt.Sprintf("store/run2/f%d", i))))
		}
		again, err := h.admin.Submit(t.Context(), transfer.Submission{Dataset: "/store/run2", To: "B"})
		require.NoError(t, err)
		if again = h.ended(again.ID); again.Status != transfer.Partial || again.Count.Skipped != 18 || again.Count.Done != 1 {
			t.Errorf("once more: %+v", again)
			h.tell(again.ID)
		}
		same(t, "/store/run2/f0", c, b)
		bad, err := h.admin.Items(t.Context(), again.ID, transfer.FileFailed, 0, 0)
		if err != nil || len(bad) != 1 || bad[0].Name != "/store/run2/f1" || bad[0].Fault != transfer.Occupied {
			t.Errorf("%+v, %v", bad, err)
		}
	})
}

// Many files that lie in the root itself, without a folder, arrive at once: no token
// is for all of a site, nor for the folder of what is still being copied.
func TestFilesInTheRoot(t *testing.T) {
	t.Parallel()
	h := start(t, Config{Approve: -1})
	a, b := h.place("A", true), h.place("B", false)
	a.write("", 3*8, 1000)
	h.up("A")
	h.scanAt("/store/run1", "A", "")
	q, err := h.admin.Submit(t.Context(), transfer.Submission{Dataset: "/store/run1", To: "B"})
	require.NoError(t, err)
	if q = h.ended(q.ID); q.Status != transfer.Completed || q.Count.Attempts != 3*8 {
		t.Errorf("%+v", q)
		h.tell(q.ID)
	}
	for i := range 3 * 8 {
		x, err := os.ReadFile(filepath.Join(b.root, fmt.Sprintf("store/run1/f%d", i)))
		if y, err2 := os.ReadFile(filepath.Join(a.root, fmt.Sprintf("f%d", i))); err != nil || err2 != nil || !bytes.Equal(x, y) {
			t.Errorf("f%d: %v, %v", i, err, err2)
		}
	}
}

// tell writes down what became of a request's files.
func (h *house) tell(id int64) {
	h.t.Helper()
	q, _ := h.admin.Request(h.t.Context(), id)
	h.t.Logf("%+v", q)
	x, _ := h.admin.Explain(h.t.Context(), id, "")
	h.t.Logf("%+v", x.Reasons)
	items, _ := h.admin.Items(h.t.Context(), id, "", 0, 5)
	for _, it := range items {
		h.t.Logf("%+v", it)
	}
	attempts, _ := h.admin.Attempts(h.t.Context(), id, 0, 10)
	for _, a := range attempts {
		h.t.Logf("%+v", a)
	}
}
