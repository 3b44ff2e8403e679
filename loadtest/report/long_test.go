package report

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"weir/internal/require"
	"weir/internal/tier"
	"weir/loadtest/analysis"
	"weir/loadtest/results"
	"weir/loadtest/results/resultstest"
)

// The page of a long run of many hosts stays small, and lists the parts that it leaves out. The
// same run is made each time.
func TestPageOfALongRun(t *testing.T) {
	tier.Slow(t, "analyzes minutes of 50 hosts")
	long := resultstest.Hour()
	long.Seconds, long.Steps, long.Stores, long.Writes = 720, 4, 2, 1
	var pages [2]bytes.Buffer
	for i := range pages {
		dir := filepath.Join(t.TempDir(), "run")
		require.NoError(t, long.Write(dir))
		run, err := results.Open(dir)
		require.NoError(t, err)
		f, series, written, err := analysis.Write(run)
		require.NoError(t, err)
		require.NoError(t, written())
		if n := len(series.Points); n != long.Seconds || len(series.Hosts) != 50 {
			t.Fatalf("%d seconds of %d hosts", n, len(series.Hosts))
		}
		require.NoError(t, HTML(&pages[i], f, series))
		if table, err := os.ReadFile(filepath.Join(dir, results.HostsCSVFile)); err != nil || bytes.Count(table, []byte("\n")) != 1+
			50*long.Seconds {
			t.Errorf("hosts.csv has %d lines, %v", bytes.Count(table, []byte("\n")), err)
		}
	}
	if n := pages[0].Len(); n > 4<<20 {
		t.Errorf("the page has %d bytes", n)
	}
	if !strings.Contains(pages[0].String(), "Without scripts: lowest and highest value of each 2.4 s") {
		t.Error("the page does not say that points are left out")
	}
	if !bytes.Equal(pages[0].Bytes(), pages[1].Bytes()) {
		t.Error("the same run gives two pages")
	}
}
