package analysis

import (
	"errors"
	"math"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"weir/internal/require"
	"weir/loadtest/analysis/basics"
	"weir/loadtest/measure"
	"weir/loadtest/results"
	"weir/loadtest/scenario"
	"weir/monitor"
	"weir/storage"
)

// transferred writes a record of one case with three files to C: two files from A arrive within two
// seconds, one of them at the second attempt, and the third file does not arrive. The endpoint of A
// counts lost fewer bytes.
func transferred(t *testing.T, lost int64) *Findings {
	t.Helper()
	begin := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	at := func(seconds float64) time.Time { return begin.Add(basics.Duration(seconds)) }
	dir := filepath.Join(t.TempDir(), "run")
	p := &scenario.Plan{Version: scenario.PlanVersion, Name: "t", Target: "sites A to C", Driver: "transfer", Model: "closed",
		Steps: []scenario.Step{{Number: 1, Clients: 2, Duration: 2e9}}}
	p.Work.Kind = "copy"
	w, err := results.Create(dir, p, results.About{Weir: "test", Start: begin})
	require.NoError(t, err)
	err = errors.Join(w.Event(measure.Event{Time: begin, Kind: measure.EventStep, Step: 1, Clients: 2, Text: "three files"}))
	for second := range 2 {
		err = errors.Join(err, w.Interval(&measure.Interval{Start: at(float64(second)), Seconds: 1, Step: 1, Phase: measure.Measured, Clients: 2,
			Kind: storage.Copy, Server: "A", Sum: measure.Sum{Moved: 1e9, Begun: 1, Done: 1, Verified: 1}}))
		for _, site := range []string{"A", "C"} {
			proc := monitor.Proc{Name: "weir agent", Role: "server", Count: 1, User: 0.25 * float64(second+1), RSS: 1 << 30}
			if site == "A" {
				proc.Sent = 1e9 - lost/2
			}
			err = errors.Join(err, w.Sample(&monitor.Sample{Time: at(float64(second + 1)), Seconds: 1, Host: "site " + site, Role: "server",
				Cores: 4, CPU: &monitor.CPU{User: 0.1, Idle: 0.9},
				Memory: &monitor.Memory{Total: 4 << 30, Available: 3 << 30}, Procs: []monitor.Proc{proc}}))
		}
	}
	one := results.Transfer{Step: 1, Case: "three files", Request: 1, Source: "A", Dest: "C", Mode: "pull"}
	write := func(file string, from, to float64, moved int64, class storage.Class, last bool) {
		x := one
		x.File, x.Size, x.Begin, x.End, x.Moved, x.Class, x.Last = file, 900_000_000, at(from), at(to), moved, class, last
		if x.Done, x.Verified = class == storage.None, class == storage.None; !x.Done {
			x.Reason = "the network broke"
		}
		err = errors.Join(err, w.Transfer(&x))
	}
	write("/f1", 0, 0.5, 200_000_000, storage.Reset, false)
	write("/f2", 0, 1, 900_000_000, storage.None, true)
	write("/f1", 1, 1.5, 900_000_000, storage.None, true)
	gone := one
	gone.File, gone.Source, gone.End, gone.Last, gone.Reason = "/f3", "", at(2), true, "no site has it"
	err = errors.Join(err, w.Transfer(&gone), w.Event(measure.Event{Time: at(2), Kind: measure.EventEnd, Text: measure.AllDone}), w.Close())
	require.NoError(t, err)
	run, err := results.Open(dir)
	require.NoError(t, err)
	f, err := Analyze(run)
	require.NoError(t, err)
	return f
}

func TestTransfers(t *testing.T) {
	f := transferred(t, 0)
	if f.Transfers == nil || len(f.Transfers.Cases) != 1 {
		t.Fatalf("%+v", f.Transfers)
	}
	if text := f.Transfers.Text(); strings.Contains(text, "before") {
		t.Error(text)
	}
	c := f.Transfers.Cases[0]
	if c.Files != 3 || c.Arrived != 2 || c.Attempts != 3 || c.Failures != 1 || c.AtOnce != 2 || c.Bytes != 1_800_000_000 || c.Seconds != 2 ||
		c.Throughput != 9e8 {
		t.Errorf("%+v", c)
	}
	if c.Spread != 0.5 || math.Abs(c.SumOfFiles-2.7e9) > 1 {
		t.Errorf("spread %v s, sum of files %v", c.Spread, c.SumOfFiles)
	}
	if len(c.Ends) != 2 || c.Ends[0].Site != "A" || c.Ends[0].Role != "source" || c.Ends[1].Role != "destination" {
		t.Fatalf("%+v", c.Ends)
	}
	for _, e := range c.Ends {
		if *e.CPU != 0.75 || *e.CPUMean != 0.375 || *e.CPUMax != 0.5 || *e.Memory != 0.25 || e.Moved != 2_000_000_000 {
			t.Errorf("%s: CPU %v s, mean %v, max %v, memory %v, moved %d", e.Site, *e.CPU, *e.CPUMean, *e.CPUMax, *e.Memory, e.Moved)
		}
	}
	if n := f.Transfers.Files; len(n) != 3 || n[1].File != "/f1" || n[1].Tries != 2 || n[1].Throughput != 1.8e9 || n[1].Seconds != 0.5 {
		t.Errorf("%+v", n)
	}
	if m := f.Transfers.Missing; len(m) != 1 || m[0].Reason != "no site has it" || m[0].Tries != 0 {
		t.Errorf("%+v", m)
	}
}

// TestTransferEnds checks that the endpoints must have counted the bytes that the movers report.
func TestTransferEnds(t *testing.T) {
	for lost, want := range map[int64]string{0: OK, 60_000_000: Warn, 200_000_000: Fail} {
		f := transferred(t, lost)
		for _, c := range f.Validity.Checks {
			if c.Name == "both ends agree" && (c.Status != want || !strings.Contains(c.Detail, "2.00 GB")) {
				t.Errorf("%d bytes less: %s, want %s: %s", lost, c.Status, want, c.Detail)
			}
		}
	}
}
