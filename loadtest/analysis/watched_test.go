package analysis

import (
	"cmp"
	"slices"
	"testing"
	"time"

	"weir/internal/require"
	"weir/loadtest/results/resultstest"
	"weir/monitor"
)

func TestSeriesAreInOrderOfTime(t *testing.T) {
	s := resultstest.Typical()
	s.Clients = s.Clients[:2]
	s.Sample = func(x *monitor.Sample) { x.Time = x.Time.Add(time.Duration(x.Time.Second()%3) * -7 * time.Second) }
	_, series, err := AnalyzeWithSeries(written(t, s))
	require.NoError(t, err)
	if len(series.Hosts) != 2 {
		t.Fatalf("%d hosts", len(series.Hosts))
	}
	for _, h := range series.Hosts {
		if len(h.Points) != 20 || !slices.IsSortedFunc(h.Points, func(a, b HostPoint) int { return cmp.Compare(a.At, b.At) }) {
			t.Errorf("%s: %d points, want 20 in order", h.Host, len(h.Points))
		}
	}
}
