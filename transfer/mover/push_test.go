package mover

import (
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"testing"

	"weir/internal/require"
	"weir/serve"
	"weir/transfer"
)

// pushLease returns a lease to push a file of this site to url, a folder.
func pushLease(url, name, sum string, size int64) transfer.Lease {
	return transfer.Lease{Item: 7, Epoch: 1, Mode: transfer.Push, Name: "/" + name, Size: size, Adler: sum,
		Source: transfer.End{Site: "A", Path: name},
		Dest:   transfer.End{Site: "B", Path: name, URL: url + "/" + name}}
}

func TestPush(t *testing.T) {
	to := newSite(t, func(c *serve.Config) { c.Sync = true })
	m := newMover(t, Options{})
	for i, size := range []int64{0, 1, 64 << 10, 20<<20 + 17} {
		name := "store/run1/f" + string(rune('a'+i))
		sum := file(t, m.opt.Root, name, uint64(i), size)
		l := pushLease(to.url, name, sum, size)
		if i%2 == 0 {
			l.Adler = ""
		}
		out := do(t, m, l)
		if out.Fault != "" || !out.Verified || out.Adler != sum || out.Moved != size || out.Existed {
			t.Fatalf("%+v", out)
		}
		if hashed(t, filepath.Join(to.dir, name)) != hashed(t, filepath.Join(m.opt.Root, name)) {
			t.Error("the copy differs")
		}
		if out = do(t, m, l); out.Fault != "" || !out.Existed || !out.Verified || out.Moved != 0 {
			t.Errorf("a second time: %+v", out)
		}
	}
	if left, _ := filepath.Glob(filepath.Join(to.dir, Hidden, "*")); len(left) > 0 {
		t.Errorf("left behind: %q", left)
	}
}

// A file that has arrived is found at the destination, even if its source was removed.
func TestPushOfWhatHasArrived(t *testing.T) {
	to := newSite(t, nil)
	m := newMover(t, Options{})
	l := pushLease(to.url, "f", file(t, m.opt.Root, "f", 1, 1000), 1000)
	if out := do(t, m, l); out.Fault != "" {
		t.Fatalf("%+v", out)
	}
	require.NoError(t, os.Remove(filepath.Join(m.opt.Root, "f")))
	if out := do(t, m, l); out.Fault != "" || !out.Existed || !out.Verified {
		t.Errorf("%+v", out)
	}
}

func TestPushNeverReplaces(t *testing.T) {
	to := newSite(t, nil)
	m := newMover(t, Options{})
	sum := file(t, m.opt.Root, "f", 1, 1000)
	for i, there := range []func(string) error{
		func(name string) error { return os.WriteFile(name, make([]byte, 1000), 0o600) },
		func(name string) error { return os.WriteFile(name, []byte("shorter"), 0o600) },
		func(name string) error { return os.Mkdir(name, 0o700) },
	} {
		name := filepath.Join(to.dir, "f")
		require.NoError(t, there(name))
		before, _ := os.ReadFile(name)
		failed(t, do(t, m, pushLease(to.url, "f", sum, 1000)), transfer.Occupied)
		if after, _ := os.ReadFile(name); string(after) != string(before) {
			t.Errorf("case %d: it was replaced", i)
		}
		require.NoError(t, os.RemoveAll(name))
	}
}

func TestPushOfWhatIsNotThereOrNotRight(t *testing.T) {
	to := newSite(t, nil)
	m := newMover(t, Options{})
	failed(t, do(t, m, pushLease(to.url, "none", "", 5)), transfer.SourceBad)
	file(t, m.opt.Root, "f", 1, 1000)
	failed(t, do(t, m, pushLease(to.url, "f", "", 999)), transfer.SourceBad)
	failed(t, do(t, m, pushLease(to.url, "f", "00000001", 1000)), transfer.SourceBad)
	l := pushLease(to.url, "f", "", 1000)
	l.Dest.URL = ""
	failed(t, do(t, m, l), transfer.Permanent)
	if left, _ := filepath.Glob(filepath.Join(to.dir, Hidden, "*")); len(left) > 0 {
		t.Errorf("left behind: %q", left)
	}
}

// An outcome reports whether its attempt may have left a temporary file.
func TestPushSaysWhetherItWrote(t *testing.T) {
	m := newMover(t, Options{})
	sum := file(t, m.opt.Root, "f", 1, 1000)
	answers := http.StatusNotFound
	to := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method != http.MethodHead {
			answers = http.StatusInsufficientStorage
		}
		w.WriteHeader(answers)
	}))
	if out := do(t, m, pushLease(to.URL, "f", sum, 1000)); out.Unwritten || out.Fault != transfer.DestFull {
		t.Errorf("refused in the middle: %+v", out)
	}
	to.Close()
	if out := do(t, m, pushLease(to.URL, "f", sum, 1000)); !out.Unwritten || out.Fault != transfer.Unreachable {
		t.Errorf("closed port: %+v", out)
	}
	if out := do(t, m, pushLease(to.URL, "none", sum, 1000)); !out.Unwritten {
		t.Errorf("no source: %+v", out)
	}
}
