package analysis

import (
	"encoding/csv"
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"testing"

	"weir/measure"
	"weir/monitor"
	"weir/results"
	"weir/results/resultstest"
)

// readTable reads a CSV file of the run directory as columns by name.
func readTable(t *testing.T, dir, name string) map[string][]string {
	t.Helper()
	file, err := os.Open(filepath.Join(dir, name))
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	rows, err := csv.NewReader(file).ReadAll()
	if err != nil {
		t.Fatal(err)
	}
	columns := map[string][]string{}
	for i, head := range rows[0] {
		columns[head] = []string{}
		for _, row := range rows[1:] {
			columns[head] = append(columns[head], row[i])
		}
	}
	return columns
}

func sum(t *testing.T, texts []string) float64 {
	t.Helper()
	total := 0.0
	for _, text := range texts {
		x, err := strconv.ParseFloat(text, 64)
		if err != nil {
			t.Fatal(err)
		}
		total += x
	}
	return total
}

func TestFilesSayWhatTheFindingsSay(t *testing.T) {
	s := resultstest.Typical()
	s.Clients = []int{2, 8, 32}
	s.Interval = func(iv *measure.Interval) { iv.Server = "=cmd()" }
	s.Sample = func(x *monitor.Sample) { x.Host = "@" + x.Host }
	run := written(t, s)
	f, series, err := Write(run)
	if err != nil {
		t.Fatal(err)
	}
	curve := readTable(t, run.Dir, results.CurveFile)
	near(t, "summed throughput", sum(t, curve["throughput_bytes_per_second"]), f.Curve[0].Throughput+f.Curve[1].Throughput+
		f.Curve[2].Throughput, 1e-12)
	intervals := readTable(t, run.Dir, results.IntervalsCSVFile)
	moved, done := 0.0, 0.0
	for _, p := range series.Points {
		moved += p.Throughput * p.Seconds
		done += p.Operations * p.Seconds
	}
	near(t, "moved bytes", sum(t, intervals["moved_bytes"]), moved, 1e-9)
	near(t, "operations", sum(t, intervals["done"]), done, 1e-9)
	if got := intervals["server"][0]; got != "'=cmd()" {
		t.Errorf("a spreadsheet would run %q", got)
	}
	hosts := readTable(t, run.Dir, results.HostsCSVFile)
	if n := len(hosts["time"]); n != 2*len(intervals["start"]) || hosts["host"][0] != "'@store.example.org" {
		t.Errorf("%d lines of hosts, the first of %s", n, hosts["host"][0])
	}
	b, err := os.ReadFile(filepath.Join(run.Dir, results.FindingsFile))
	if err != nil {
		t.Fatal(err)
	}
	var again Findings
	if err := json.Unmarshal(b, &again); err != nil || again.Verdict != f.Verdict || len(again.Curve) != 3 ||
		again.Curve[2].Latency.P99 != f.Curve[2].Latency.P99 {
		t.Errorf("findings.json does not hold the findings: %v", err)
	}
	if _, err := results.Open(run.Dir); err != nil {
		t.Errorf("the run can not be read again: %v", err)
	}
}

// The keys that scripts rely on, as the format's first version promised them.
func TestPromisedKeys(t *testing.T) {
	b, err := json.Marshal(of(t, resultstest.Typical()))
	if err != nil {
		t.Fatal(err)
	}
	var all map[string]json.RawMessage
	if err := json.Unmarshal(b, &all); err != nil {
		t.Fatal(err)
	}
	var curve []map[string]json.RawMessage
	if err := json.Unmarshal(all["curve"], &curve); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		in   map[string]json.RawMessage
		keys []string
	}{
		{all, []string{"version", "run", "validity", "curve", "phases", "fits", "knee", "optimum", "bottleneck", "boundaries", "warnings"}},
		{curve[0], []string{"clients", "throughput_bytes_per_second", "throughput_low", "throughput_high", "operations_per_second", "errors",
			"error_ratio", "latency_seconds", "first_byte_seconds", "per_client_bytes_per_second", "steady", "job_seconds", "cpu_efficiency"}},
	} {
		for _, key := range c.keys {
			if _, ok := c.in[key]; !ok {
				t.Errorf("key %s is gone", key)
			}
		}
	}
}

func TestBrokenOffRunIsAnalysed(t *testing.T) {
	run := written(t, resultstest.Typical())
	path := filepath.Join(run.Dir, results.IntervalsFile)
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	whole := of(t, resultstest.Typical())
	for _, share := range []float64{0.01, 0.3, 0.5, 0.77, 0.999} {
		if err := os.WriteFile(path, b[:int(share*float64(len(b)))], 0o600); err != nil {
			t.Fatal(err)
		}
		cut, err := results.Open(run.Dir)
		if err != nil {
			t.Fatal(err)
		}
		f, err := Analyze(cut)
		if err != nil {
			t.Fatal(err)
		}
		if find(t, f, "data").Status == OK {
			t.Errorf("%v of the run is called whole", share)
		}
		if n := len(f.Curve); n > 1 && !slices.EqualFunc(f.Curve[:n-1], whole.Curve[:n-1],
			func(a, b Step) bool { return a.Throughput == b.Throughput && a.Done == b.Done }) {
			t.Errorf("%v of the run gives other figures for the steps that it has", share)
		}
	}
}
