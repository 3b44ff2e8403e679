package table

import (
	"math"
	"os"
	"strings"
	"testing"

	"weir/internal/require"
)

func readFile(t *testing.T, name string) (*Table, error) {
	t.Helper()
	file, err := os.Open("testdata/" + name)
	require.NoError(t, err)
	defer file.Close()
	return Read(name, file, Options{})
}

// Outputs of real programs have the load, the throughput, the rate and the latency that the programs
// mean by them (testdata/README.md). By Little's law, rate x latency cannot exceed the load.
func TestOutputsOfPrograms(t *testing.T) {
	type point struct{ clients, throughput, rate, latency float64 }
	for name, want := range map[string][]point{
		"fio-read.json":         {{1, 832e6, 12697, 75.3e-6}},
		"fio-3.42-group.json":   {{2, 548070461, 8362.9, 231.6e-6}},
		"fio-write-group.json":  {{2, 3297054858, 50309, 27.58e-6}},
		"fio-libaio-group.json": {{32, 91311776, 22292.9, 1.4334e-3}},
		"fio-randrw-group.json": {{4, 72920654, 17802.9, 199.2e-6}},
		"fio-randrw-jobs.json":  {{3, 53220505, 12993.3, 169e-6}},
		"fio-two-jobs.json":     {{2, 1676362493, 25579.3, 76.55e-6}, {1, 2308396155, 35223.3, 22.14e-6}},
		"fio-note.json":         {{1, 456002237, 6958, 137.4e-6}},
		"k6-export.json":        {{4, 100.6e6, 1533, 2.447e-3}},
		"k6-export-stages.json": {{5.42, 44.2e6, 673, 7.73e-3}},
		"k6-handle.json":        {{4, 74.2e6, 1130, 3.22e-3}},
		"k6-handle-full.json":   {{4, 201e6, 3070, 1.18e-3}},
		"k6-new.json":           {{4, 69.5e6, 1057, 3.412e-3}},
		"vegeta.json":           {{199.357, 13.04e6, 198.99, 11.47e-3}},
		"wrk.txt":               {{8, 1.05 * (1 << 30), 17191.85, 507.93e-6}},
		"wrk-latency.txt":       {{16, 523.54 * (1 << 20), 8349.42, 1.71e-3}},
		"wrk2.txt":              {{4, 31.20 * (1 << 20), 497.56, 7.5e-3}},
	} {
		table, err := readFile(t, name)
		if err != nil || table.Len() != len(want) {
			t.Errorf("%s: %v, want %d points", name, err, len(want))
			continue
		}
		for i, p := range want {
			for k, x := range map[Kind]float64{Clients: p.clients, Throughput: p.throughput, Rate: p.rate, Latency: p.latency} {
				if v := table.Value(k, i); !v.Known || math.Abs(v.X-x) > 0.01*x {
					t.Errorf("%s: %v is %v, want %v", name, k, v.X, x)
				}
			}
			if law := p.rate * p.latency / p.clients; !table.Open && law > 1.1 {
				t.Errorf("%s: rate x latency is %v times the load", name, law)
			}
		}
	}
}

func TestErrorsOfPrograms(t *testing.T) {
	for name, want := range map[string]struct{ errors, done, ratio float64 }{
		"wrk-non2xx.txt":        {errors: 45377},
		"wrk-errors.txt":        {errors: 8 + 12 + 535, done: 5416 - 535 - 12},
		"k6-export-errors.json": {ratio: 1},
		"vegeta-errors.json":    {ratio: 0.5},
	} {
		table, err := readFile(t, name)
		require.NoError(t, err)
		for k, x := range map[Kind]float64{Errors: want.errors, Done: want.done, ErrorRatio: want.ratio} {
			if v := table.Value(k, 0); v.Known && math.Abs(v.X-x) > 0.01 || !v.Known && x > 0 {
				t.Errorf("%s: %v is %v, want %v", name, k, v.X, x)
			}
		}
	}
}

// Outputs without a result, and of programs that are not known, are errors.
func TestRefusedOutputs(t *testing.T) {
	for name, want := range map[string]string{
		"fio-error.json": "did no operation", "fio-status-interval.json": "several JSON documents", "iperf3.json": "unknown program",
	} {
		if _, err := readFile(t, name); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: said %v, want %q", name, err, want)
		}
	}
	for _, text := range []string{"{}", "{\"jobs\":", `{"metrics":{}}`, `{"latencies":{}}`, `{"fio version":"fio-3","jobs":[]}`, "{\"jobs\":[{}]}",
		"Running 2s test\n  2 threads and 8 connections\n  1 requests in 2s\n",
		`{"fio version":"fio-3","jobs":[{"job options":{"numjobs":"x"},"read":{"total_ios":1}}]}`} {
		if _, err := Read("t.json", strings.NewReader(text), Options{}); err == nil {
			t.Errorf("%s is read", text)
		}
	}
	group := `{"fio version":"fio-3","jobs":[{"jobname":"a","groupid":0,"job_runtime":4000,"job options":{"numjobs":"1"},
		"read":{"runtime":2000,"total_ios":9,"iops":4.5,"bw_bytes":9,"lat_ns":{"mean":5}}}]}` // of another job, too
	if _, err := Read("t.json", strings.NewReader(group), Options{}); err == nil || !strings.Contains(err.Error(), "--group_reporting") {
		t.Errorf("several jobs in one entry: %v", err)
	}
}

// Several outputs make one curve, if they have the same quantities and loads of the same kind.
func TestJoin(t *testing.T) {
	var all []*Table
	for _, name := range []string{"wrk.txt", "wrk-latency.txt", "fio-read.json"} {
		table, err := readFile(t, name)
		require.NoError(t, err)
		all = append(all, table)
	}
	joined, err := Join(all...)
	require.NoError(t, err)
	if joined.Len() != 3 || joined.Value(Clients, 1).X != 16 || joined.Value(Clients, 2).X != 1 {
		t.Errorf("%d rows: %v", joined.Len(), joined.Found[Clients])
	}
	vegeta, err := readFile(t, "vegeta.json")
	require.NoError(t, err)
	if _, err := Join(all[0], vegeta); err == nil {
		t.Error("arrivals are joined with clients")
	}
	rates := read(t, "clients,requests/s\n1,2\n", Options{})
	if _, err := Join(all[0], rates); err == nil {
		t.Error("a table without throughput is joined")
	}
	times := read(t, "time,clients,MB/s,requests/s,latency (ms)\n1,1,1,1,1\n", Options{})
	if _, err := Join(all[0], times); err == nil {
		t.Error("a table with times is joined")
	}
}
