package analysis

import (
	"encoding/json"
	"math"
	"strings"
	"testing"
	"time"

	"weir/internal/require"
	"weir/loadtest/analysis/fact"
	"weir/loadtest/analysis/hosts"
	"weir/loadtest/measure"
	"weir/loadtest/results/resultstest"
	"weir/monitor"
)

// TestJobFigures compares the figures of jobs with the formulas of the artificial farm.
func TestJobFigures(t *testing.T) {
	s := resultstest.Farm()
	s.Duration, s.Jobs.Failed = 40, 0.05
	s.Jobs.Crashed = func(n int) float64 { return max(0, float64(n-40)/400) } // 10% of 80
	f := of(t, s)
	if !f.OfJobs() {
		t.Fatal("no jobs were found")
	}
	near := func(what string, got, want, by float64) {
		t.Helper()
		if !(math.Abs(got-want) <= by*math.Abs(want)) {
			t.Errorf("%s: %v, want %v", what, got, want)
		}
	}
	for i, n := range s.Clients {
		x := &f.Curve[i]
		near("running", x.RunningJobs, float64(n), 1e-9)
		near("efficiency", *x.CPUEfficiency, s.ComputeShare(n), 0.01)
		near("cluster throughput", *x.ClusterThroughput, x.RunningJobs**x.CPUEfficiency, 1e-9)
		near("events", x.EventRate, s.Rate(n)/5, 0.02)
		if !(*x.CPUEfficiencyLow < *x.CPUEfficiency && *x.CPUEfficiency < *x.CPUEfficiencyHigh && *x.CPUEfficiencyHigh < 1.05**x.CPUEfficiency) {
			t.Errorf("%d jobs: efficiency %v (%v to %v)", n, *x.CPUEfficiency, *x.CPUEfficiencyLow, *x.CPUEfficiencyHigh)
		}
		near("used", *x.UsedRatio, 1, 1e-9)
		if x.Jobs.Ended() > 20 {
			near("wall clock time", x.JobSeconds.Mean, s.JobSeconds(n), 0.1)
		}
		if x.Jobs.Begun != x.Jobs.Ended() || x.Jobs.Begun == 0 {
			t.Errorf("%d jobs: %+v", n, *x.Jobs)
		}
	}
	last := f.Curve[len(f.Curve)-1]
	near("crashed", *last.CrashRatio, 0.1, 0.5)
	near("failed", *last.JobFailureRatio, 0.05, 0.7)
}

// TestJobEstimate checks that the time of a job is estimated if no job ends while the load is held.
func TestJobEstimate(t *testing.T) {
	s := resultstest.Farm()
	s.Jobs.Job.Events, s.Jobs.Job.Skim = 100_000, 0.5
	f := of(t, s)
	for i, n := range s.Clients {
		x := &f.Curve[i]
		if x.JobSeconds != nil || x.JobSecondsEstimate == nil || math.Abs(*x.JobSecondsEstimate/s.JobSeconds(n)-1) > 0.02 {
			t.Errorf("%d jobs: %v and %v, want %v", n, x.JobSeconds, x.JobSecondsEstimate, s.JobSeconds(n))
		}
		if mean, estimated, ok := x.MeanJob(); !ok || !estimated || mean != *x.JobSecondsEstimate {
			t.Errorf("%v %v %v", mean, estimated, ok)
		}
	}
}

// TestNoEfficiency checks that a run without jobs has no figures of jobs, that a run whose jobs
// never compute has no efficiency, and that a step in which jobs only waited has an efficiency of
// zero.
func TestNoEfficiency(t *testing.T) {
	if f := of(t, resultstest.Typical()); f.OfJobs() || f.Curve[0].Jobs != nil || f.Curve[0].CPUEfficiency != nil {
		t.Errorf("%+v", f.Curve[0].JobFigures)
	}
	s := resultstest.Farm()
	s.Interval = func(v *measure.Interval) { v.Compute = 0 }
	if f := of(t, s); !f.OfJobs() || f.Curve[0].CPUEfficiency != nil || f.Curve[0].ClusterThroughput != nil {
		t.Errorf("%+v", f.Curve[0].JobFigures)
	}
	s.Interval = func(v *measure.Interval) {
		if v.Step == 3 {
			v.Compute = 0
		}
	}
	if f := of(t, s); f.Curve[2].CPUEfficiency == nil || *f.Curve[2].CPUEfficiency != 0 {
		t.Errorf("%+v", f.Curve[2].JobFigures)
	}
}

