package coordinator

import (
	"bytes"
	"fmt"
	"hash/adler32"
	"os"
	"path/filepath"
	"testing"

	"weir/internal/require"
	"weir/internal/tier"
	"weir/lab/dbtest"
	"weir/transfer"
	"weir/transfer/transfertest"
)

// each runs a test on a coordinator with SQLite and on a coordinator with PostgreSQL.
func each(t *testing.T, f func(t *testing.T, conf Config)) {
	t.Run("SQLite", func(t *testing.T) { f(t, Config{Approve: -1}) })
	t.Run("PostgreSQL", func(t *testing.T) { f(t, Config{Approve: -1, DB: dbtest.Server(t)}) })
}

// either runs a test on a coordinator with SQLite, and in the full tier on a coordinator with
// PostgreSQL as well.
func either(t *testing.T, f func(t *testing.T, conf Config)) {
	t.Run("SQLite", func(t *testing.T) { f(t, Config{Approve: -1}) })
	t.Run("PostgreSQL", func(t *testing.T) {
		tier.Full(t, "PostgreSQL, for tests that call either")
		f(t, Config{Approve: -1, DB: dbtest.Server(t)})
	})
}

// same fails the test if the copies of a file at two sites differ.
func same(t *testing.T, name string, a, b *transfertest.Agent) {
	t.Helper()
	x, err := os.ReadFile(filepath.Join(a.Root, name))
	require.NoError(t, err)
	y, err := os.ReadFile(filepath.Join(b.Root, name))
	if err != nil || !bytes.Equal(x, y) {
		t.Errorf("%s: %d bytes with adler32 %08x, and %d with %08x (%v)", name, len(x), adler32.Checksum(x), len(y), adler32.Checksum(y), err)
	}
}

// Agents pull if the source has an endpoint, and push if only the destination has an endpoint.
func TestRealAgents(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, conf Config) {
		h := start(t, conf)
		a, b, c := h.Agent("A", transfertest.Endpoint()), h.Agent("B", transfertest.Endpoint()), h.Agent("C", nil)
		a.Write("/store/run1", 20, 300_000)
		h.Scan("/store/run1", "A", "/store/run1")
		for _, to := range []string{"C", "B"} {
			q, err := h.Client.Submit(t.Context(), transfer.Submission{Dataset: "/store/run1", To: to})
			require.NoError(t, err)
			if q = h.WaitEnd(q.ID); q.Status != transfer.Completed || q.Count.Done != 20 {
				t.Errorf("to %s: %+v", to, q)
				h.Log(q.ID)
			}
		}
		c.Write("/store/run2", 20, 300_000)
		h.Scan("/store/run2", "C", "/store/run2")
		q, err := h.Client.Submit(t.Context(), transfer.Submission{Dataset: "/store/run2", To: "B"})
		require.NoError(t, err)
		if q = h.WaitEnd(q.ID); q.Status != transfer.Completed || q.Count.Done != 20 {
			t.Errorf("pushed: %+v", q)
			h.Log(q.ID)
		}
		attempts, err := h.Client.Attempts(t.Context(), q.ID, 0, 0)
		if err != nil || len(attempts) != 20 || attempts[0].Mode != transfer.Push {
			t.Errorf("%+v, %v", attempts, err)
		}
		for i := range 20 {
			same(t, fmt.Sprintf("/store/run1/f%d", i), a, b)
			same(t, fmt.Sprintf("/store/run1/f%d", i), a, c)
			same(t, fmt.Sprintf("/store/run2/f%d", i), c, b)
		}
		for i, spoil := range []func(string) error{os.Remove, func(f string) error { return os.Truncate(f, 5) }} { // unknown to the catalog
			require.NoError(t, spoil(filepath.Join(b.Root, fmt.Sprintf("store/run2/f%d", i))))
		}
		again, err := h.Client.Submit(t.Context(), transfer.Submission{Dataset: "/store/run2", To: "B"})
		require.NoError(t, err)
		if again = h.WaitEnd(again.ID); again.Status != transfer.Partial || again.Count.Skipped != 18 || again.Count.Done != 1 {
			t.Errorf("once more: %+v", again)
			h.Log(again.ID)
		}
		same(t, "/store/run2/f0", c, b)
		bad, err := h.Client.Items(t.Context(), again.ID, transfer.FileFailed, 0, 0)
		if err != nil || len(bad) != 1 || bad[0].Name != "/store/run2/f1" || bad[0].Fault != transfer.Occupied {
			t.Errorf("%+v, %v", bad, err)
		}
	})
}

// Many files directly in the root, without a folder, arrive at once. No token covers a whole site,
// or the folder of files that are still being copied.
func TestFilesInTheRoot(t *testing.T) {
	t.Parallel()
	h := start(t, Config{Approve: -1})
	a, b := h.Agent("A", transfertest.Endpoint()), h.Agent("B", nil)
	a.Write("", 3*8, 1000)
	h.Scan("/store/run1", "A", "")
	q, err := h.Client.Submit(t.Context(), transfer.Submission{Dataset: "/store/run1", To: "B"})
	require.NoError(t, err)
	if q = h.WaitEnd(q.ID); q.Status != transfer.Completed || q.Count.Attempts != 3*8 {
		t.Errorf("%+v", q)
		h.Log(q.ID)
	}
	for i := range 3 * 8 {
		x, err := os.ReadFile(filepath.Join(b.Root, fmt.Sprintf("store/run1/f%d", i)))
		if y, err2 := os.ReadFile(filepath.Join(a.Root, fmt.Sprintf("f%d", i))); err != nil || err2 != nil || !bytes.Equal(x, y) {
			t.Errorf("f%d: %v, %v", i, err, err2)
		}
	}
}
