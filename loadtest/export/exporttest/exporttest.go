// Package exporttest queries Prometheus and InfluxDB for the values of a run, and compares them
// with the run directory: for the tests of all exports.
package exporttest

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"weir/internal/require"
	"weir/lab/labtest"
	"weir/loadtest/analysis"
	"weir/loadtest/results"
)

// A Truth has the values of a run directory, under the names used by the tools.
type Truth struct {
	Moved, Done map[string]float64 // by server
	failed      map[string]float64 // by class
	latencies   float64
	below       float64 // number of latencies below 0.1 s
	sum         float64
	received    float64 // bytes, by all interfaces
	End         time.Time
	Disks       bool // samples have disks
	Found       *analysis.Findings
}

// TruthOf reads the run in dir.
func TruthOf(t testing.TB, dir string) Truth {
	t.Helper()
	run, err := results.Open(dir)
	require.NoError(t, err)
	w := Truth{Moved: map[string]float64{}, Done: map[string]float64{}, failed: map[string]float64{}}
	for v, err := range run.Intervals() {
		require.NoError(t, err)
		w.Moved[v.Server] += float64(v.Moved)
		w.Done[v.Server] += float64(v.Done)
		for class, n := range v.Failed {
			w.failed[class.String()] += float64(n)
		}
		w.latencies += float64(v.Latency.Count())
		w.sum += v.Latency.Sum()
		v.Latency.Buckets(func(from, _ float64, n int64) {
			if from <= 0.1 {
				w.below += float64(n)
			}
		})
		w.End = v.Start.Add(time.Duration(v.Seconds * 1e9))
	}
	for v, err := range run.Samples() {
		require.NoError(t, err)
		w.Disks = w.Disks || len(v.Disks) > 0
		for _, n := range v.Nets {
			w.received += float64(n.Received)
		}
	}
	if w.Found, err = analysis.Analyze(run); err != nil {
		t.Fatal(err)
	}
	return w
}

// Get fetches a response in JSON.
func Get(t testing.TB, address string, v any) {
	t.Helper()
	text := labtest.Get(t, address)
	if err := json.Unmarshal([]byte(text), v); err != nil {
		t.Fatalf("%v: %s", err, text)
	}
}

// Ask evaluates a query in Prometheus at a time, and returns the values by the given label.
func Ask(t testing.TB, server, query, label string, at time.Time) map[string]float64 {
	t.Helper()
	var answer struct {
		Data struct {
			Result []struct {
				Metric map[string]string
				Value  [2]any
			}
		}
	}
	Get(t, fmt.Sprintf("%s/api/v1/query?query=%s&time=%d", server, url.QueryEscape(query), at.Unix()), &answer)
	all := map[string]float64{}
	for _, r := range answer.Data.Result {
		x, err := strconv.ParseFloat(r.Value[1].(string), 64)
		require.NoError(t, err)
		all[r.Metric[label]] = x
	}
	return all
}

// Prometheus fails t unless a Prometheus server has the values of w.
func Prometheus(t testing.TB, server string, w Truth) {
	t.Helper()
	at := w.End.Add(time.Minute)
	same := func(what string, want, got any) {
		t.Helper()
		if diff := cmp.Diff(want, got, nearly()); diff != "" {
			t.Errorf("%s (-run directory +Prometheus):\n%s", what, diff)
		}
	}
	one := func(x float64) map[string]float64 { return map[string]float64{"": x} }
	same("moved", w.Moved, Ask(t, server, `sum by (server) (last_over_time(weir_moved_bytes_total[1h]))`, "server", at))
	same("done", w.Done, Ask(t, server, `sum by (server) (last_over_time(weir_operations_done_total[1h]))`, "server", at))
	same("failed", w.failed, Ask(t, server, `sum by (class) (last_over_time(weir_operations_failed_total[1h]))`, "class", at))
	same("latencies", one(w.latencies), Ask(t, server, `sum(last_over_time(weir_latency_seconds_count[1h]))`, "", at))
	same("their sum", one(w.sum), Ask(t, server, `sum(last_over_time(weir_latency_seconds_sum[1h]))`, "", at))
	same("below 100 ms", one(w.below), Ask(t, server, `sum(last_over_time(weir_latency_seconds_bucket{le="0.1"}[1h]))`, "", at))
	same("received", one(w.received), Ask(t, server, `sum(last_over_time(weir_net_received_bytes_total[1h]))`, "", at))
	curve := map[string]float64{}
	for _, s := range w.Found.Curve {
		curve[strconv.Itoa(s.Step)] = s.Throughput
	}
	same("curve", curve, Ask(t, server, `last_over_time(weir_curve_throughput_bytes_per_second[1h])`, "step", at))
	same("validity", map[string]float64{w.Found.Validity.Status: 1}, Ask(t, server, `last_over_time(weir_validity[1h]) == 1`, "status", at))
}

