package export_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"testing"
	"time"

	"weir/internal/require"
	"weir/loadtest/analysis"
	"weir/loadtest/challenge"
	"weir/loadtest/export/exporttest"
	"weir/loadtest/results"
	"weir/loadtest/results/resultstest"
)

// The links of a data challenge have at most seven series each, whose sums are those of links.jsonl.
func TestLinks(t *testing.T) {
	c := resultstest.Rehearsal()
	c.Minutes, c.Every = 12, 10
	dir := t.TempDir() + "/run"
	require.NoError(t, c.Write(dir))
	source, dest := c.Ends(0)
	line, err := json.Marshal(results.LinkInterval{Start: resultstest.Start().Add(12 * time.Minute), Seconds: 1, Source: c.SiteName(source),
		Dest: c.SiteName(dest), Moved: 10, Wrong: 7, Reason: challenge.Paced})
	require.NoError(t, err)
	path := filepath.Join(dir, results.LinksFile)
	require.NoError(t, os.WriteFile(path, append(append(require.File(t, path), line...), '\n'), 0o600))
	p := page(t, dir)
	p.Linger(t.Context(), analysis.Analyze, func(time.Duration) {})
	_, _, text := fetched(t, p, "")
	all := exporttest.Families(t, text)
	run, err := results.Open(dir)
	require.NoError(t, err)
	moved, wrong, failed := int64(0), int64(0), 0
	for l, err := range run.Links() {
		require.NoError(t, err)
		moved, wrong, failed = moved+l.Moved, wrong+l.Wrong, failed+l.Failed
	}
	total, _ := exporttest.Sum(all["weir_link_moved_bytes_total"])
	require.Near(t, "bytes of all links", total, float64(moved), 1)
	off, _ := exporttest.Sum(all["weir_link_wrong_bytes_total"])
	require.Near(t, "bytes of wrong copies", off, float64(wrong), 1)
	lost, _ := exporttest.Sum(all["weir_link_copies_failed_total"])
	require.Near(t, "failed copies", lost, float64(failed), 0.1)
	series := 0
	for name, f := range all {
		if len(name) > 10 && name[:10] == "weir_link_" {
			series += len(f.GetMetric())
		}
	}
	if series <= 4*c.Links || series > 6*c.Links+1 || wrong == 0 {
		t.Errorf("%d series of %d links", series, c.Links)
	}
}
