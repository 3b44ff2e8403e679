package mover

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"maps"
	"os"
	"path/filepath"
	"testing"

	"weir/internal/require"
	"weir/internal/tier"
	"weir/serve"
	"weir/transfer"
)

// slow limits the rate of an endpoint so that the downloads in these tests take seconds.
func slow(c *serve.Config) { c.Rate = 48 << 20 }

// startMove starts a child that moves files.
func startMove(t testing.TB, j job) (kill func()) {
	t.Helper()
	text, err := json.Marshal(j)
	require.NoError(t, err)
	name := filepath.Join(t.TempDir(), "job")
	require.NoError(t, os.WriteFile(name, text, 0o600))
	cmd, _, _ := startChild(t, "move:"+name)
	return func() {
		require.NoError(t, cmd.Process.Kill())
		_ = cmd.Wait() // it was killed
	}
}

// noted reports whether a state file has a record of a chunk.
func noted(root string, item, epoch int64) bool {
	text, err := os.ReadFile(filepath.Join(root, Hidden, stateName(item, epoch)))
	return err == nil && bytes.Contains(text, []byte("chunk"))
}

// TestResumeAfterKill kills a mover, and lets another mover resume.
func TestResumeAfterKill(t *testing.T) {
	tier.Slow(t, "kills processes")
	t.Parallel()
	const size = 64 << 20
	from := newSite(t, slow)
	sum := file(t, from.dir, "f", 1, size)
	root := t.TempDir()
	l := pullLease(from.url, "f", sum, size)
	kill := startMove(t, job{Root: root, Leases: []transfer.Lease{l}, Together: 1})
	require.Eventually(t, "the first bytes are noted", func() bool { return noted(root, l.Item, l.Epoch) })
	kill()
	m := newMover(t, Options{Root: root})
	if kept := m.Kept(); len(kept) != 1 || kept[l.Item] != l.Epoch {
		t.Fatalf("kept: %v", kept)
	}
	l.Epoch = 5
	fast := newSite(t, func(c *serve.Config) { c.Dir = from.dir })
	l.Source.URL = fast.url + "/f"
	out := do(t, m, l)
	arrived(t, m, filepath.Join(from.dir, "f"), l, out)
	if out.Resumed < minChunk || out.Resumed+out.Moved != size {
		t.Errorf("%d of %d bytes were used again, %d moved", out.Resumed, size, out.Moved)
	}
	if len(m.Kept()) != 0 {
		t.Errorf("kept: %v", m.Kept())
	}
}

// breakOff ends an attempt when some of its bytes are recorded, and returns its outcome.
func breakOff(t *testing.T, m *Mover, l transfer.Lease, cause error) transfer.Outcome {
	t.Helper()
	ctx, cancel := context.WithCancelCause(t.Context())
	done := make(chan transfer.Outcome, 1)
	go func() { done <- m.Do(ctx, l, nil) }()
	require.Eventually(t, "the first bytes are noted", func() bool { return noted(m.opt.Root, l.Item, l.Epoch) })
	cancel(cause)
	return <-done
}

// TestResumeTrustsNothing damages the data that an attempt has left.
func TestResumeTrustsNothing(t *testing.T) {
	const size = 40 << 20
	from, fast := newSite(t, slow), (*site)(nil)
	sum := file(t, from.dir, "f", 1, size)
	fast = newSite(t, func(c *serve.Config) { c.Dir = from.dir })
	for what, spoil := range map[string]func(part, state string) error{
		"nothing":              func(string, string) error { return nil },
		"a byte of the part":   func(part, _ string) error { return flip(part, 5) },
		"the part's end":       func(part, _ string) error { return os.Truncate(part, 3<<20) },
		"more than the file":   func(part, _ string) error { return os.Truncate(part, size+1) },
		"the part":             func(part, _ string) error { return os.Remove(part) },
		"the state":            func(_, state string) error { return os.Remove(state) },
		"the end of the state": func(_, state string) error { return cut(state, 7) },
		"a byte of the state":  func(_, state string) error { return flip(state, 3) },
		"all of the state": func(_, state string) error {
			return os.WriteFile(state, bytes.Repeat([]byte("chunk 0 99999999999 zz\n"), 9), 0o600)
		},
	} {
		t.Run(what, func(t *testing.T) {
			t.Parallel()
			m := newMover(t, Options{})
			l := pullLease(from.url, "f", sum, size)
			out := breakOff(t, m, l, errors.New("the agent ends"))
			failed(t, out, transfer.Transient)
			if err := spoil(filepath.Join(m.opt.Root, partName(l.Item, l.Epoch)),
				filepath.Join(m.opt.Root, Hidden, stateName(l.Item, l.Epoch))); err != nil {
				t.Fatal(err)
			}
			l.Epoch, l.Source.URL, l.Streams = 2, fast.url+"/f", 3
			out = do(t, m, l)
			arrived(t, m, filepath.Join(from.dir, "f"), l, out)
			if what == "nothing" && out.Resumed < minChunk {
				t.Errorf("only %d bytes were used again", out.Resumed)
			}
		})
	}
}

