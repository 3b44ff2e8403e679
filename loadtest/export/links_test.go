package export_test

import (
	"testing"
	"time"

	"weir/internal/require"
	"weir/loadtest/analysis"
	"weir/loadtest/export/exporttest"
	"weir/loadtest/results"
	"weir/loadtest/results/resultstest"
)

// The links of a data challenge have at most six series each, whose sums are those of links.jsonl.
func TestLinks(t *testing.T) {
	c := resultstest.Rehearsal()
	c.Minutes, c.Every = 12, 10
	dir := t.TempDir() + "/run"
	require.NoError(t, c.Write(dir))
	p := page(t, dir)
	p.Linger(t.Context(), analysis.Analyze, func(time.Duration) {})
	_, _, text := fetched(t, p, "")
	all := exporttest.Families(t, text)
	run, err := results.Open(dir)
	require.NoError(t, err)
	moved, failed := int64(0), 0
	for l, err := range run.Links() {
		require.NoError(t, err)
		moved, failed = moved+l.Moved, failed+l.Failed
	}
	total, _ := exporttest.Sum(all["weir_link_moved_bytes_total"])
	require.Near(t, "bytes of all links", total, float64(moved), 1)
	lost, _ := exporttest.Sum(all["weir_link_copies_failed_total"])
	require.Near(t, "failed copies", lost, float64(failed), 0.1)
	series := 0
	for name, f := range all {
		if len(name) > 10 && name[:10] == "weir_link_" {
			series += len(f.GetMetric())
		}
	}
	if series <= 4*c.Links || series > 6*c.Links {
		t.Errorf("%d series of %d links", series, c.Links)
	}
}
