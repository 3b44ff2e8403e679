package mover

import (
	"crypto/sha256"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"testing"

	"weir/internal/adler"
	"weir/internal/content"
	"weir/internal/require"
	"weir/serve"
	"weir/serve/servetest"
	"weir/transfer"
)

// A site is a folder with an endpoint.
type site struct {
	dir, url string
}

// newSite starts an endpoint of a new folder.
func newSite(t testing.TB, change func(*serve.Config)) *site {
	t.Helper()
	c := serve.Config{Dir: t.TempDir()}
	if change != nil {
		change(&c)
	}
	return &site{dir: c.Dir, url: servetest.Start(t, c)}
}

// file makes a file of synthetic content and returns its checksum.
func file(t testing.TB, dir, name string, seed uint64, size int64) string {
	t.Helper()
	full := filepath.Join(dir, name)
	require.NoError(t, os.MkdirAll(filepath.Dir(full), 0o755))
	f, err := os.Create(full)
	require.NoError(t, err)
	h := adler.New()
	if _, err := content.NewReader(seed, size).WriteTo(io.MultiWriter(f, h)); err != nil {
		t.Fatal(err)
	}
	require.NoError(t, f.Close())
	return adler.Text(h.Sum32())
}

// newMover makes a Mover of a folder.
func newMover(t testing.TB, o Options) *Mover {
	t.Helper()
	if o.Root == "" {
		o.Root = t.TempDir()
	}
	m, err := New(o)
	require.NoError(t, err)
	t.Cleanup(func() {
		if err := m.Close(); err != nil {
			t.Error(err)
		}
	})
	return m
}

// pullLease returns a lease to fetch a file from url, a folder, to the same name.
func pullLease(url, name, sum string, size int64) transfer.Lease {
	return transfer.Lease{Item: 7, Epoch: 1, Mode: transfer.Pull, Name: "/" + name, Size: size, Adler: sum,
		Source: transfer.End{Site: "A", Path: name, URL: url + "/" + name},
		Dest:   transfer.End{Site: "B", Path: name}}
}

func do(t testing.TB, m *Mover, l transfer.Lease) transfer.Outcome {
	t.Helper()
	out := m.Do(t.Context(), l, func(transfer.Progress) {})
	if out.Item != l.Item || out.Epoch != l.Epoch || out.End.Before(out.Begin) {
		t.Errorf("the outcome is of another attempt: %+v", out)
	}
	return out
}

// arrived checks that a file is complete and its outcome correct, and that nothing else is left.
func arrived(t testing.TB, m *Mover, from string, l transfer.Lease, out transfer.Outcome) {
	t.Helper()
	if out.Fault != "" {
		t.Fatalf("%s: %s", out.Fault, out.Reason)
	}
	a, b := hashed(t, from), hashed(t, filepath.Join(m.opt.Root, l.Dest.Path))
	if a != b {
		t.Fatal("the copy differs")
	}
	if !out.Verified || out.Size != l.Size || l.Adler != "" && out.Adler != l.Adler {
		t.Errorf("%+v", out)
	}
	noParts(t, m)
}

func hashed(t testing.TB, name string) string {
	t.Helper()
	f, err := os.Open(name)
	require.NoError(t, err)
	defer f.Close()
	h := sha256.New()
	if _, err := io.Copy(h, f); err != nil {
		t.Fatal(err)
	}
	return fmt.Sprintf("%x", h.Sum(nil))
}

// parts lists the existing temporaries and states.
func parts(t testing.TB, m *Mover) []string {
	t.Helper()
	names, err := filepath.Glob(filepath.Join(m.opt.Root, Hidden, "*.*.*"))
	require.NoError(t, err)
	return names
}

func noParts(t testing.TB, m *Mover) {
	t.Helper()
	if left := parts(t, m); len(left) > 0 {
		t.Errorf("left behind: %q", left)
	}
}

func failed(t testing.TB, out transfer.Outcome, fault transfer.ErrorClass) {
	t.Helper()
	if out.Fault != fault || out.Reason == "" || out.Verified {
		t.Fatalf("%q, wanted %q: %+v", out.Fault, fault, out)
	}
	t.Logf("%s: %s", out.Fault, out.Reason)
}
