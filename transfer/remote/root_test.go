package remote

import (
	"context"
	"os"
	"path/filepath"
	"testing"
	"time"

	"weir/internal/require"
	"weir/internal/tier"
	"weir/internal/tpc"
	"weir/lab"
	"weir/lab/labtest"
)

func TestMain(m *testing.M) { os.Exit(tier.Main(m)) }

// A copy of which no byte is visible may take the time of the whole file at 1 MB/s longer than one
// that grows. Both are ended without progress.
func TestSilentCopies(t *testing.T) {
	tier.Slow(t, "waits for copies")
	for name, tt := range map[string]struct {
		script string
		ends   bool
	}{
		"complete at once":      {`sleep 4; exec /usr/bin/xrdcp --server "$@"`, false},
		"hangs at the start":    {`while [ -e "$0" ]; do sleep 0.2; done`, true},
		"hangs after some part": {`for to; do :; done; head -c 1000 /dev/zero > "$to"; while [ -e "$0" ]; do sleep 0.2; done`, true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			const size = 10_000_000 // 10 s more than Stall
			dir := t.TempDir()
			for _, d := range []string{filepath.Dir(dir), dir} { // the server may run as another user
				require.NoError(t, os.Chmod(d, 0o755))
			}
			program := filepath.Join(dir, "copy")
			require.NoError(t, os.WriteFile(program, []byte("#!/bin/sh\n"+tt.script+"\n"), 0o755))
			a := labtest.Start(t, lab.XRootDConfig{Extra: "ofs.tpc ttl 60 120 pgm /usr/bin/xrdcp --server\n"})
			b := labtest.Start(t, lab.XRootDConfig{Extra: "ofs.tpc ttl 60 120 pgm " + program + "\n"})
			require.NoError(t, a.WriteFile("f", make([]byte, size)))
			c := New("test", nil)
			t.Cleanup(c.Close)
			ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
			defer cancel()
			begun := time.Now()
			err := c.Drive(ctx, tpc.Order{Active: tpc.Target{URL: b.URLs["root"] + "/g"}, Passive: tpc.Target{URL: a.URLs["root"] + "/f"},
				Size: size, Stall: time.Second}, func(int64) {})
			if tt.ends {
				if tpc.KindOf(err) != tpc.Stalled {
					t.Errorf("after %v: %v", time.Since(begun), err)
				}
				return
			}
			require.NoError(t, err)
			info, err := c.Stat(ctx, tpc.Target{URL: b.URLs["root"] + "/g"})
			require.NoError(t, err)
			if info.Size != size {
				t.Errorf("%d bytes", info.Size)
			}
		})
	}
}
