package analysis

import (
	"bytes"
	"encoding/csv"
	"math"
	"strings"
	"testing"
	"time"

	"weir/loadtest/analysis/hosts"
	"weir/loadtest/measure"
	"weir/loadtest/results/resultstest"
	"weir/monitor"
)

// TestRowsAreCSV checks that encoding/csv reads cells with arbitrary contents unchanged.
func TestRowsAreCSV(t *testing.T) {
	want := []string{"plain", "host-1.example.org:1094", "", "a,b", `a"b`, " a", "a\nb", `\.`, "é", "'=x", "a;b", "{}"}
	var out []byte
	r := (*record)(&out)
	r.int(-5)
	for _, s := range want {
		r.text(s)
	}
	r.float(math.NaN())
	r.float(1e-7)
	r.end()
	all, err := csv.NewReader(bytes.NewReader(out)).ReadAll()
	if err != nil || len(all) != 1 {
		t.Fatalf("%q: %v, %v", out, all, err)
	}
	if got, want := strings.Join(all[0], "|"), "-5|"+strings.Join(want, "|")+"||1e-07"; got != want {
		t.Errorf("%q, want %q", got, want)
	}
}

// TestRowsMakeNoGarbage checks that a line of a table allocates no memory.
func TestRowsMakeNoGarbage(t *testing.T) {
	iv := &measure.Interval{Start: resultstest.Start(), Seconds: 1, Step: 1, Phase: measure.Measured, Clients: 4,
		Server: "store01.example.org:1094", Sum: measure.Sum{Done: 7}}
	for i := range 50 {
		iv.Latency.Record(time.Duration(i) * time.Millisecond)
	}
	s := &monitor.Sample{Time: resultstest.Start(), Seconds: 1, Host: "store01.example.org", Role: hosts.Server,
		CPU:  &monitor.CPU{User: 1. / 3},
		Core: []float64{0.1, 0.2}}
	out := make([]byte, 0, 4096)
	for name, f := range map[string]func(){
		"interval": func() { _ = intervalRow(out, iv) },
		"host":     func() { _ = hostRow(out, s) },
	} {
		if n := testing.AllocsPerRun(50, f); n > 0 {
			t.Errorf("%s: %v allocations a row", name, n)
		}
	}
}
