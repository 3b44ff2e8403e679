package engine

import (
	"fmt"
	"math"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"weir/internal/require"
	"weir/internal/unit"
	"weir/loadtest/measure"
	"weir/loadtest/scenario"
	"weir/loadtest/workload"
	"weir/storage"
)

// jobbing is work of jobs on files of known size.
func jobbing(j workload.Job) workload.Work {
	if j.Skim == 0 {
		j.Skim = 1
	}
	if j.Slim == 0 {
		j.Slim = 1
	}
	if j.Access == "" {
		j.Access = workload.Direct
	}
	return workload.Work{Kind: "job", Session: "kept", Pick: "random", Sum: "adler32", Job: &j}
}

// jobs returns the measurements of the jobs in a step's hold, and their efficiency.
func (n *notes) jobs(step int) (v measure.Interval, efficiency float64) {
	v = n.held(step)
	area := 0.0
	seen := map[time.Time]bool{}
	for _, i := range n.intervals {
		if i.Step == step && i.Phase == measure.Measured && !seen[i.Start] {
			seen[i.Start] = true
			area += i.Running * i.Seconds
		}
	}
	return v, v.Compute / area
}

func near(t *testing.T, what string, got, want, within float64) {
	t.Helper()
	if !(math.Abs(got-want) <= within*math.Abs(want)) {
		t.Errorf("%s is %v, want %v within %v%%", what, got, want, 100*within)
	}
}

// One job reads each page in 10 ms and computes 30 ms on each event of 5 pages:
// 80 ms an event, of which 30 ms are computing.
func TestEfficiencyOfJobsIsTheoretical(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		work := jobbing(workload.Job{Events: 100, Event: 40 << 10, Page: 8 << 10, Compute: workload.Span{Fixed: seconds(.03)}})
		conf, n := closed(t, "simulated://x?servers=100&service=10ms&dist=constant&files=100x8MiB", work,
			scenario.Step{Clients: 7, Duration: seconds(100)})
		require.NoError(t, Run(t.Context(), conf))
		v, efficiency := n.jobs(1)
		near(t, "efficiency", efficiency, 30./80, .02)
		near(t, "a job's wall clock time", v.Wall.Mean(), 8, .02)
		near(t, "events", float64(v.Events), 7*100/.08, .02)
		near(t, "used bytes", float64(v.Used), 7*100/.08*40960, .02)
		near(t, "moved bytes", float64(v.Moved), 7*100/.08*40960, .02)
		near(t, "running", v.Clients, 7, .001)
	})
}

// Read-ahead hides the shorter of reading and computing behind the longer: all
// but the first read, and all but the last computing.
func TestReadAheadOverlapsWithComputing(t *testing.T) {
	for _, c := range []struct{ read, compute float64 }{{.010, .030}, {.030, .010}, {.020, .020}} {
		synctest.Test(t, func(t *testing.T) {
			job := workload.Job{Events: 50, Event: 32 << 10, Page: 8 << 10, Ahead: 32 << 10, Compute: workload.Span{Fixed: seconds(c.compute)}}
			target := fmt.Sprintf("simulated://x?servers=100&service=%v&dist=constant&files=100x8MiB", time.Duration(seconds(c.read)))
			conf, n := closed(t, target, jobbing(job), scenario.Step{Clients: 3, Duration: seconds(60)})
			require.NoError(t, Run(t.Context(), conf))
			v, efficiency := n.jobs(1)
			wall := c.read + 49*max(c.read, c.compute) + c.compute
			near(t, "a job's wall clock time", v.Wall.Mean(), wall, .005)
			near(t, "efficiency", efficiency, 50*c.compute/wall, .02)
			if v.Late.Max() > .001 {
				t.Errorf("computing was %v s late", v.Late.Max())
			}
		})
	}
}

// A job may compute for longer than a step is held: only the computing within the hold counts.
func TestComputingCountsWhileItGoesOn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		job := workload.Job{Events: 1, Event: 8 << 10, Page: 8 << 10, Compute: workload.Span{Fixed: seconds(100)}}
		conf, n := closed(t, "simulated://x?servers=100&service=1ms&dist=constant&files=100x8MiB", jobbing(job),
			scenario.Step{Clients: 2, Warmup: seconds(5), Duration: seconds(10)})
		conf.Plan.GracefulStop = seconds(3.3)
		begin := time.Now()
		require.NoError(t, Run(t.Context(), conf))
		v, efficiency := n.jobs(1)
		near(t, "efficiency", efficiency, 1, .02)
		near(t, "compute time", v.Compute, 20, .02)
		var all measure.Interval
		for _, i := range n.intervals {
			all.Add(i)
		}
		near(t, "all compute time", all.Compute, 36.6, .001) // the drain's part: cancelled jobs
		if all.Started != 2 || all.Ended+all.JobsFailed+all.Crashed > 0 || all.Events > 0 {
			t.Errorf("of 2 jobs that were broken off %d begun, %d done, %d failed, %d crashed, %d events", all.Started, all.Ended, all.JobsFailed,
				all.Crashed, all.Events)
		}
		near(t, "the run's time", time.Since(begin).Seconds(), 18.3, .001) // the sleep ended at once
	})
}