// flip changes one byte of a file.
func flip(name string, at int64) error {
	f, err := os.OpenFile(name, os.O_RDWR, 0)
	if err != nil {
		return err
	}
	var b [1]byte
	_, err = f.ReadAt(b[:], at)
	b[0] ^= 1
	_, err2 := f.WriteAt(b[:], at)
	return errors.Join(err, err2, f.Close())
}

func cut(name string, n int64) error {
	info, err := os.Stat(name)
	if err != nil {
		return err
	}
	return os.Truncate(name, info.Size()-n)
}

// TestCancelled: a cancelled attempt leaves nothing.
func TestCancelled(t *testing.T) {
	t.Parallel()
	const size = 40 << 20
	from := newSite(t, slow)
	sum := file(t, from.dir, "f", 1, size)
	m := newMover(t, Options{})
	failed(t, breakOff(t, m, pullLease(from.url, "f", sum, size), ErrCancelled), transfer.RequestCancelled)
	noParts(t, m)
}

// TestSuperseded: a later epoch ends an earlier attempt and resumes its part; an earlier epoch does
// nothing.
func TestSuperseded(t *testing.T) {
	t.Parallel()
	const size = 40 << 20
	from := newSite(t, slow)
	sum := file(t, from.dir, "f", 1, size)
	m := newMover(t, Options{})
	l := pullLease(from.url, "f", sum, size)
	done := make(chan transfer.Outcome, 1)
	go func() { done <- m.Do(t.Context(), l, nil) }()
	require.Eventually(t, "the first bytes are noted", func() bool { return noted(m.opt.Root, l.Item, l.Epoch) })
	later := l
	later.Epoch = 4
	out := do(t, m, later)
	arrived(t, m, filepath.Join(from.dir, "f"), later, out)
	if out.Resumed < minChunk {
		t.Errorf("only %d bytes were used again", out.Resumed)
	}
	failed(t, <-done, transfer.LeaseLost)
	if out := do(t, m, l); out.Fault != "" || !out.Existed {
		t.Errorf("an earlier one, when all is over: %+v", out)
	}
}

// TestDrop removes parts that will not be resumed, and nothing else.
func TestDrop(t *testing.T) {
	t.Parallel()
	const size = 40 << 20
	from := newSite(t, slow)
	sum := file(t, from.dir, "f", 1, size)
	root := t.TempDir()
	m, err := New(Options{Root: root})
	require.NoError(t, err)
	failed(t, breakOff(t, m, pullLease(from.url, "f", sum, size), nil), transfer.Transient)
	foreign := filepath.Join(root, Hidden, "8.1.part")
	require.NoError(t, errors.Join(os.WriteFile(foreign, []byte("x"), 0o600), m.Close()))
	m = newMover(t, Options{Root: root})
	if _, err := New(Options{Root: root}); err == nil {
		t.Error("two movers in one folder")
	}
	m.Drop(8)
	m.Drop(7)
	if left := parts(t, m); len(left) != 1 || left[0] != foreign {
		t.Errorf("left: %q", left)
	}
}

// Kept returns the items of which an earlier attempt left a part, with its epoch.
func (m *Mover) Kept() map[int64]int64 {
	m.mu.Lock()
	defer m.mu.Unlock()
	return maps.Clone(m.kept)
}
