package merge

import (
	"encoding/json"
	"fmt"
	"math"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"weir/internal/require"
	"weir/internal/unit"
	"weir/loadtest/analysis"
	"weir/loadtest/measure"
	"weir/loadtest/results"
	"weir/loadtest/results/resultstest"
	"weir/loadtest/scenario"
	"weir/monitor"
	"weir/storage"
)

// plan returns a plan with two steps, of 6 and 9 clients.
func plan() *scenario.Plan {
	p := resultstest.Service{Clients: []int{6, 9}, Duration: 10, File: 1 << 20}.Plan()
	p.Hosts = []monitor.Host{{Name: "localhost", Role: "client"}}
	return p
}

// A recorded is a simulated run of a plan on one machine: each of its clients moves 1 MB per
// second, in one operation.
type recorded struct {
	plan   *scenario.Plan
	host   string
	late   time.Duration // delay of its start
	until  int           // number of seconds; 0: all
	ends   string        // text of its end; "": killed
	kinds  []storage.Kind
	joined [2]int // range of lines that are joined to one: the process was stalled
	before func(*results.Writer)
}

func (r recorded) write(t *testing.T) string {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "run")
	start := resultstest.Start().Add(r.late)
	env, _ := json.Marshal(map[string]string{"hostname": r.host, "boot_time": r.host})
	w, err := results.Create(dir, r.plan, results.About{Weir: "test", Run: dir, Start: start, Environment: env})
	require.NoError(t, err)
	if r.before != nil {
		r.before(w)
	}
	if r.kinds == nil {
		r.kinds = []storage.Kind{storage.Read}
	}
	now, told := start, 0
	lines := []*measure.Interval{}
	for _, s := range r.plan.Steps {
		if r.until > 0 && told >= r.until {
			break
		}
		if err := w.Event(measure.Event{Time: now, Kind: measure.EventStep, Step: s.Number, Text: "begins", Clients: s.Clients,
			Duration: 10}); err != nil {
			t.Fatal(err)
		}
		for k := range 12 {
			if r.until > 0 && told >= r.until {
				break
			}
			told++
			phase := []string{measure.Ramp, measure.Warmup, measure.Measured}[min(k, 2)]
			// Intervals end at whole seconds, and at the end of a phase.
			for _, cut := range [][2]time.Time{{now, now.Truncate(time.Second).Add(time.Second)},
				{now.Truncate(time.Second).Add(time.Second), now.Add(time.Second)}} {
				length := min(cut[1].Sub(cut[0]), time.Second)
				if length <= 0 {
					continue
				}
				for _, kind := range r.kinds {
					v := &measure.Interval{
						Start: cut[0], Seconds: length.Seconds(), Step: s.Number, Phase: phase, Clients: float64(s.Clients), Kind: kind,
						Sum: measure.Sum{
							Moved: int64(float64(s.Clients) * 1e6 * length.Seconds()), Done: int64(s.Clients), Begun: int64(s.Clients) + 1,
							Failed: map[storage.Class]int64{storage.Timeout: 1}, Wrong: 1,
						},
					}
					for range s.Clients {
						v.Latency.Record(time.Second)
					}
					if n := len(lines); n > r.joined[0] && n < r.joined[1] {
						first := lines[r.joined[0]]
						first.Seconds += v.Seconds
						first.Sum.Add(&v.Sum)
					}
					lines = append(lines, v)
				}
			}
			now = now.Add(time.Second)
			sample := &monitor.Sample{Time: now, Seconds: 1, Host: "localhost", Role: "client", Step: s.Number, Cores: 4, CPU: &monitor.CPU{Idle: 1},
				Procs: []monitor.Proc{{Name: "weir", Role: "client", Count: 1, User: 0.5, RSS: 100}}}
			require.NoError(t, w.Sample(sample))
		}
	}
	for i, v := range lines {
		if i <= r.joined[0] || i >= r.joined[1] {
			require.NoError(t, w.Interval(v))
		}
	}
	if r.ends != "" {
		require.NoError(t, w.Event(measure.Event{Time: now, Kind: measure.EventEnd, Outcome: measure.Complete, Text: r.ends}))
	}
	require.NoError(t, w.Close())
	return dir
}