// The reason for the end of a job decides its outcome.
func TestOutcomesOfJobs(t *testing.T) {
	for class, want := range map[storage.Class]string{storage.Timeout: "crashed", storage.Refused: "failed", storage.Reset: "failed",
		storage.Busy: "failed"} {
		synctest.Test(t, func(t *testing.T) {
			work := jobbing(workload.Job{Events: 10, Event: 8 << 10, Page: 8 << 10})
			work.Timeout = unit.Duration(2 * time.Second)
			conf, n := closed(t, fmt.Sprintf("simulated://x?servers=100&service=10ms&dist=constant&error.%v=100%%&files=100x8MiB", class), work,
				scenario.Step{Clients: 2, Duration: seconds(30)})
			require.NoError(t, Run(t.Context(), conf))
			v, _ := n.jobs(1)
			if v.Ended > 0 || (v.Crashed > 0) != (want == "crashed") || (v.JobsFailed > 0) != (want == "failed") || v.Crashed+
				v.JobsFailed != v.Failed[class] {
				t.Errorf("%v: %d done, %d crashed, %d failed; %v failed requests", class, v.Ended, v.Crashed, v.JobsFailed, v.Failed)
			}
		})
	}
}

// Each client does its jobs and leaves, the step ends with the last of them, and
// the next begins after the rest.
func TestStepsEndWithTheirJobs(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		job := workload.Job{Events: 10, Event: 8 << 10, Page: 8 << 10, Compute: workload.Span{Fixed: seconds(.2)}}
		step := scenario.Step{Duration: seconds(3600), Jobs: 3, Cooldown: seconds(1)}
		one, two := step, step
		one.Clients, two.Clients, two.Cooldown = 5, 2, 0
		conf, n := closed(t, "simulated://x?servers=100&service=50ms&dist=constant&files=100x8MiB", jobbing(job), one, two)
		begin := time.Now()
		require.NoError(t, Run(t.Context(), conf))
		near(t, "the run's time", time.Since(begin).Seconds(), 3*2.5+1+3*2.5, .001)
		for i, clients := range []int64{5, 2} {
			v, efficiency := n.jobs(i + 1)
			near(t, "hold", v.Seconds, 7.5, .001)
			near(t, "efficiency", efficiency, .8, .001)
			near(t, "clients", v.Clients, float64(clients), .001)
			if v.Started != 3*clients || v.Ended != 3*clients || v.Tasks != 3*clients {
				t.Errorf("step %d: %d jobs begun, %d done, %d tasks, want %d", i+1, v.Started, v.Ended, v.Tasks, 3*clients)
			}
		}
		for _, v := range n.intervals {
			if v.Seconds > 1.0001 {
				t.Errorf("an interval of %v s in phase %s of step %d", v.Seconds, v.Phase, v.Step)
			}
		}
	})
}

// In the open model a job's wall clock time counts from its planned start: here each job waits for
// all jobs before it, as there is one client for twice as many jobs as it can do.
func TestOpenJobsCountFromTheirPlannedStart(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		job := workload.Job{Events: 9, Event: 8 << 10, Page: 8 << 10, Compute: workload.Span{Fixed: seconds(.1)}}
		step := scenario.Step{Clients: 1, Rate: 2, Duration: seconds(20)}
		conf, n := closed(t, "simulated://x?servers=1&service=11111111ns&dist=constant&files=100x8MiB", jobbing(job), step)
		conf.Plan.Model = "open"
		require.NoError(t, Run(t.Context(), conf))
		v, efficiency := n.jobs(1) // job k begins at k s, and should have begun at k/2
		near(t, "efficiency", efficiency, .9, .02)
		near(t, "mean wall clock time", v.Wall.Mean(), 1+19*.5/2, .06)
		near(t, "longest wall clock time", v.Wall.Max(), 1+19*.5, .06)
	})
}

// A job on a file that cannot have its events fails at once and sends no request.
func TestJobsOnShortFiles(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		work := jobbing(workload.Job{Events: 10, Event: 8 << 10, Page: 8 << 10})
		work.Pick = "sequential"
		conf, n := closed(t, "simulated://x?servers=100&service=10ms&dist=constant&files=100x80KiB", work,
			scenario.Step{Clients: 1, Duration: seconds(30)})
		for i := range conf.Files {
			conf.Files[i].Size = 80 << 10 >> (i % 2) // every other file is half as long
		}
		require.NoError(t, Run(t.Context(), conf))
		v, _ := n.jobs(1)
		if v.Ended == 0 || v.JobsFailed < v.Ended-1 || v.JobsFailed != v.Failed[storage.Short] || v.Moved != v.Used || v.Used < 80<<10*v.Ended {
			t.Errorf("%d jobs done, %d failed, %v, %d bytes moved, %d used", v.Ended, v.JobsFailed, v.Failed, v.Moved, v.Used)
		}
		told := false
		for _, e := range n.events {
			told = told || strings.Contains(e.Text, "holds 5 events of 8KiB, and a job goes through 10")
		}
		if !told {
			t.Errorf("nobody says why: %+v", n.events)
		}
		for i := range conf.Files {
			conf.Files[i].Size = 79 << 10
		}
		if err := Run(t.Context(), conf); err == nil || !strings.Contains(err.Error(), "the largest of the 100 files holds 9 events") {
			t.Errorf("all files are too short: %v", err)
		}
	})
}
