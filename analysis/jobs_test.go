package analysis

import (
	"math"
	"testing"

	"weir/measure"
	"weir/results/resultstest"
)

// The figures of jobs are those that the made-up farm has by its formulas.
func TestJobFigures(t *testing.T) {
	s := resultstest.Farm()
	s.Hold, s.Jobs.Failed = 40, 0.05
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

// Where no job ends while the load is held, how long one takes is estimated.
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

// A run without jobs says nothing of any; one whose jobs never compute has no
// efficiency, and a step in which they only waited has none left.
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

func TestScratchDevice(t *testing.T) {
	for _, c := range []struct {
		device, disk string
		want         bool
	}{
		{"vda", "vda", true}, {"/dev/vda1", "vda", true}, {"nvme0n1p2", "nvme0n1", true}, {"nvme0n1", "nvme0n1", true}, {"mmcblk0p12", "mmcblk0", true},
		{"vdab", "vda", false}, {"vdb1", "vda", false}, {"nvme0n12", "nvme0n1", false}, {"tmpfs", "vda", false}, {"", "vda", false}, {"vda", "", false}, {"nvme0n1p", "nvme0n1", false},
	} {
		if got := liesOn(c.device, c.disk); got != c.want {
			t.Errorf("%s on %s: %v", c.device, c.disk, got)
		}
	}
}
