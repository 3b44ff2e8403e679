package gallery

import (
	"bytes"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"weir/internal/require"
	"weir/loadtest/analysis"
	"weir/loadtest/results"
	"weir/loadtest/results/resultstest"
)

// A data challenge has figures of its links, with names that stay the same, and their numbers.
func TestFiguresOfAChallenge(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "run")
	require.NoError(t, resultstest.Rehearsal().Write(dir))
	run, err := results.Open(dir)
	require.NoError(t, err)
	f, s, err := analysis.AnalyzeWithSeries(run)
	require.NoError(t, err)
	set := OfRun(f, s, "weir 1.2.3")
	names := Names(set.Figures)
	for _, want := range []string{"matrix-of-links", "rate-of-links-vs-time", "worst-links-vs-time", "a-to-c-vs-time"} {
		if !slices.Contains(names, want) {
			t.Errorf("no %s in %q", want, names)
		}
	}
	matrix := &set.Figures[slices.Index(names, "matrix-of-links")]
	var numbers bytes.Buffer
	require.NoError(t, Numbers(&numbers, matrix))
	if text := numbers.String(); !strings.HasPrefix(text, "source,destination,achieved share of the target (%),note\n") ||
		!strings.Contains(text, "\nA,C,6") || strings.Count(text, "\n") != 1+12+6+6+1 {
		t.Errorf("%s", text)
	}
	if c := set.Caption(matrix); !strings.Contains(c, "n = 12 fields") {
		t.Errorf("%s", c)
	}
}
