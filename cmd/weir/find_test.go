package main

import (
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"weir/internal/require"
	"weir/internal/tier"
	"weir/lab"
	"weir/lab/labtest"
	"weir/loadtest/analysis"
	"weir/loadtest/measure"
	"weir/loadtest/report"
	"weir/loadtest/results"
	"weir/loadtest/results/resultstest"
	"weir/loadtest/run/search"
	"weir/storage"
)

// peaked is the URL of a simulated service that has its highest throughput with 44 clients (the
// Universal Scalability Law: sqrt((1-sigma)/kappa)).
const peaked = "simulated://peaked?service=10ms&sigma=0.02&kappa=0.0005&files=100x1MiB"

// foundSteps returns the steps that the search in dir has held.
func foundSteps(t *testing.T, dir string) []search.Step {
	t.Helper()
	run, err := results.Open(dir)
	require.NoError(t, err)
	steps, err := search.StepsOf(run, func(int) bool { return false })
	require.NoError(t, err)
	return steps
}

// A search on a simulated service is killed in the middle. It goes on with all steps that were held
// before, and never exceeds its limits.
func TestFindIsResumed(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "run")
	killed(t, dir, 3, "find", peaked, "--duration", "1s", "--time", "40s", "--max", "400", "--out", dir)
	before := foundSteps(t, dir)
	if len(before) < 2 {
		t.Fatalf("%d steps before the kill", len(before))
	}
	code, said := started(t, "find", "--resume", dir, "--time", "30s").ended()
	if code != exitFine && code != exitInvalid {
		t.Fatalf("exit code %d\n%s", code, said)
	}
	after := foundSteps(t, dir)
	for i, s := range before {
		if len(after) <= len(before) || after[i].Clients != s.Clients || after[i].Yield != s.Yield {
			t.Fatalf("the steps before the kill were %+v, after the resumed search %+v", before, after)
		}
	}
	seen := map[int]bool{}
	for _, s := range after {
		seen[s.Clients] = true
		if s.Clients > 400 {
			t.Errorf("a step of %d clients, --max was 400", s.Clients)
		}
	}
	if f := findings(t, dir); len(f.Curve) < len(after) || f.Optimum == nil || f.Optimum.Clients < 2 {
		t.Errorf("%d points of %d steps, optimum %+v", len(f.Curve), len(after), f.Optimum)
	}
	if !strings.Contains(said, "\nsearch  ") || !strings.Contains(said, "a search from 1 to 400 clients") {
		t.Errorf("it does not say what it found:\n%s", said)
	}
	if code, said := weir(t, "run", "--resume", dir); code != exitUsage || !strings.Contains(said, "weir find --resume") {
		t.Errorf("weir run --resume of a search: exit code %d: %s", code, said)
	}
}

func TestFindIsInterrupted(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "run")
	p := started(t, "find", peaked, "--duration", "1s", "--out", dir)
	untilHeld(t, dir, 3)
	p.send(t, os.Interrupt)
	code, said := p.ended()
	if code != exitInterrupt {
		t.Errorf("exit code %d", code)
	}
	if !strings.Contains(said, "search         it was interrupted") {
		t.Errorf("it does not say what is known:\n%s", said)
	}
}

// A search on the built-in server, with clients in two processes, controls all clients.
func TestFindWithSeveralProcesses(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "run")
	p := started(t, "find", "--duration", "1s", "--time", "2m", "--max", "8", "--set", "workload.think=20ms", "--processes", "2", "--out", dir)
	untilHeld(t, dir, 3) // how many steps fit into a given time depends on the machine
	p.send(t, os.Interrupt)
	if code, said := p.ended(); code != exitInterrupt {
		t.Fatalf("exit code %d\n%s", code, said)
	}
	steps, f := foundSteps(t, dir), findings(t, dir)
	if len(steps) < 2 || len(f.Curve) != len(steps) || steps[0].Clients != 1 {
		t.Fatalf("steps %+v, curve of %d, want 1 client first and more later", steps, len(f.Curve))
	}
	for i, s := range steps[:2] {
		if s.Clients <= i || s.Done == 0 || f.Curve[i].Clients != s.Clients {
			t.Errorf("step %+v, in the curve %d clients", s, f.Curve[i].Clients)
		}
	}
}

