package webdav

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"testing"
	"time"

	"weir/internal/content"
	"weir/internal/require"
	"weir/lab"
	"weir/lab/labtest"
	"weir/storage"
	"weir/storage/storagetest"
)

// events is a Progress that records its calls.
type events struct {
	phases []storage.Phase
	moved  int64
	server string
}

func (e *events) Reached(p storage.Phase) { e.phases = append(e.phases, p) }
func (e *events) Moved(n int)             { e.moved += int64(n) }
func (e *events) ServedBy(host string)    { e.server = host }

// quiet is a Progress that only counts.
type quiet struct{ moved int64 }

func (q *quiet) Reached(storage.Phase) {}
func (q *quiet) Moved(n int)           { q.moved += int64(n) }
func (q *quiet) ServedBy(string)       {}

func serviceAt(t testing.TB, target string, cred storage.Credentials) storage.Service {
	t.Helper()
	return storagetest.Open(t, Driver(), storagetest.TargetOf(t, target, cred))
}

func clientAt(t testing.TB, target string, cred storage.Credentials) storage.Client {
	t.Helper()
	return storagetest.Client(t, Driver(), storagetest.TargetOf(t, target, cred))
}

// place writes generated content to a lab's data folder.
func place(t testing.TB, dir, name string, seed uint64, size int64) {
	t.Helper()
	b := make([]byte, size)
	content.Fill(b, seed, 0)
	path := filepath.Join(dir, name)
	require.NoError(t, os.WriteFile(path, b, 0o644))
	require.NoError(t, os.Chmod(path, 0o644))
}

func TestReadWhole(t *testing.T) {
	ng := labtest.Start(t, lab.NginxConfig{})
	const size = 3<<20 + 17
	place(t, ng.Data, "a file", 7, size)
	c := clientAt(t, ng.URL, storage.Credentials{})
	var e events
	res, err := c.Do(t.Context(), &storage.Op{Kind: storage.Read, Path: "a file", Size: size, Timeout: time.Minute}, &e)
	require.NoError(t, err)
	if e.moved != size || res.Size != size || res.Discarded == 0 || res.Wire < size {
		t.Errorf("moved %d of %d, result %+v", e.moved, size, res)
	}
	want, err := content.Sum("adler32", 7, 0, size)
	require.NoError(t, err)
	res, err = c.Do(t.Context(), &storage.Op{Kind: storage.Read, Path: "a file", Size: size, Sum: "adler32"}, &e)
	if err != nil || res.Sum != want || res.Discarded != 0 {
		t.Errorf("result %+v, error %v, want sum %s", res, err, want)
	}
	_, err = c.Do(t.Context(), &storage.Op{Kind: storage.Read, Path: "none", Size: -1}, &e)
	if !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("a missing file gives %v", err)
	}
}

func TestReadAllocatesNothing(t *testing.T) {
	if raceEnabled {
		t.Skip("the race detector makes pools forget")
	}
	ng := labtest.Start(t, lab.NginxConfig{})
	for name, size := range map[string]int64{"small": 4096, "large": 1 << 20} {
		place(t, ng.Data, name, 1, size)
		c := clientAt(t, ng.URL, storage.Credentials{})
		op := &storage.Op{Kind: storage.Read, Path: name, Size: size, Timeout: time.Minute}
		q := &quiet{}
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		got := testing.AllocsPerRun(200, func() {
			if _, err := c.Do(ctx, op, q); err != nil {
				t.Fatal(err)
			}
		})
		if got != 0 {
			t.Errorf("%s: %v allocations for each read", name, got)
		}
	}
}
