package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"weir/internal/require"
	"weir/transfer"
)

// Lists of names that are too long for a coordinator are not sent.
func TestTooManyNames(t *testing.T) {
	t.Parallel()
	list := filepath.Join(t.TempDir(), "list")
	require.NoError(t, os.WriteFile(list, []byte(strings.Repeat("/store/run1/"+strings.Repeat("x", 1000)+"\n", 31_000)), 0o600))
	f := submitFlags{filesOf: list, what: transfer.Submission{To: "C"}}
	if _, err := f.submission("/store/run1"); err == nil || !strings.Contains(err.Error(), "the names of 31000 files") ||
		!strings.Contains(err.Error(), "request the whole dataset") {
		t.Error(err)
	}
}
