package report

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"weir/internal/require"
	"weir/loadtest/analysis"
	"weir/loadtest/measure"
	"weir/storage"
)

// FuzzPage shows findings of any content: texts and pages are produced, without NaN or infinite
// numbers.
func FuzzPage(f *testing.F) {
	whole, err := os.ReadFile(filepath.Join("testdata", "small.json"))
	require.NoError(f, err)
	f.Add(whole, 1e9, 1.0, 3.0)
	f.Add([]byte(`{"curve":[{"clients":-1,"latency_seconds":{}},{"rate_per_second":1e308,"throughput_bytes_per_second":1e308,"throughput_low":-1e308,"throughput_high":1e308}],"model":"open","optimum":{},"knee":{}}`), -1e300, 0.0, 1e300)
	f.Add([]byte(`{"measure":"rate","curve":[{"latency_seconds":{"p50":1e-300,"max":1e300},"steady":false,"drift_ratio":1e300}],"phases":[{}],"kinds":[{}]}`), 0.0, -1.0, 0.0)
	f.Add([]byte(`{"balance":{"source":"clients","backends":[{"name":"a\u001b"},{"saturated":{}}],"first_saturated":{"backend":"<b>","clients":-1}},"curve":[{"clients":2,"balance":{},"backends":[{"name":"a","sessions":1e308,"cpu_busy":-1,"share":1e308},{"throughput_bytes_per_second":1e308}]},{"balance":{"imbalance":1e308,"choices":-1},"clients":4,"backends":[{"sessions":1}]},{"clients":8,"balance":{},"backends":[{},{"queue":1,"throughput_bytes_per_second":1e308,"balancer_bytes_per_second":0}]}]}`), 1e300, 1.0, 1.0)
	f.Fuzz(func(t *testing.T, b []byte, y, seconds, at float64) {
		var found analysis.Findings
		if json.Unmarshal(b, &found) != nil {
			return
		}
		point := analysis.Point{At: at, Seconds: seconds, Phase: measure.Measured, Throughput: y, Operations: y, P50: y, P99: seconds}
		point.ErrorsBy[storage.Reset] = seconds
		host := analysis.HostPoint{At: at, Seconds: seconds, CPU: y, ServerCores: y, DiskRead: y, Sent: seconds, MemoryUsed: y, User: at,
			DiskBusy: seconds}
		server := []analysis.ServerPoint{{At: at, Throughput: y, Operations: seconds, Errors: y}, {At: seconds}}
		s := &analysis.Series{Points: []analysis.Point{point, point},
			Hosts: []analysis.HostSeries{{Host: "a\x1b", Points: []analysis.HostPoint{host}},
				{Host: "<b>", Points: []analysis.HostPoint{host, host}}},
			Backends: []analysis.BackendSeries{{Name: "<a>", Points: []analysis.BackendPoint{{At: at, Throughput: y, Sessions: -1},
				{At: seconds, Sessions: y}}}, {Points: []analysis.BackendPoint{{At: at}, {At: seconds, Throughput: 1}}}},
			Servers: []analysis.ServerSeries{{Name: "<a>", Points: server}, {Points: server[:1]}},
			Classes: []storage.Class{storage.Reset, 99 % storage.Classes},
			Kinds:   []storage.Kind{storage.Read}, Heat: &analysis.Heat{At: []float64{at, at + 1, at + 2}, Latency: []float64{1e-9, 2e-9, 4e9},
				Counts: [][]int64{{int64(y), 0}, {0, 1}}},
			Latencies: []analysis.Distribution{{Step: 1, Bins: []analysis.Bin{{From: 0, To: at, Count: 1},
				{From: at, To: at, Count: int64(seconds)}}}},
			Events: []measure.Event{{Class: storage.Other, Text: string(b[:min(len(b), 99)])}}}
		var page, text bytes.Buffer
		require.NoError(t, HTML(&page, &found, s))
		require.NoError(t, Text(&text, &found, Options{Verbose: true}))
		for _, bad := range []string{`"NaN`, `"+Inf`, ` NaN`, `="-Inf`} {
			if strings.Contains(body(t, page.String()), bad) && !bytes.Contains(b, []byte(bad)) {
				t.Fatalf("the page holds %s", bad)
			}
		}
	})
}
