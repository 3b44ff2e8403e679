package engine

import (
	"math"
	"testing"
	"testing/synctest"
	"time"

	"weir/measure"
	"weir/scenario"
	"weir/workload"
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

// jobs returns what a step's hold says of jobs, and their efficiency.
func (n *notes) jobs(step int) (v measure.Interval, efficiency float64) {
	v = n.held(step)
	area := 0.0
	seen := map[time.Time]bool{}
	for _, i := range n.intervals {
		if i.Step == step && i.Phase == measure.Hold && !seen[i.Start] {
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
		conf, n := closed(t, "simulated://x?servers=100&service=10ms&dist=constant&files=100x8MiB", work, scenario.Step{Clients: 7, Hold: seconds(100)})
		if err := Run(t.Context(), conf); err != nil {
			t.Fatal(err)
		}
		v, efficiency := n.jobs(1)
		near(t, "efficiency", efficiency, 30./80, .02)
		near(t, "a job's wall clock time", v.Wall.Mean(), 8, .02)
		near(t, "events", float64(v.Events), 7*100/.08, .02)
		near(t, "used bytes", float64(v.Used), 7*100/.08*40960, .02)
		near(t, "moved bytes", float64(v.Moved), 7*100/.08*40960, .02)
		near(t, "running", v.Clients, 7, .001)
	})
}
