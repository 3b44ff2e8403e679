package analysis

import (
	"math"
	"testing"

	"weir/link"
	"weir/loadtest/measure"
	"weir/loadtest/results/resultstest"
)

// farAndNear returns a farm whose jobs run at two sites, a quarter of them far away.
func farAndNear() resultstest.Service {
	s := resultstest.Farm()
	s.Clients, s.Duration = []int{4, 8, 40}, 40
	s.Jobs.Far, s.Jobs.Job.Events = 0.25, 20
	s.Links = []link.Named{{Name: "near", Spec: link.Spec{Share: 3}}, {Name: "far"}, {Name: "idle", Spec: link.Spec{Share: 1e-6}}}
	return s
}

// TestSites checks that each site has its own figures, and that the figures of all sites together
// are the figures of the step.
func TestSites(t *testing.T) {
	s := farAndNear()
	s.Jobs.Failed = 0.1
	f := of(t, s)
	for i := range f.Curve {
		x := &f.Curve[i]
		if len(x.Sites) != 2 || x.Sites[0].Site != "near" || x.Site("idle") != nil {
			t.Fatalf("sites %+v", x.Sites)
		}
		near, far := x.Site("near"), x.Site("far")
		if far.Clients != x.Clients/4 || near.Clients != x.Clients-far.Clients {
			t.Errorf("%d of %d clients are far, %d near", far.Clients, x.Clients, near.Clients)
		}
		for name, v := range map[string][3]float64{
			"running":    {near.RunningJobs, far.RunningJobs, x.RunningJobs},
			"done":       {float64(near.Jobs.Done), float64(far.Jobs.Done), float64(x.Jobs.Done)},
			"failed":     {float64(near.Jobs.Failed), float64(far.Jobs.Failed), float64(x.Jobs.Failed)},
			"events":     {near.EventRate, far.EventRate, x.EventRate},
			"throughput": {near.Throughput, far.Throughput, x.Throughput},
			"cluster":    {*near.ClusterThroughput, *far.ClusterThroughput, *x.ClusterThroughput},
			"wall clock": {near.JobSeconds.Mean * float64(near.JobSeconds.Count), far.JobSeconds.Mean * float64(far.JobSeconds.Count),
				x.JobSeconds.Mean * float64(x.JobSeconds.Count)},
		} {
			if !(math.Abs(v[0]+v[1]-v[2]) <= 1e-6*v[2]) || v[0] <= 0 || v[2] <= 0 {
				t.Errorf("%d jobs: %s: %v near and %v far, %v together", x.Clients, name, v[0], v[1], v[2])
			}
		}
		if r := far.JobSeconds.Mean / near.JobSeconds.Mean; math.Abs(r-2) > 0.3 {
			t.Errorf("%d jobs: a job takes %v times as long far away", x.Clients, r)
		}
		if e := *x.CPUEfficiency; math.Abs(*far.CPUEfficiency/e-0.5) > 0.01 || math.Abs(*near.CPUEfficiency/e-3.5/3) > 0.01 {
			t.Errorf("%d jobs: efficiency %v near and %v far, %v together", x.Clients, *near.CPUEfficiency, *far.CPUEfficiency, e)
		}
		if !(*far.CPUEfficiencyLow < *far.CPUEfficiency && *far.CPUEfficiency < *far.CPUEfficiencyHigh) {
			t.Errorf("%v to %v", *far.CPUEfficiencyLow, *far.CPUEfficiencyHigh)
		}
	}
}

// TestASiteThatIsIdleForAWhile checks that a site without data in some seconds was idle then, and
// that a site that is not in the plan has no planned clients.
func TestASiteThatIsIdleForAWhile(t *testing.T) {
	s := farAndNear()
	s.Links = s.Links[1:]
	s.Interval = func(v *measure.Interval) {
		if v.Start.Unix()%2 == 0 {
			delete(v.Sites, "far")
		}
	}
	x := &of(t, s).Curve[2]
	if r := x.Site("far").RunningJobs; math.Abs(r-5) > 0.01 {
		t.Errorf("%v jobs ran far away, want half of 10", r)
	}
	if near := x.Sites[1]; near.Site != "near" || near.Clients != 0 {
		t.Errorf("%+v", near)
	}
}
