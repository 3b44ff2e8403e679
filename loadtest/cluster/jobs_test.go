package cluster

import (
	"math"
	"slices"
	"sync"
	"testing"
	"time"

	"weir/internal/require"
	"weir/internal/tier"
	"weir/internal/unit"
	"weir/loadtest/engine"
	"weir/loadtest/measure"
	"weir/loadtest/scenario"
	"weir/loadtest/workload"
)

// jobs returns a run of jobs with very different durations, so that the clients of one process are
// gone long before the clients of another.
func jobs(clients ...int) engine.Config {
	var steps []scenario.Step
	for _, n := range clients {
		steps = append(steps, scenario.Step{Clients: n, Duration: unit.Duration(time.Minute), Jobs: 2,
			Cooldown: unit.Duration(300 * time.Millisecond)})
	}
	conf := plan(steps...)
	compute := workload.Span{Uniform: []unit.Duration{0, unit.Duration(1500 * time.Millisecond)}}
	conf.Plan.Work = workload.Work{Kind: "job", Session: "kept", Pick: "random", Job: &workload.Job{
		Access: workload.Direct, Events: 1, Event: 1024, Page: 512, Skim: 1, Slim: 1, Compute: compute,
	}}
	return conf
}

// A step ends with the last job of the last process: until then the others hold it as well, and no
// second belongs to two phases.
func TestStepsOfSeveralProcessesEndWithTheirJobs(t *testing.T) {
	tier.Slow(t, "starts processes")
	workers := []*hired{hire(t, "1"), hire(t, "2"), hire(t, "3")}
	conf, n := jobs(7, 2), &notes{} // the third process has nothing to do in the second step
	conf.Sink = n
	begin := time.Now()
	require.NoError(t, Control(t.Context(), conf, peers(workers), ""))
	wall := time.Since(begin).Seconds()
	if wall > 55 {
		t.Errorf("it took %.1f s: a step went on without its clients", wall)
	}
	for step, clients := range map[int]int64{1: 7, 2: 2} {
		var v measure.Interval
		area, running := 0.0, 0.0
		for _, i := range n.intervals {
			if i.Step == step && i.Phase == measure.Measured {
				v.Add(i)
				area, running = area+i.Clients*i.Seconds, running+i.Running*i.Seconds
			}
		}
		if v.Started != 2*clients || v.Ended != 2*clients {
			t.Errorf("step %d: %d jobs begun, %d done in the hold, want %d", step, v.Started, v.Ended, 2*clients)
		}
		if math.Abs(running-area) > .1*area || math.Abs(running-v.Wall.Sum()) > .1*running {
			t.Errorf("step %d: %.2f client seconds, %.2f s of running jobs, which took %.2f s", step, area, running, v.Wall.Sum())
		}
	}
	spans := map[time.Time]float64{}
	var all []*measure.Interval
	for _, v := range n.intervals {
		if _, seen := spans[v.Start]; !seen {
			all = append(all, v)
		}
		spans[v.Start] = v.Seconds
	}
	slices.SortFunc(all, func(a, b *measure.Interval) int { return a.Start.Compare(b.Start) })
	for i, v := range all {
		if v.Seconds > 1.5 {
			t.Errorf("an interval of %v s", v.Seconds)
		}
		if i > 0 && all[i-1].Start.Add(time.Duration(all[i-1].Seconds*1e9)).Sub(v.Start) > 600*time.Millisecond {
			t.Errorf("%s of step %d at %v begins before %s of step %d is over", v.Phase, v.Step, v.Start, all[i-1].Phase, all[i-1].Step)
		}
	}
}

// Measurements of jobs are separated by the site of the jobs, and are also in the sums.
func TestJobsOfSeveralSites(t *testing.T) {
	tier.Slow(t, "runs for seconds")
	workers := []*hired{hire(t, "1"), hire(t, "2"), hire(t, "3")}
	for i, site := range []string{"padova", "cern", "padova"} {
		workers[i].Site = site
	}
	conf, n := jobs(6), &notes{}
	conf.Sink = n
	require.NoError(t, Control(t.Context(), conf, peers(workers), ""))
	var all measure.Interval
	for _, v := range n.intervals {
		all.Add(v)
	}
	padova, cern := all.Sites["padova"], all.Sites["cern"]
	if len(all.Sites) != 2 || padova == nil || cern == nil {
		t.Fatalf("sites %v", all.Sites)
	}
	if padova.Started != 8 || padova.Ended != 8 || cern.Started != 4 || cern.Ended != 4 || all.Ended != 12 {
		t.Errorf("padova %+v, cern %+v, all %+v", padova.Jobs, cern.Jobs, all.Jobs)
	}
	if got := padova.Wall.Count() + cern.Wall.Count(); padova.Moved+cern.Moved != all.Moved || got != all.Wall.Count() ||
		math.Abs(padova.Wall.Sum()+cern.Wall.Sum()-all.Wall.Sum()) > 1e-6 {
		t.Errorf("%d and %d of %d bytes, %d of %d wall clock times", padova.Moved, cern.Moved, all.Moved, got, all.Wall.Count())
	}
}

// A step does not wait for a lost worker.
func TestALostProcessDoesNotHoldUpItsStep(t *testing.T) {
	tier.Slow(t, "starts processes")
	workers := []*hired{hire(t, "1"), hire(t, "2")}
	conf, n := jobs(4, 1), &notes{}
	conf.Plan.Work.Job.Compute = workload.Span{Fixed: unit.Duration(1200 * time.Millisecond)}
	conf.Sink = n
	var once sync.Once
	n.seen = func(*measure.Interval) { once.Do(workers[1].cut) }
	begin := time.Now()
	require.NoError(t, Control(t.Context(), conf, peers(workers), ""))
	if wall := time.Since(begin); wall > 55*time.Second {
		t.Errorf("it took %v", wall)
	}
	if !n.has("warning", "worker 2 was lost") || !n.has("step", "step 2") || !n.has("end", measure.AllDone) {
		t.Errorf("events %+v", n.events)
	}
}
