package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"weir/internal/require"
	"weir/lab"
	"weir/lab/labtest"
)

// Part reads of files from a list without sizes, on servers without listings, request all parts of
// the files.
func TestPartsOfFilesWithoutSizes(t *testing.T) {
	t.Parallel()
	s := labtest.Start(t, lab.NginxConfig{})
	fill(t, s.Data, 4, 1<<20)
	entries, err := os.ReadDir(s.Data)
	require.NoError(t, err)
	var lines strings.Builder
	for _, e := range entries {
		lines.WriteString(e.Name() + "\n")
	}
	list := filepath.Join(t.TempDir(), "list.txt")
	require.NoError(t, os.WriteFile(list, []byte(lines.String()), 0o600))
	f := measureFor(t, "--target", s.URL, "--clients", "2", "--duration", "1s", "--set", "load.ramp=0s", "--set", "load.warmup=100ms",
		"--set", "files.list="+list, "--set", "workload.part={size: 4KiB, count: 8}")
	c := f.Curve[0]
	const read = 8 * 4096 // a read of each client may have begun before the measurement, another one ended after it
	if c.Errors > 0 || c.Done == 0 || c.Moved < (c.Done-2)*read || c.Moved > (c.Done+2)*read {
		t.Errorf("%d bytes in %d reads, want 8 parts of 4096 each: %d errors", c.Moved, c.Done, c.Errors)
	}
}
