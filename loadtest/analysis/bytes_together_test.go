package analysis

import (
	"strings"
	"testing"

	"weir/internal/require"
	"weir/loadtest/results"
	"weir/loadtest/results/resultstest"
)

// TestManyHostsAreComparedTogether checks that the sum of many hosts is compared with the clients,
// as each host carries only a part.
func TestManyHostsAreComparedTogether(t *testing.T) {
	long := resultstest.Hour()
	long.Seconds, long.Steps, long.Stores, long.Writes = 24, 3, 4, 2
	dir := t.TempDir() + "/run"
	require.NoError(t, long.Write(dir))
	run, err := results.Open(dir)
	require.NoError(t, err)
	f, err := Analyze(run)
	require.NoError(t, err)
	if c := find(t, f, "both ends agree"); c.Status != OK || !strings.Contains(c.Detail, "interfaces of ") {
		t.Errorf("%+v", c)
	}
}
