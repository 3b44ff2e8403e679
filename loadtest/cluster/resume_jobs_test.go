package cluster

import (
	"math"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"weir/internal/require"
	"weir/internal/tier"
	"weir/loadtest/measure"
)

// heldFor sums the written seconds of a step's hold.
func (n *notes) heldFor(step int) (s float64) {
	for _, v := range n.intervals {
		if v.Step == step && v.Phase == measure.Measured {
			s += v.Seconds
		}
	}
	return s
}

// Clients are jobs, and the controller is killed: one job begins while there is no controller,
// another later. All jobs are recorded, and each counts for its whole duration.
func TestAKilledControllerOfJobsIsFoundAgain(t *testing.T) {
	tier.Slow(t, "starts processes")
	t.Parallel()
	dir, env, calm := t.TempDir(), jobsEnv+"=yes", watchCalm(t)
	run := filepath.Join(dir, "run")
	first := conduct(t, dir, env)
	pass := passOf(t, dir)
	jobs := []*job{submit(t, pass, patient), submit(t, pass, patient), submit(t, pass, patient)}
	require.Eventually(t, "three jobs", func() bool {
		all := read(t, run).intervals
		return len(all) > 0 && all[len(all)-1].Clients > 2.5
	})
	first.kill()
	jobs = append(jobs, submit(t, pass, patient))
	<-time.After(2 * time.Second) // reports cannot be sent
	second := conduct(t, dir, env)
	require.Eventually(t, "the second controller", func() bool { return read(t, run).has("resume", "") })
	jobs = append(jobs, submit(t, pass, patient))
	for _, j := range append(jobs, second) {
		j.end(t)
	}
	ofJobs(t, read(t, run), jobs, 5*7, calm())
}

// All jobs end while there is no controller: the next controller receives the reports that they
// keep, and notifies them that the run is over.
func TestJobsThatEndWithoutAController(t *testing.T) {
	tier.Slow(t, "starts processes")
	t.Parallel()
	dir, env, calm := t.TempDir(), jobsEnv+"=yes", watchCalm(t)
	run := filepath.Join(dir, "run")
	first := conduct(t, dir, env)
	pass := passOf(t, dir)
	var jobs []*job
	for range 5 {
		jobs = append(jobs, submit(t, pass, patient))
	}
	require.Eventually(t, "a second that is held", func() bool { return read(t, run).heldFor(1) > 0 })
	first.kill()
	<-time.After(8 * time.Second) // longer than the step
	for _, j := range append(jobs, conduct(t, dir, env)) {
		j.end(t)
	}
	ofJobs(t, read(t, run), jobs, 5*7, calm())
}

// ofJobs checks the results of jobs whose durations sum up to want seconds.
func ofJobs(t *testing.T, n *notes, jobs []*job, want float64, timely bool) {
	t.Helper()
	if did := done(jobs); did == 0 || did != n.done() {
		t.Errorf("the workers did %d operations, %d were written", did, n.done())
	}
	once(t, n)
	area, phases := 0.0, []string(nil)
	slices.SortStableFunc(n.intervals, func(a, b *measure.Interval) int { return a.Start.Compare(b.Start) })
	for _, v := range n.intervals {
		area += v.Clients * v.Seconds
		whole := v.Seconds == math.Trunc(v.Seconds) && v.Start.Nanosecond() == 0
		if timely && (v.Clients > float64(len(jobs))+.5 || v.Seconds != 1) || !whole || v.Step != 1 {
			t.Errorf("%v clients for %v s at %v in step %d", v.Clients, v.Seconds, v.Start, v.Step)
		}
		if len(phases) == 0 || phases[len(phases)-1] != v.Phase {
			phases = append(phases, v.Phase)
		}
	}
	if timely && math.Abs(area-want) > .02*want {
		t.Errorf("%.2f client seconds, want %v", area, want)
	}
	if !slices.Equal(phases, []string{measure.Ramp, measure.Measured, measure.GracefulStop}) {
		t.Errorf("phases %v", phases)
	}
	if n.count("resume", "workers still hold step 1, which goes on") != 1 || !n.has("end", measure.AllDone) || n.has("warning", "") {
		t.Errorf("events %v", n.events)
	}
}

// The controller is killed after the hold of the last step: the remaining reports of workers are
// written, and the workers are notified that the run is over.
func TestAControllerKilledInTheLastDrain(t *testing.T) {
	tier.Slow(t, "starts processes")
	t.Parallel()
	dir := t.TempDir()
	run := filepath.Join(dir, "run")
	env, calm := coolEnv+"=3s", watchCalm(t)
	first := conduct(t, dir, env)
	pass := passOf(t, dir)
	jobs := []*job{submit(t, pass, patient), submit(t, pass, patient), submit(t, pass, patient)}
	require.Eventually(t, "the end of step 2", func() bool { return read(t, run).heldFor(2) >= 3.75 })
	first.kill()
	for _, j := range append(jobs, conduct(t, dir, env)) {
		j.end(t)
	}
	n := read(t, run)
	if did := done(jobs); did == 0 || did != n.done() {
		t.Errorf("the workers did %d operations, %d were written", did, n.done())
	}
	once(t, n)
	if s := n.heldFor(2); calm() && math.Abs(s-4) > .2 || n.has("step", "step 3") || !n.has("end", measure.AllDone) {
		t.Errorf("step 2 was held for %v s; events %v", s, n.events)
	}
}