// TestEfficiencyIsAtMostOne checks that a job computes for no longer than it runs, however unsteady
// it is.
func TestEfficiencyIsAtMostOne(t *testing.T) {
	s := resultstest.Farm()
	n := 0
	s.Interval = func(v *measure.Interval) {
		v.Compute = v.Running * v.Seconds
		if n++; n%4 == 0 {
			v.Compute = 0
		}
	}
	for _, x := range of(t, s).Curve {
		if *x.CPUEfficiencyHigh > 1 || *x.CPUEfficiencyHigh < *x.CPUEfficiency || *x.ClusterThroughputHigh > x.RunningJobs {
			t.Errorf("efficiency %v to %v, cluster throughput to %v of %v jobs", *x.CPUEfficiency, *x.CPUEfficiencyHigh, *x.ClusterThroughputHigh,
				x.RunningJobs)
		}
	}
}

// checkNamed returns the check of that name.
func checkNamed(t *testing.T, f *Findings, name string) Check {
	t.Helper()
	for _, c := range f.Validity.Checks {
		if c.Name == name {
			return c
		}
	}
	t.Fatalf("there is no check %q among %v", name, f.Validity.Checks)
	return Check{}
}

// burning returns a farm whose jobs use up four cores, intentionally if burn is true.
func burning(burn bool) resultstest.Service {
	s := resultstest.Farm()
	s.Clients, s.Jobs.Job.Burn = []int{1, 2, 4, 8, 16, 32}, burn
	rate := func(n float64) float64 { return min(n*80, 400) } // pages/s: 4 cores of 10 ms each page
	s.Interval = func(v *measure.Interval) {
		done := rate(v.Clients)
		v.Done, v.Moved, v.Events, v.Compute = int64(done), int64(done)*s.File, int64(done/5), done*0.01
		v.Latency.Reset()
		for range v.Done {
			v.Latency.Record(time.Duration((v.Clients/done - 0.01) * 1e9))
		}
	}
	s.Sample = func(x *monitor.Sample) {
		if x.Role != hosts.Client {
			x.CPU = &monitor.CPU{User: 0.05, Idle: 0.95}
			return
		}
		used := min(1, rate(float64(s.Clients[x.Step-1]))*0.01/4)
		x.CPU = &monitor.CPU{User: used, Idle: 1 - used}
		x.Procs[0].User, x.Procs[0].System = 4*used, 0.02
	}
	return s
}

// TestBurnedCPU checks that a machine whose CPU is full because jobs burn it is the limit, not a
// fault of the generator, and that the same use by the generator itself is a fault.
func TestBurnedCPU(t *testing.T) {
	f := of(t, burning(true))
	if c := checkNamed(t, f, "generator"); c.Status != OK ||
		!shows(&c, "its jobs burned at most 4.00 cores") {
		t.Errorf("%+v", c)
	}
	if b := f.Bottleneck[0]; b.Resource != ResourceCPU || b.Host != "load.example.org" || b.Side != hosts.Client ||
		fact.Find(b.Facts, "limit.side.jobs").Code == "" {
		t.Errorf("%+v", b)
	}
	if f.Validity.Status == Invalid {
		t.Errorf("%+v", f.Validity)
	}
	f = of(t, burning(false))
	if c := checkNamed(t, f, "generator"); c.Status != Fail {
		t.Errorf("%+v", c)
	}
	if b := f.Bottleneck[0]; b.Resource != ResourceGenerator {
		t.Errorf("%+v", b)
	}
}

// TestBurnedCPUOfSomeCores checks that jobs that may use half of the cores of their machine are at
// their limit if these cores are full.
func TestBurnedCPUOfSomeCores(t *testing.T) {
	s := burning(true)
	sample := s.Sample
	s.Sample = func(x *monitor.Sample) {
		if sample(x); x.Role == hosts.Client {
			x.Cores = 8
			x.CPU.User /= 2
			x.CPU.Idle = 1 - x.CPU.User
		}
	}
	d, err := load(written(t, s))
	require.NoError(t, err)
	d.run.About.Environment = json.RawMessage(`{"cores":8,"cores_used":4}`)
	b := d.findings().Bottleneck[0]
	if b.Resource != ResourceCPU || b.Side != hosts.Client ||
		!strings.Contains(strings.Join(b.Evidence, " "), "clients used 4.02 of the 4 cores they may use; of the whole machine 50% busy") {
		t.Errorf("%+v", b)
	}
}

