package analysis

import (
	"bytes"
	"encoding/csv"
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"testing"

	"weir/internal/require"
	"weir/loadtest/measure"
	"weir/loadtest/results"
	"weir/loadtest/results/resultstest"
	"weir/monitor"
)

// readTable reads a CSV file of the run directory as columns by name.
func readTable(t *testing.T, dir, name string) map[string][]string {
	t.Helper()
	file, err := os.Open(filepath.Join(dir, name))
	require.NoError(t, err)
	defer file.Close()
	rows, err := csv.NewReader(file).ReadAll()
	require.NoError(t, err)
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
		require.NoError(t, err)
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
	f, series, written, err := Write(run)
	require.NoError(t, err)
	require.NoError(t, written())
	curve := readTable(t, run.Dir, results.CurveFile)
	require.Near(t, "summed throughput", sum(t, curve["throughput_bytes_per_second"]), f.Curve[0].Throughput+f.Curve[1].Throughput+
		f.Curve[2].Throughput, 1e-12)
	intervals := readTable(t, run.Dir, results.IntervalsCSVFile)
	moved, done := 0.0, 0.0
	for _, p := range series.Points {
		moved += p.Throughput * p.Seconds
		done += p.Operations * p.Seconds
	}
	require.Near(t, "moved bytes", sum(t, intervals["moved_bytes"]), moved, 1e-9)
	require.Near(t, "operations", sum(t, intervals["done"]), done, 1e-9)
	if got := intervals["server"][0]; got != "'=cmd()" {
		t.Errorf("a spreadsheet would run %q", got)
	}
	hosts := readTable(t, run.Dir, results.HostsCSVFile)
	if n := len(hosts["time"]); n != 2*len(intervals["start"]) || hosts["host"][0] != "'@store.example.org" {
		t.Errorf("%d lines of hosts, the first of %s", n, hosts["host"][0])
	}
	b, err := os.ReadFile(filepath.Join(run.Dir, results.FindingsFile))
	require.NoError(t, err)
	var again Findings
	if err := json.Unmarshal(b, &again); err != nil || again.Verdict != f.Verdict || len(again.Curve) != 3 ||
		again.Curve[2].Latency.P99 != f.Curve[2].Latency.P99 {
		t.Errorf("findings.json does not hold the findings: %v", err)
	}
	if _, err := results.Open(run.Dir); err != nil {
		t.Errorf("the run can not be read again: %v", err)
	}
}

// TestPromisedKeys checks the keys on which scripts rely, since the first version of the format.
func TestPromisedKeys(t *testing.T) {
	b, err := json.Marshal(of(t, resultstest.Typical()))
	require.NoError(t, err)
	var all map[string]json.RawMessage
	require.NoError(t, json.Unmarshal(b, &all))
	var curve []map[string]json.RawMessage
	require.NoError(t, json.Unmarshal(all["curve"], &curve))
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
	b := require.File(t, path)
	whole := of(t, resultstest.Typical())
	for _, share := range []float64{0.01, 0.3, 0.5, 0.77, 0.999} {
		require.NoError(t, os.WriteFile(path, b[:int(share*float64(len(b)))], 0o600))
		cut, err := results.Open(run.Dir)
		require.NoError(t, err)
		f, err := Analyze(cut)
		require.NoError(t, err)
		if find(t, f, "data").Status == OK {
			t.Errorf("%v of the run is called whole", share)
		}
		if n := len(f.Curve); n > 1 && !slices.EqualFunc(f.Curve[:n-1], whole.Curve[:n-1],
			func(a, b Step) bool { return a.Throughput == b.Throughput && a.Done == b.Done }) {
			t.Errorf("%v of the run gives other figures for the steps that it has", share)
		}
	}
}

// TestTheSameFindingsAgain checks that repeated analyses give equal sums of seconds, which depend
// on their order because of rounding.
func TestTheSameFindingsAgain(t *testing.T) {
	hour := resultstest.Hour()
	hour.Seconds, hour.Steps = 30, 3
	dir := filepath.Join(t.TempDir(), "run")
	require.NoError(t, hour.Write(dir))
	var first []byte
	for range 5 {
		run, err := results.Open(dir)
		require.NoError(t, err)
		f, err := Analyze(run)
		require.NoError(t, err)
		b, err := json.Marshal(f)
		require.NoError(t, err)
		if first == nil {
			first = b
		}
		if !bytes.Equal(b, first) {
			t.Fatal("the findings differ")
		}
	}
}
