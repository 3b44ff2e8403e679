package analysis

import (
	"bytes"
	"encoding/csv"
	"encoding/json"
	"strings"
	"testing"
	"time"

	"weir/internal/require"
	"weir/loadtest/measure"
	"weir/loadtest/results/resultstest"
	"weir/storage"
)

// cluster returns a service of a redirector and two data servers; the redirector refuses some
// operations, and half of the operations wait.
func cluster() resultstest.Service {
	s := resultstest.Typical()
	s.Clients, s.Duration = []int{1, 16}, 5
	s.Interval = func(iv *measure.Interval) {
		iv.Server = "ds1:1094"
		iv.Waits, iv.Waited, iv.Reopened = iv.Done/2, float64(iv.Done)/200, 1
		for range iv.Done {
			iv.Redirect.Record(3 * time.Millisecond)
		}
		iv.Login.Record(2 * time.Millisecond)
	}
	s.More = func(iv *measure.Interval) []*measure.Interval {
		other := *iv
		other.Server, other.Done, other.Moved, other.Waits, other.Waited = "ds2:1094", iv.Done/3, iv.Moved/3, 0, 0
		other.Failed = map[storage.Class]int64{storage.Reset: 1}
		return []*measure.Interval{&other, {
			Start: iv.Start, Seconds: 1, Step: iv.Step, Phase: iv.Phase, Clients: iv.Clients, Kind: iv.Kind,
			Sum: measure.Sum{
				Begun: iv.Done, Failed: map[storage.Class]int64{storage.Busy: 2, storage.Canceled: 1},
			},
		}}
	}
	return s
}

func TestServersShareEachStep(t *testing.T) {
	f := of(t, cluster())
	for i := range f.Curve {
		p := &f.Curve[i]
		if len(p.Servers) != 3 {
			t.Fatalf("servers %+v", p.Servers)
		}
		self, one, two := p.Servers[0], p.Servers[1], p.Servers[2]
		if self.Name != "" || self.Errors != 10 || self.ErrorsBy[storage.Busy] != 10 || self.Done != 0 || len(self.ErrorsBy) != 1 {
			t.Errorf("the redirector: %+v", self)
		}
		require.Near(t, "share of ds1", one.ThroughputShare, .75, .01)
		require.Near(t, "share of ds2", two.OperationsShare, .25, .02)
		require.Near(t, "sum", one.Throughput+two.Throughput, p.Throughput, 1e-9)
		if two.ErrorsBy[storage.Reset] != 5 || one.Errors != 0 {
			t.Errorf("data servers: %+v, %+v", one, two)
		}
		if p.Redirect == nil || p.Redirect.P50 < .00297 || p.Redirect.P99 > .00303 || p.Waits == 0 || p.Reopened != 10 {
			t.Errorf("redirects %+v, %d waits, %d reopened", p.Redirect, p.Waits, p.Reopened)
		}
		require.Near(t, "waited", p.Waited, float64(p.Waits)/100, .2)
	}
	for _, part := range f.Servers {
		if part.Name == "" && part.ErrorsBy[storage.Busy] != 20 {
			t.Errorf("the redirector in all: %+v", part)
		}
	}
	if !strings.Contains(f.Work, "session kept") {
		t.Errorf("workload %q", f.Work)
	}
}

// TestRedirectsInTables checks that quantities without data are absent from the findings, and empty
// cells of the table.
func TestRedirectsInTables(t *testing.T) {
	for _, c := range []struct {
		s    resultstest.Service
		want bool
	}{{cluster(), true}, {resultstest.Typical(), false}} {
		f := of(t, c.s)
		b, err := json.Marshal(f.Curve[0])
		require.NoError(t, err)
		for _, key := range []string{"redirect_seconds", "waits", "waited_seconds", "reopened"} {
			if bytes.Contains(b, []byte(`"`+key+`":`)) != c.want {
				t.Errorf("findings have %s: %v, want %v", key, !c.want, c.want)
			}
		}
		var out bytes.Buffer
		require.NoError(t, CurveCSV(&out, f))
		rows, err := csv.NewReader(&out).ReadAll()
		require.NoError(t, err)
		cell := map[string]string{}
		for i, name := range rows[0] {
			cell[name] = rows[1][i]
		}
		if got := cell["redirect_p50_seconds"] != "" && cell["redirect_p99_seconds"] != "" && cell["waits"] != "0" &&
			cell["waited_seconds"] != "0" && cell["reopened"] != "0"; got != c.want {
			t.Errorf("table has %v", cell)
		}
	}
}

func TestSeriesTellKindsAndDistributions(t *testing.T) {
	s := cluster()
	s.More = func(iv *measure.Interval) []*measure.Interval {
		write := *iv
		write.Kind, write.Done = storage.Write, 2*iv.Done
		return []*measure.Interval{&write}
	}
	run := written(t, s)
	f, series, err := AnalyzeWithSeries(run)
	require.NoError(t, err)
	if len(series.Kinds) != 2 || series.Kinds[0] != storage.Read || series.Kinds[1] != storage.Write {
		t.Errorf("kinds %v", series.Kinds)
	}
	for _, p := range series.Points {
		require.Near(t, "writes", p.OperationsBy[storage.Write], 2*p.OperationsBy[storage.Read], 1e-9)
		require.Near(t, "both", p.OperationsBy[storage.Write]+p.OperationsBy[storage.Read], p.Operations, 1e-9)
	}
	if len(series.Latencies) != len(f.Curve) {
		t.Fatalf("%d distributions of %d steps", len(series.Latencies), len(f.Curve))
	}
	for i, d := range series.Latencies {
		n, last := int64(0), 0.0
		for _, b := range d.Bins {
			if b.From < last || b.To < b.From || b.Count <= 0 {
				t.Fatalf("bin %+v after %v", b, last)
			}
			n, last = n+b.Count, b.To
		}
		if n != f.Curve[i].Latency.Count || d.Step != f.Curve[i].Step || d.Quantiles != *f.Curve[i].Latency {
			t.Errorf("distribution of step %d counts %d, want %d", d.Step, n, f.Curve[i].Latency.Count)
		}
	}
}