// nearly allows for a different order of summation.
func nearly() cmp.Option {
	return cmp.Comparer(func(a, b float64) bool { return math.Abs(a-b) <= 1e-9*max(math.Abs(a), math.Abs(b)) })
}

// InfluxDB fails t unless the database weir of an InfluxDB server has the values of w.
func InfluxDB(t testing.TB, server string, w Truth) {
	t.Helper()
	tag := strings.NewReplacer("\\", "/", "\n", " ") // characters that the protocol cannot encode
	for name, moved := range w.Moved {
		if got := lastOf(t, server, "moved_bytes_total", "weir_operations", "server", tag.Replace(name)); got != moved {
			t.Errorf("%q moved %v, InfluxDB has %v", name, moved, got)
		}
	}
	for field, want := range map[string]float64{"latency_seconds_count": w.latencies, "latency_seconds_sum": w.sum,
		"latency_seconds_le_0.1": w.below} {
		if got := lastOf(t, server, field, "weir_durations", "kind", "read"); !cmp.Equal(got, want, nearly()) {
			t.Errorf("%s is %v, InfluxDB has %v", field, want, got)
		}
	}
	for _, s := range w.Found.Curve {
		if got := lastOf(t, server, "curve_throughput_bytes_per_second", "weir_curve", "step", strconv.Itoa(s.Step)); !cmp.Equal(got,
			s.Throughput, nearly()) {
			t.Errorf("step %d has %v, InfluxDB %v", s.Step, s.Throughput, got)
		}
	}
}

// lastOf returns the last value of a field of the points whose tag has the given value.
func lastOf(t testing.TB, server, field, measurement, tag, value string) float64 {
	t.Helper()
	quote := strings.NewReplacer(`\`, `\\`, `'`, `\'`).Replace(value)
	q := fmt.Sprintf(`SELECT last(%q) FROM %q WHERE %q = '%s'`, field, measurement, tag, quote)
	var answer struct {
		Results []struct {
			Series []struct{ Values [][]any }
		}
	}
	Get(t, server+"/query?db=weir&q="+url.QueryEscape(q), &answer)
	if len(answer.Results) != 1 || len(answer.Results[0].Series) != 1 {
		t.Errorf("%s: %+v", q, answer)
		return math.NaN()
	}
	return answer.Results[0].Series[0].Values[0][1].(float64)
}

// NewDatabase creates a database on the InfluxDB at server. A server that has just started on a
// busy machine may refuse the request for a while; a minute is long enough.
func NewDatabase(t testing.TB, server, name string) {
	t.Helper()
	text := ""
	for end := time.Now().Add(time.Minute); time.Now().Before(end); {
		resp, err := http.PostForm(server+"/query", url.Values{"q": {"CREATE DATABASE " + name}})
		require.NoError(t, err)
		b, err := io.ReadAll(resp.Body)
		require.NoError(t, errors.Join(err, resp.Body.Close()))
		if text = string(b); resp.StatusCode == http.StatusOK && !strings.Contains(text, "error") {
			return
		}
		<-time.After(100 * time.Millisecond)
	}
	t.Fatalf("CREATE DATABASE %s: %s", name, text)
}
