package main

import (
	"os"
	"path/filepath"
	"testing"

	"weir/internal/require"
	"weir/lab"
)

// A run on S3 reads and writes objects, verifies both by their ETags, and leaves nothing.
func TestRunOnS3(t *testing.T) {
	t.Parallel()
	s := lab.StartS3(t, lab.S3Config{})
	secret := filepath.Join(t.TempDir(), "secret")
	require.NoError(t, os.WriteFile(secret, []byte(s.Settings[lab.S3Secret]+"\n"), 0o600))
	f := measureFor(t, "--target", s.URL+"/test", "--clients", "4", "--duration", "2s", "--set", "load.ramp=100ms",
		"--set", "load.warmup=500ms", "--set", "auth={method: s3, user: "+s.Settings[lab.S3Key]+", password_file: "+secret+"}",
		"--set", "files.make={count: 20, size: 64KiB}",
		"--set", "workload={kind: mix, mix: {read: 5, write: 3, stat: 2, list: 1, mkdir: 1, remove: 2, checksum: 1}, size: 64KiB, "+
			"verify: 20%, think: 5ms}")
	for _, c := range f.Curve {
		if c.Errors > 0 || c.Done < 20 || c.Verified == 0 || c.Unverified > 0 {
			t.Errorf("%d done, %d errors %v, %d verified, %d unverifiable", c.Done, c.Errors, c.ErrorsBy, c.Verified, c.Unverified)
		}
	}
	if left, err := filepath.Glob(filepath.Join(s.Data, "test", "weir-*")); err != nil || len(left) > 0 {
		t.Errorf("left behind: %v (%v)", left, err)
	}
}
