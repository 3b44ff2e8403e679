package campaign

import (
	"os"
	"path/filepath"
	"testing"

	"weir/internal/require"
	"weir/loadtest/analysis/fact"
	"weir/loadtest/measure"
	"weir/loadtest/results/resultstest"
	"weir/storage"
)

// TestFoldersWithoutStepsAreLeftOut compares all entries of a folder, as in runs/*: of two runs with
// steps, the others are left out; of one run, or with a name that does not exist, it is an error.
func TestFoldersWithoutStepsAreLeftOut(t *testing.T) {
	dir := t.TempDir()
	path := func(name string) string { return filepath.Join(dir, name) }
	write := func(name string, change func(*resultstest.Service)) {
		s := resultstest.Typical()
		s.Clients, s.Duration = []int{1, 4}, 2
		change(&s)
		require.NoError(t, s.Write(path(name)))
	}
	write("a", func(*resultstest.Service) {})
	write("b", func(*resultstest.Service) {})
	write("no-steps", func(s *resultstest.Service) { s.Clients = nil })
	write("failed", func(s *resultstest.Service) {
		s.Interval = func(iv *measure.Interval) {
			*iv = measure.Interval{Start: iv.Start, Seconds: iv.Seconds, Step: iv.Step, Phase: iv.Phase, Clients: iv.Clients, Kind: iv.Kind,
				Sum: measure.Sum{Begun: 10, Failed: map[storage.Class]int64{storage.Refused: 10}}}
		}
	})
	require.NoError(t, os.Mkdir(path("empty"), 0o700))
	require.NoError(t, os.WriteFile(path("notes.txt"), nil, 0o600))
	require.NoError(t, os.Symlink("b", path("latest")))
	all, err := filepath.Glob(path("*"))
	require.NoError(t, err)
	groups, _, left, err := Groups(all)
	require.NoError(t, err)
	if len(groups) != 2 || groups[0].Name != "a" || groups[1].Name != "b" || len(left) != 5 || !fact.Has(left, "compare.left_out.link") {
		t.Errorf("%d groups, left out: %q", len(groups), fact.Texts(left))
	}
	for _, args := range [][]string{{path("a"), path("no-steps"), path("failed")}, {path("a"), path("b"), path("typo")}} {
		if _, _, _, err := Groups(args); err == nil {
			t.Errorf("%q is compared", args)
		}
	}
}