// machines returns n runs of plan(), each on its own machine.
func machines(n int) (all []recorded) {
	for i := range n {
		all = append(all, recorded{plan: plan(), host: fmt.Sprintf("node%d", i+1), ends: measure.AllDone})
	}
	return all
}

// merged merges the runs and analyzes the result.
func merged(t *testing.T, all []recorded) *analysis.Findings {
	t.Helper()
	var dirs []string
	for _, r := range all {
		dirs = append(dirs, r.write(t))
	}
	dir := filepath.Join(t.TempDir(), "merged")
	require.NoError(t, Runs(dir, dirs, results.About{Weir: "test"}))
	run, err := results.Open(dir)
	require.NoError(t, err)
	var sum measure.Sum
	for v, err := range run.Intervals() {
		require.NoError(t, err)
		sum.AddCounts(&v.Sum)
	}
	if sum.Begun != sum.Done+sum.Errors() || sum.Wrong != sum.Errors() { // as in each line of each run
		t.Errorf("%d operations began, %d are done, %d of them wrong, and %d failed", sum.Begun, sum.Done, sum.Wrong, sum.Errors())
	}
	f, err := analysis.Analyze(run)
	require.NoError(t, err)
	return f
}

func near(a, b float64) bool { return math.Abs(a-b) <= 1e-6*math.Max(1, math.Abs(b)) }

// Runs add up: clients, bytes, operations, histograms, hosts.
func TestRunsAddUp(t *testing.T) {
	for _, n := range []int{2, 3, 6} {
		f := merged(t, machines(n))
		if len(f.Curve) != 2 {
			t.Fatalf("%d runs: %d steps", n, len(f.Curve))
		}
		for i, clients := range []int{6 * n, 9 * n} {
			s := &f.Curve[i]
			if s.Clients != clients || !near(s.ActiveClients, float64(clients)) || !near(s.Throughput, float64(clients)*1e6) ||
				s.Done != int64(clients)*10 ||
				!near(s.Duration, 10) || s.Latency.Count != int64(clients)*10 || len(s.Hosts) != n || s.Hosts[0].Host != "node1" {
				t.Errorf("%d runs, step %d: %+v", n, i+1, s)
			}
		}
		for _, c := range f.Validity.Checks {
			if c.Name == "data" && c.Status != analysis.OK || c.Name == "clock" && c.Status != analysis.OK {
				t.Errorf("%d runs: %+v", n, c)
			}
		}
	}
}

// Runs that did not begin together have a hold in the seconds in which all of them held.
func TestRunsThatDidNotBeginTogether(t *testing.T) {
	for late, hold := range map[time.Duration]float64{
		0: 10, 20 * time.Millisecond: 9, 3 * time.Second: 7, 2400 * time.Millisecond: 7, 400 * time.Millisecond: 9,
	} {
		all := machines(3)
		all[1].late = late
		f := merged(t, all)
		if len(f.Curve) != 2 {
			t.Fatalf("%v late: %d steps", late, len(f.Curve))
		}
		for i := range f.Curve {
			s := &f.Curve[i]
			if math.Abs(s.Duration-hold) > 0.05 || math.Abs(s.ActiveClients-float64(s.Clients)) > 0.05 ||
				math.Abs(s.Throughput/float64(s.Clients)/1e6-1) > 0.02 {
				t.Errorf("%v late: step %d held %v s, want %v; %v clients, %v B/s", late, s.Step, s.Duration, hold, s.ActiveClients, s.Throughput)
			}
		}
		for _, c := range f.Validity.Checks {
			if c.Name == "clock" && c.Status != analysis.OK {
				t.Errorf("%v late: %+v", late, c)
			}
		}
	}
	all := machines(3)
	all[2].late = 20 * time.Second
	if f := merged(t, all); len(f.Curve) != 0 || f.Validity.Status != analysis.Invalid {
		t.Errorf("20 s late: %d steps, %s", len(f.Curve), f.Validity.Status)
	}
}

