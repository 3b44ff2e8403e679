package main

import (
	"path/filepath"
	"strings"
	"testing"
	"unicode/utf8"

	"weir/internal/require"
	"weir/loadtest/results/resultstest"
)

// The result of nine steps fits on a screen of 80 columns; --verbose prints the rest.
func TestSummaryFitsOnAScreen(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	s := resultstest.Typical()
	require.NoError(t, s.Write(filepath.Join(dir, "run")))
	print := func(more ...string) []string {
		code, said := start(t, dir, "weir", append([]string{"report", "run", "--quiet"}, more...)...).ended()
		if code != exitFine {
			t.Fatalf("exit code %d:\n%s", code, said)
		}
		return strings.Split(strings.TrimSuffix(said, "\n"), "\n")
	}
	lines := print()
	if len(s.Clients) != 9 || len(lines) > 25 {
		t.Errorf("%d lines of %d steps:\n%s", len(lines), len(s.Clients), strings.Join(lines, "\n"))
	}
	for _, line := range lines {
		if n := utf8.RuneCountInString(line); n > 80 {
			t.Errorf("%d columns: %s", n, line)
		}
	}
	if !strings.HasPrefix(lines[0], "valid: ") || !strings.HasSuffix(lines[len(lines)-1], filepath.Join("run", "report.html")) {
		t.Errorf("the verdict is not in the first line, or the report's place not in the last:\n%s", strings.Join(lines, "\n"))
	}
	if n := len(print("--verbose")); n < 2*len(lines) {
		t.Errorf("--verbose prints %d lines", n)
	}
}
