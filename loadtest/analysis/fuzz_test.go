package analysis

import (
	"bytes"
	"encoding/json"
	"math"
	"os"
	"path/filepath"
	"testing"

	"weir/internal/require"
	"weir/internal/unit"
	"weir/loadtest/analysis/basics"
	"weir/loadtest/analysis/hosts"
	"weir/loadtest/measure"
	"weir/loadtest/results"
	"weir/loadtest/results/resultstest"
	"weir/loadtest/scenario"
	"weir/monitor"
	"weir/storage"
)

// FuzzRun analyzes damaged run directories: the result is findings that JSON can represent or an
// error, never a panic.
func FuzzRun(f *testing.F) {
	s := resultstest.Typical()
	s.Clients, s.Duration, s.Lambda = []int{1, 2}, 1, 5
	dir := filepath.Join(f.TempDir(), "run")
	require.NoError(f, s.Write(dir))
	read := func(name string) []byte {
		b, err := os.ReadFile(filepath.Join(dir, name))
		require.NoError(f, err)
		return b
	}
	plan, intervals, hosts, events := read(results.PlanFile), read(results.IntervalsFile), read(results.HostsFile), read(results.EventsFile)
	about := read(results.AboutFile)
	f.Add(about, plan, intervals, hosts, events)
	f.Add([]byte(`{"format":3}`), []byte(`{}`),
		[]byte(`{"start":"2026-01-01T00:00:00Z","phase":"measure","duration_seconds":1e-300,"clients":1e9,"moved_bytes":1125899906842624}`),
		[]byte(`{}`), []byte(`{}`))
	f.Add(about, []byte(`{"work":{"kind":"job"},"links":[{"name":"a"},{"name":"a"},{"name":"b","link":{"share":-1}}]}`),
		[]byte(`{"start":"2026-01-01T00:00:00Z","phase":"measure","duration_seconds":1,"step":1,"jobs_running":1e9,`+
			`"sites":{"a":{"jobs_running":1e9,"compute_seconds":1e-300},"":{"events":1,"jobs_crashed":3},"c":{}}}`), []byte(`{}`),
		[]byte(`{"time":"2026-01-01T00:00:00Z","event":"step","step":1,"clients":1000000000000}`))
	f.Fuzz(func(t *testing.T, about, plan, intervals, hosts, events []byte) {
		dir := t.TempDir()
		for name, b := range map[string][]byte{results.AboutFile: about, results.PlanFile: plan, results.IntervalsFile: intervals,
			results.HostsFile: hosts, results.EventsFile: events} {
			require.NoError(t, os.WriteFile(filepath.Join(dir, name), b, 0o600))
		}
		run, err := results.Open(dir)
		if err != nil {
			return
		}
		found, _, err := AnalyzeWithSeries(run)
		if err != nil {
			return
		}
		if _, err := json.Marshal(found); err != nil {
			t.Fatalf("findings can not be written: %v", err)
		}
		if found.Verdict == "" {
			t.Fatal("no verdict")
		}
		var out bytes.Buffer
		if _, err := loadTo(run, &out, &out); err != nil {
			t.Fatal(err)
		}
		require.NoError(t, CurveCSV(&out, found))
	})
}

// FuzzNumbers analyzes lines that are well-formed but have impossible values.
func FuzzNumbers(f *testing.F) {
	f.Add(1.0, 4.0, int64(1000), int64(3), 1, 4, 0.0, 2, 0.5, "closed")
	f.Add(1e-300, 1e9, int64(1)<<50, int64(1)<<50, 1, -5, 1e308, 0, 1e16, "open")
	f.Add(0.0, 0.0, int64(0), int64(0), 0, 0, 0.0, 0, 0.0, "")
	f.Fuzz(func(t *testing.T, seconds, clients float64, moved, done int64, step, planned int, rate float64, cores int, cpu float64,
		model string) {
		dir := t.TempDir()
		plan := scenario.Plan{Version: scenario.PlanVersion, Model: scenario.Model(model),
			Steps: []scenario.Step{{Number: step, Clients: planned, Rate: unit.Rate(rate), Duration: unit.Duration(moved)}}}
		w, err := results.Create(dir, &plan, results.About{})
		if err != nil {
			return // no JSON for it
		}
		at := resultstest.Start()
		for i := range 7 {
			iv := &measure.Interval{
				Start: at, Seconds: seconds, Step: step + i/4, Phase: measure.Measured, Clients: clients,
				Sum: measure.Sum{
					Moved: moved, Wire: done, Done: done, Begun: done, Think: seconds, Failed: map[storage.Class]int64{storage.Class(i): done},
					Missed: moved,
				},
			}
			iv.Latency.Record(basics.Duration(seconds))
			s := &monitor.Sample{Time: at.Add(basics.Duration(seconds)), Seconds: seconds, Host: "h", Role: "both", Cores: cores,
				CPU: &monitor.CPU{User: cpu}, Core: []float64{cpu}, Nets: []monitor.Net{{Name: hosts.Loopback, Sent: moved, PacketsOut: done}},
				Procs: []monitor.Proc{{Role: hosts.Server, User: cpu, Written: moved, Sent: done}, {Role: hosts.Client, System: cpu}}}
			if w.Interval(iv) != nil || w.Sample(s) != nil {
				break
			}
			at = at.Add(basics.Duration(math.Mod(seconds, 3)))
		}
		require.NoError(t, w.Close())
		run, err := results.Open(dir)
		require.NoError(t, err)
		found, _, err := AnalyzeWithSeries(run)
		if err != nil {
			return
		}
		if _, err := json.Marshal(found); err != nil || found.Verdict == "" {
			t.Fatalf("findings can not be written: %v", err)
		}
	})
}
