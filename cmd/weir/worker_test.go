package main

import (
	"os/exec"
	"testing"

	"weir/internal/require"
)

// A job of a batch system finds programs even if it has no PATH, and a PATH that is set is kept.
func TestAJobWithoutAPath(t *testing.T) {
	for path, found := range map[string]bool{"": true, "/nowhere": false} {
		t.Setenv("PATH", path)
		require.NoError(t, setPath())
		if _, err := exec.LookPath("sh"); (err == nil) != found {
			t.Errorf("PATH=%q: %v", path, err)
		}
	}
}
