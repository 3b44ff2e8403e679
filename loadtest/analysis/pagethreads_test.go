package analysis

import (
	"path/filepath"
	"testing"

	"weir/internal/require"
)

// TestPageThreadsAreNamed checks the name of a core that is full because of the threads of the
// built-in server's pages; for another server the same core is one core.
func TestPageThreadsAreNamed(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "run")
	require.NoError(t, newLimitRig("one thread", ResourceCore, 7).service().Write(dir))
	for threads, want := range map[int]string{0: "one core of ", 1: "the server's CPU (1 thread) on ", 2: "the server's CPU (2 threads) on "} {
		d := loaded(t, dir)
		d.run.Plan.BuiltIn, d.run.Plan.Server.Threads = true, threads
		got := d.findings().Bottleneck
		if len(got) == 0 || got[0].Resource != ResourceCore || got[0].Threads != threads {
			t.Fatalf("%d threads: %+v", threads, got)
		}
		if text := got[0].Text(); text != want+got[0].Host {
			t.Errorf("%d threads: %q limits, want %q", threads, text, want+got[0].Host)
		}
	}
}
