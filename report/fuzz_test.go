package report

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"weir/analysis"
	"weir/measure"
)

// FuzzPage shows findings of any content: texts and pages come out, without
// numbers that are none.
func FuzzPage(f *testing.F) {
	whole, err := os.ReadFile(filepath.Join("testdata", "small.json"))
	if err != nil {
		f.Fatal(err)
	}
	f.Add(whole, 1e9, 1.0, 3.0)
	f.Add([]byte(`{"curve":[{"clients":-1,"latency_seconds":{}},{"rate_per_second":1e308,"throughput_bytes_per_second":1e308,"throughput_low":-1e308,"throughput_high":1e308}],"model":"open","optimum":{},"knee":{}}`), -1e300, 0.0, 1e300)
	f.Add([]byte(`{"measure":"rate","curve":[{"latency_seconds":{"p50":1e-300,"max":1e300},"steady":false,"drift_ratio":1e300}],"phases":[{}],"kinds":[{}]}`), 0.0, -1.0, 0.0)
	f.Fuzz(func(t *testing.T, b []byte, y, seconds, at float64) {
		var found analysis.Findings
		if json.Unmarshal(b, &found) != nil {
			return
		}
		point := analysis.Point{At: at, Seconds: seconds, Phase: measure.Hold, Throughput: y, Operations: y, P50: y, P99: seconds}
		host := analysis.HostPoint{At: at, CPU: y, ServerCores: y, DiskRead: y, Sent: seconds}
		s := &analysis.Series{Points: []analysis.Point{point, point}, Hosts: []analysis.HostSeries{{Points: []analysis.HostPoint{host}}}}
		var page, text bytes.Buffer
		if err := HTML(&page, &found, s); err != nil {
			t.Fatal(err)
		}
		if err := Text(&text, &found, Options{}); err != nil {
			t.Fatal(err)
		}
		for _, bad := range []string{`"NaN`, `"+Inf`, ` NaN`, `="-Inf`} {
			if strings.Contains(body(t, page.String()), bad) && !bytes.Contains(b, []byte(bad)) {
				t.Fatalf("the page holds %s", bad)
			}
		}
	})
}
