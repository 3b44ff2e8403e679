package xrootd

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	"weir/internal/require"
	"weir/lab"
	"weir/lab/labtest"
	"weir/storage"
	"weir/storage/storagetest"
)

// TestStalledCopiesEnd copies to a server whose program for copies hangs: before it contacts the
// source, and in the middle of the file. The server runs one program at a time, so that a copy
// begins only if the copy before was ended at the server as well.
func TestStalledCopiesEnd(t *testing.T) {
	const size, stall = 64 << 10, time.Second
	for _, version := range labtest.XRootDs() {
		for name, part := range map[string]int64{"before the first byte": 0, "in the middle": size / 2} {
			t.Run(version+" "+name, func(t *testing.T) {
				hang := program(t, fmt.Sprintf(`for to; do :; done; head -c %d /dev/zero > "$to"; while [ -e "$0" ]; do sleep 0.2; done`, part))
				a := labtest.Start(t, lab.XRootDConfig{Version: version, Extra: copiesByRoot})
				b := labtest.Start(t, lab.XRootDConfig{Version: version, Extra: "ofs.tpc xfr 1 pgm " + hang + "\n"})
				require.NoError(t, a.WriteFile("f", made(size)))
				c := copier(t, a, b, stall)
				for i := range 2 {
					op := storage.Op{Kind: storage.Copy, Path: fmt.Sprint("copy", i), Source: "f", Size: size, Timeout: 5 * time.Minute}
					var e events
					begin := time.Now()
					_, err := c.Do(t.Context(), &op, &e)
					stalled, ok := errors.AsType[*stallError](err)
					if !ok || storage.Classify(err) != storage.Timeout || stalled.moved != part || e.moved != part {
						t.Fatalf("class %q, %d bytes moved, want %d: %v", storage.Classify(err), e.moved, part, err)
					}
					if took := time.Since(begin); took < stall {
						t.Errorf("it was ended after %v", took)
					}
				}
			})
		}
	}
}

// TestSlowTargetsCopy copies to a server that starts its xrdcp later than a key of the source lives
// by default.
func TestSlowTargetsCopy(t *testing.T) {
	const size = 64 << 10
	for _, version := range labtest.XRootDs() {
		t.Run(version, func(t *testing.T) {
			a := labtest.Start(t, lab.XRootDConfig{Version: version, Extra: "ofs.tpc ttl 1 300 pgm /usr/bin/xrdcp --server\n"})
			late := program(t, `sleep 3; exec /usr/bin/xrdcp --server "$@"`)
			b := labtest.Start(t, lab.XRootDConfig{Version: version, Extra: "ofs.tpc pgm " + late + "\n"})
			require.NoError(t, a.WriteFile("f", made(size)))
			c := copier(t, a, b, 5*time.Minute)
			var e events
			_, err := c.Do(t.Context(), &storage.Op{Kind: storage.Copy, Path: "copy", Source: "f", Size: size, Timeout: 5 * time.Minute}, &e)
			require.NoError(t, err)
			if e.moved != size {
				t.Errorf("%d bytes moved of %d", e.moved, size)
			}
		})
	}
}

// program writes a shell script that a server can run, and returns its path.
func program(t *testing.T, text string) string {
	t.Helper()
	dir := t.TempDir()
	for _, d := range []string{filepath.Dir(dir), dir} { // the server may run as another user
		require.NoError(t, os.Chmod(d, 0o755))
	}
	path := filepath.Join(dir, "copy")
	require.NoError(t, os.WriteFile(path, []byte("#!/bin/sh\n"+text+"\n"), 0o755))
	return path
}

// copier returns a client for copies from one server to another that ends a copy after stall
// without progress.
func copier(t *testing.T, from, to *lab.System, stall time.Duration) storage.Client {
	t.Helper()
	target := storagetest.TargetOf(t, to.URL, storage.Credentials{})
	target.Origin = &storage.Origin{URL: storagetest.TargetOf(t, from.URL, storage.Credentials{}).URL}
	s, err := open(target)
	require.NoError(t, err)
	s.(*service).stall = stall
	c := s.Client()
	t.Cleanup(func() { require.NoError(t, errors.Join(c.Close(), s.Close())) })
	return c
}

// TestCopyMayBeSilent checks how long a copy may go without progress.
func TestCopyMayBeSilent(t *testing.T) {
	const size = 600_000_000
	x := &call{s: &service{stall: 5 * time.Minute}}
	x.Op = &storage.Op{Kind: storage.Copy, Size: size}
	limits := map[int64]time.Duration{0: 15 * time.Minute, 1: 5 * time.Minute, size - 1: 5 * time.Minute, size: 15 * time.Minute}
	for counted, want := range limits {
		if got := (&watch{x: x, counted: counted}).limit(); got != want {
			t.Errorf("after %d bytes: %v, want %v", counted, got, want)
		}
	}
}
