package main

import (
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"weir/internal/require"
	"weir/transfer/trial"
)

const roomy = `name: roomy
sites: [A, B]
cases:
  - {name: little, files: 2, size: 100kB, at: {A: all}, to: B, expect: {status: completed}}
  - {name: much, files: 10, size: 1MB, at: {A: 1-7}, to: B, expect: {status: completed}}
`

// A lack of space is reported before any case begins, with the folder, the required and the
// available bytes. Other cases can be played.
func TestDemoRoom(t *testing.T) {
	t.Parallel()
	dir, small := t.TempDir(), t.TempDir()
	if err := syscall.Mount("weir-test", small, "tmpfs", 0, "size=2m"); err != nil {
		t.Skip(err)
	}
	t.Cleanup(func() {
		if err := syscall.Unmount(small, 0); err != nil {
			t.Error(err)
		}
	})
	file := filepath.Join(dir, "roomy.yaml")
	require.NoError(t, os.WriteFile(file, []byte(roomy), 0o600))
	begin := func(args ...string) (exitCode, string) {
		return started(t, append([]string{"transfer", "demo", file, "--dir", dir}, args...)...).ended()
	}
	code, said := begin("--dir", "B="+small)
	if code != exitError || !strings.Contains(said, "no room for 1 of 2 cases") || !strings.Contains(said, "roomy, much: needs 10.1 MB in "+
		small+", which has ") {
		t.Errorf("exit code %d: %s", code, said)
	}
	killed := filepath.Join(small, trial.FolderPrefix+"1")
	require.NoError(t, os.Mkdir(killed, 0o700))
	if _, said = begin("--dir", "B="+small); !strings.Contains(said, "these are of demos that run, or were killed: "+killed) {
		t.Error(said)
	}
	require.NoError(t, os.Remove(killed))
	if code, said = begin("--dir", "A="+small); code != exitError || !strings.Contains(said, "needs 7.07 MB in "+small) {
		t.Errorf("exit code %d: %s", code, said)
	}
	if code, said = begin("--dir", "B="+small, "--what-fits", "--json"); code != exitFine || !strings.Contains(said, `"left_out"`) ||
		!strings.Contains(said, "little") {
		t.Errorf("exit code %d: %s", code, said)
	}
	if code, said = begin("--dir", "Q="+small); code != exitUsage || !strings.Contains(said, "sites A, B") {
		t.Errorf("exit code %d: %s", code, said)
	}
	for _, d := range []string{dir, small} {
		if left, err := filepath.Glob(filepath.Join(d, "weir-trial-*")); err != nil || len(left) > 0 {
			t.Errorf("left: %v (%v)", left, err)
		}
	}
}