// A run that was stalled has one line of several seconds, or a line that extends into the next
// second: no time counts twice.
func TestStalledRuns(t *testing.T) {
	for _, late := range []time.Duration{0, 300 * time.Millisecond} {
		want := 0.0
		for _, joined := range [][2]int{{}, {6, 8}, {5, 12}} {
			all := machines(2)
			all[1].late, all[1].joined = late, joined
			s := &merged(t, all).Curve[0]
			if want == 0 {
				want = s.Duration
			}
			if math.Abs(s.Duration-want) > 0.4 || math.Abs(s.ActiveClients-12) > 0.2 || math.Abs(s.Throughput/12e6-1) > 0.05 {
				t.Errorf("%v late, lines %v: %v clients, %v B/s for %v s, want 12 and 12e6 for %v", late, joined, s.ActiveClients, s.Throughput,
					s.Duration, want)
			}
		}
	}
}

// A run that was killed is reported, and the loads without its clients differ from the plan.
func TestKilledRunsAreReported(t *testing.T) {
	all := machines(3)
	all[2].ends, all[2].until = "", 15
	f := merged(t, all)
	if !near(f.Curve[0].ActiveClients, 18) || f.Curve[1].Clients != 27 || f.Curve[1].ActiveClients > 20 || !near(f.Curve[1].Duration, 10) {
		t.Errorf("%+v", f.Curve)
	}
	if f.Validity.Status != analysis.Invalid {
		t.Errorf("a third is missing: %+v", f.Validity)
	}
}

// Kinds of operations that only some runs have do not remove the clients of the others.
func TestRunsWithDifferentKindsAddUp(t *testing.T) {
	a, b := recorded{plan: plan(), host: "a", ends: measure.AllDone}, recorded{plan: plan(), host: "b", ends: measure.AllDone,
		kinds: []storage.Kind{storage.Write}}
	f := merged(t, []recorded{a, b})
	if s := f.Curve[1]; s.Clients != 18 || !near(s.ActiveClients, 18) || !near(s.Throughput, 18e6) || len(f.Kinds) != 2 {
		t.Errorf("%+v, %v", s, f.Kinds)
	}
	b.host = "a" // two runs on one machine share its CPU use
	f = merged(t, []recorded{a, b})
	if s := f.Curve[0]; len(s.Hosts) != 1 || s.Hosts[0].ClientCores == nil || !near(*s.Hosts[0].ClientCores, 1) {
		t.Errorf("%+v", s.Hosts)
	}
}

func TestWhatCannotBeMerged(t *testing.T) {
	all := machines(3)
	one, two := all[0].write(t), all[1].write(t)
	other := plan()
	other.Seed, other.Target = 7, "http://elsewhere/"
	search := plan()
	search.Find, search.Steps = &scenario.Find{Min: 1, Max: 2, Within: 0.1, Time: unit.Duration(time.Minute)}, []scenario.Step{}
	resumed := all[1]
	resumed.before = func(w *results.Writer) { _ = w.Event(measure.Event{Kind: measure.EventResume}) }
	for want, dirs := range map[string][]string{
		"at least two":              {recorded{plan: plan()}.write(t)},
		"are the same run":          {one, two, one},
		"target is not the same":    {recorded{plan: plan()}.write(t), recorded{plan: other}.write(t)},
		"a search cannot be merged": {one, recorded{plan: search}.write(t)},
		"was resumed":               {one, resumed.write(t)},
		"was over at":               {one, recorded{plan: all[1].plan, late: time.Hour, ends: "x"}.write(t)},
		"is not a run directory":    {one, t.TempDir()},
	} {
		dir := filepath.Join(t.TempDir(), "merged")
		if err := Runs(dir, dirs, results.About{}); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %q", err, want)
		}
	}
	w, _, err := results.Resume(two)
	require.NoError(t, err)
	if err := Runs(filepath.Join(t.TempDir(), "m"), []string{one, two}, results.About{}); err == nil ||
		!strings.Contains(err.Error(), "still goes on") {
		t.Error(err)
	}
	_ = w.Close()
}