// sameOptimum compares the result of a search, computed from its steps, with the report: the same
// optimum, the same range, and the headline of the findings in the last line.
func sameOptimum(t *testing.T, run *results.Run, f *analysis.Findings) {
	t.Helper()
	steps, err := search.StepsOf(run, func(int) bool { return true })
	require.NoError(t, err)
	d := search.Limits{Min: 1, Max: 1 << 20, Within: 0.1, Duration: time.Second, Longest: time.Second}.Next(steps, 0)
	o, p := d.Optimum, f.Optimum
	if (o == nil) != (p == nil) || o != nil && (o.Clients != p.Clients || o.Low != p.ClientsLow || o.High != p.ClientsHigh ||
		o.Inside != p.Inside) {
		t.Errorf("the search has the optimum %+v, the findings %+v", o, p)
	}
	if p == nil {
		return
	}
	for i := range f.Curve {
		if s := &f.Curve[i]; s.Step == p.Step && (s.Clients != p.Clients || s.Throughput != p.Throughput) {
			t.Errorf("the optimum is %+v, its step gave %v with %d clients", p, s.Throughput, s.Clients)
		}
	}
}

func TestSearchAndFindingsAgree(t *testing.T) {
	tier.Slow(t, "runs for seconds")
	t.Parallel()
	r := rand.New(rand.NewPCG(15, 6))
	for range 15 {
		s := resultstest.Service{Lambda: 5, Sigma: 0.3 * r.Float64(), Kappa: math.Pow(10, -5+3*r.Float64()), File: 1 << 20, Duration: 3 +
			r.IntN(10), Noise: 0.2 * r.Float64()}
		for n := 1; n < 300; n *= 2 {
			s.Clients = append(s.Clients, n)
		}
		for range r.IntN(8) { // refined, some steps twice
			s.Clients = append(s.Clients, 10+5*r.IntN(12))
		}
		refuses := 1 + r.IntN(2*len(s.Clients))
		s.Interval = func(iv *measure.Interval) {
			if iv.Step == refuses {
				iv.Failed, iv.Done, iv.Moved = map[storage.Class]int64{storage.Refused: iv.Done}, 0, 100
			}
			iv.Moved = int64(float64(iv.Moved) * (1 + s.Noise*r.NormFloat64()))
		}
		dir := filepath.Join(t.TempDir(), "run")
		require.NoError(t, s.Write(dir))
		run, err := results.Open(dir)
		require.NoError(t, err)
		f, err := analysis.Analyze(run)
		require.NoError(t, err)
		sameOptimum(t, run, f)
	}
}

// A search on a real server reports the same optimum in its first line, its findings and its
// decisions.
func TestFindOnNginxNamesOneOptimum(t *testing.T) {
	tier.Quiet(t, "the verdict on servers with a known limit")
	s := labtest.Start(t, lab.NginxConfig{Workers: 2})
	dir := filepath.Join(t.TempDir(), "run")
	code, said := started(t, "find", s.URL, "--duration", "1s", "--time", "20s", "--max", "32", "--set", "files.make={count: 20, size: 1MiB}",
		"--out", dir).ended()
	if code != exitFine && code != exitInvalid {
		t.Fatalf("exit code %d\n%s", code, said)
	}
	run, err := results.Open(dir)
	require.NoError(t, err)
	f := findings(t, dir)
	sameOptimum(t, run, f)
	if flat := unwrapped(said); !strings.Contains(flat, report.Final(f)) {
		t.Errorf("%q does not say %q", flat, report.Final(f))
	}
}
