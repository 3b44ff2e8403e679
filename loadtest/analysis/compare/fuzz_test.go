package compare

import (
	"encoding/json"
	"strings"
	"testing"

	"weir/internal/require"
	"weir/loadtest/analysis"
	"weir/loadtest/results"
	"weir/loadtest/scenario"
)

// FuzzOf compares arbitrary contents of findings.json: the result is an error or a comparison that
// can be written, never a panic.
func FuzzOf(f *testing.F) {
	f.Add([]byte(`{"curve":[{"step":1,"clients":5,"throughput_bytes_per_second":1e6,"moved_bytes":1}]}`),
		[]byte(`{"measure":"rate","curve":[{"clients":5,"done":3,"operations_per_second":2}]}`), uint8(3))
	f.Add([]byte(`{"curve":[{"rate_per_second":1e-300,"latency_seconds":{"p50":1e308}},{"rate_per_second":1e-300}],"optimum":{"clients":-1,"inside_tested_range":true},"knee":{}}`), []byte(`{}`), uint8(9))
	f.Fuzz(func(t *testing.T, one, two []byte, n uint8) {
		var groups []Group
		for i, b := range [][]byte{one, two} {
			g := Group{Name: string(rune('A' + i)), Levels: map[string]string{"f": string(rune('0' + i)), "g": "x"}}
			for k := range int(n%12) + 1 {
				found := new(analysis.Findings)
				if json.Unmarshal(b, found) != nil || len(found.Curve) > 50 {
					return
				}
				g.Runs = append(g.Runs, NewRun("d", results.About{}, &scenario.Plan{}, found).Of("c", k, g.Levels))
			}
			groups = append(groups, g)
		}
		c, err := Of(groups, Options{Metrics: []string{"throughput", "all"},
			Factors: []Factor{{"f", []string{"0", "1"}}, {"g", []string{"x", "y"}}, {"h", nil}}})
		if err != nil {
			return
		}
		require.NoError(t, c.JSON(&strings.Builder{}))
	})
}