// TestLateComputing checks that computing that is late because of the generator's sleep is the
// generator's fault, in a text for jobs.
func TestLateComputing(t *testing.T) {
	s := resultstest.Farm()
	s.Interval = func(v *measure.Interval) {
		v.Late.Reset()
		for range v.Done {
			v.Late.Record(8 * time.Millisecond)
		}
	}
	c := checkNamed(t, of(t, s), "generator")
	if c.Status != Warn || !strings.Contains(c.Detail, "computing ended late by at most 8") {
		t.Errorf("%+v", c)
	}
}

// TestLittleOfJobs checks that requests, computing and pauses explain the time of jobs; if they
// overlap, the jobs as a whole explain it.
func TestLittleOfJobs(t *testing.T) {
	s := resultstest.Farm()
	if c := checkNamed(t, of(t, s), "Little's law"); c.Status != OK || !shows(&c, "check.little.computing") {
		t.Errorf("%+v", c)
	}
	s.Interval = func(v *measure.Interval) { v.Compute *= 0.4 } // slept longer than reported
	if c := checkNamed(t, of(t, s), "Little's law"); c.Status != Fail || !shows(&c, "check.little.delayed_computing") {
		t.Errorf("%+v", c)
	}
	s.Jobs.Job.Ahead = 1 << 20
	s.Interval = func(v *measure.Interval) { v.Running *= 0.98 }
	if c := checkNamed(t, of(t, s), "Little's law"); c.Status != OK || !shows(&c, "jobs and pauses explain 98%") {
		t.Errorf("%+v", c)
	}
	s.Interval = func(v *measure.Interval) { v.Running *= 0.5 }
	if c := checkNamed(t, of(t, s), "Little's law"); c.Status != Fail || !shows(&c, "check.little.delayed_jobs") {
		t.Errorf("%+v", c)
	}
}

// TestBoundedSteps checks that a step that ends with its last job is neither too short nor
// unsteady, and gets more data by more jobs.
func TestBoundedSteps(t *testing.T) {
	s := resultstest.Farm()
	s.Jobs.Each = 3
	run := written(t, s)
	for i := range run.Plan.Steps {
		run.Plan.Steps[i].Duration *= 100
	}
	f, err := Analyze(run)
	require.NoError(t, err)
	if c := checkNamed(t, f, "data"); c.Status != OK {
		t.Errorf("%+v", c)
	}
	if c := checkNamed(t, f, "steadiness"); c.Status != Skipped || !shows(&c, "check.steadiness.bounded") {
		t.Errorf("%+v", c)
	}
}

func TestJobsVerdict(t *testing.T) {
	s := resultstest.Farm()
	s.Duration = 30
	s.Jobs.Crashed = func(n int) float64 { return max(0, float64(n-20)/100) }
	f := of(t, s)
	for code, want := range map[string]string{"verdict.peak": " at 20 jobs", "verdict.jobs.efficiency": "% to ",
		"verdict.jobs.time": "At 20 jobs ", "verdict.jobs.lost": "the first at 40 jobs; at 80 jobs "} {
		if got := fact.Find(f.Facts, code).Text; !strings.Contains(got, want) || !strings.Contains(f.Verdict, got) {
			t.Errorf("%s: %q is not in %q of %q", code, want, got, f.Verdict)
		}
	}
	if c := checkNamed(t, f, "jobs"); c.Status != Warn {
		t.Errorf("%+v", c)
	}
	for _, b := range f.Boundaries {
		t.Logf("%s: %s", b.Condition, b.Detail)
	}
	if len(f.Boundaries) != 3 || f.Boundaries[1].Condition != "cpu_efficiency >= 50%" || f.Boundaries[1].To == nil ||
		f.Boundaries[2].Next == nil || *f.Boundaries[2].Next != 40 {
		t.Errorf("%+v", f.Boundaries)
	}
}
