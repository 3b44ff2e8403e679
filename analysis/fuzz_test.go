package analysis

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"testing"

	"weir/results"
	"weir/results/resultstest"
)

// FuzzRun feeds damaged run directories: whatever they hold, there are
// findings that JSON can carry or an error, and never a panic.
func FuzzRun(f *testing.F) {
	s := resultstest.Typical()
	s.Clients, s.Hold, s.Lambda = []int{1, 2}, 1, 5
	dir := filepath.Join(f.TempDir(), "run")
	if err := s.Write(dir); err != nil {
		f.Fatal(err)
	}
	read := func(name string) []byte {
		b, err := os.ReadFile(filepath.Join(dir, name))
		if err != nil {
			f.Fatal(err)
		}
		return b
	}
	plan, intervals, hosts, events := read(results.PlanFile), read(results.IntervalsFile), read(results.HostsFile), read(results.EventsFile)
	about := read(results.AboutFile)
	f.Add(about, plan, intervals, hosts, events)
	f.Add([]byte(`{"format":1}`), []byte(`{}`), []byte(`{"start":"2026-01-01T00:00:00Z","phase":"hold","duration_seconds":1e-300,"clients":1e9,"moved_bytes":1125899906842624}`), []byte(`{}`), []byte(`{}`))
	f.Fuzz(func(t *testing.T, about, plan, intervals, hosts, events []byte) {
		dir := t.TempDir()
		for name, b := range map[string][]byte{results.AboutFile: about, results.PlanFile: plan, results.IntervalsFile: intervals, results.HostsFile: hosts, results.EventsFile: events} {
			if err := os.WriteFile(filepath.Join(dir, name), b, 0o600); err != nil {
				t.Fatal(err)
			}
		}
		run, err := results.Open(dir)
		if err != nil {
			return
		}
		found, _, err := Both(run)
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
		for _, err := range []error{CurveCSV(&out, found), IntervalsCSV(&out, run), HostsCSV(&out, run)} {
			if err != nil {
				t.Fatal(err)
			}
		}
	})
}
