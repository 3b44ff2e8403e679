package cluster

import (
	"context"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"weir/internal/require"
	"weir/internal/tier"
	"weir/internal/unit"
	"weir/loadtest/engine"
	"weir/loadtest/measure"
	"weir/loadtest/results"
	"weir/loadtest/scenario"
)

// dirEnv makes this test binary a controller that writes to the folder of that name, new or old.
const dirEnv = "WEIR_TEST_DIR"

// patient is the patience of controllers and workers that are processes.
const patient = 6 * time.Second

func longPlan() engine.Config { return plan(stepOf(12, 6), stepOf(8, 4)) }

// jobsEnv makes the controller treat workers as jobs of one client each.
const jobsEnv = "WEIR_TEST_JOBS"

// coolEnv is the rest of the service after each step.
const coolEnv = "WEIR_TEST_COOL"

func beController(dir string) error {
	conf := longPlan()
	run := filepath.Join(dir, "run")
	crew := WorkerOptions{Want: 3, Wait: time.Minute, patience: patient}
	if cool, err := time.ParseDuration(os.Getenv(coolEnv)); err == nil {
		for i := range conf.Plan.Steps {
			conf.Plan.Steps[i].Cooldown = unit.Duration(cool)
		}
	}
	if os.Getenv(jobsEnv) != "" {
		conf, crew.JobPerClient = plan(stepOf(5, 7)), true
	}
	out, err := results.Create(run, conf.Plan, results.About{})
	if errors.Is(err, os.ErrExist) {
		var old *results.Run
		if out, old, err = results.Resume(run); err == nil {
			err = goOn(&conf, &crew, old)
		}
	}
	if err != nil {
		return err
	}
	conf.Sink = out
	d, err := NewServer(ServerOptions{Address: "127.0.0.1", State: filepath.Join(dir, "state")})
	if err != nil {
		return err
	}
	if pass := filepath.Join(dir, "pass"); crew.ResumeState == nil {
		if err := errors.Join(d.Pass().Write(pass+".new"), os.Rename(pass+".new", pass)); err != nil {
			return err
		}
	}
	return errors.Join(d.Control(context.Background(), conf, crew), d.Close(), out.Close())
}

// goOn makes a run continue at the step at which it was killed, as weir run --resume does.
func goOn(conf *engine.Config, crew *WorkerOptions, old *results.Run) error {
	p, err := old.Progress()
	if err != nil {
		return err
	}
	first, broken := p.Left()
	if last := len(p.Steps) - 1; crew.JobPerClient && broken == 0 {
		first, broken = last, p.Steps[last].Number
	}
	left := append([]scenario.Step(nil), conf.Plan.Steps[first:]...)
	for i := range left {
		left[i].Number = p.Last + 1 + i
	}
	conf.Steps = engine.FixedSteps(&scenario.Plan{Steps: left})
	crew.ResumeState = &ResumeState{Intervals: old.Intervals(), Events: old.Events(), Samples: old.Samples(), Broken: broken, Text: "resumed"}
	return nil
}

// conduct starts a controller that is a process.
func conduct(t *testing.T, dir string, env ...string) *job {
	t.Helper()
	self, err := os.Executable()
	require.NoError(t, err)
	j := &job{cmd: exec.Command(self), done: make(chan struct{})}
	j.cmd.Env = append(append(os.Environ(), dirEnv+"="+dir), env...)
	j.cmd.Stderr = os.Stderr
	require.NoError(t, j.cmd.Start())
	go func() { j.err = j.cmd.Wait(); close(j.done) }()
	t.Cleanup(j.kill)
	return j
}

// passOf waits for the pass of a controller that is a process.
func passOf(t *testing.T, dir string) (p Pass) {
	t.Helper()
	require.Eventually(t, "the pass", func() (is bool) {
		var err error
		p, err = ReadPass(filepath.Join(dir, "pass"))
		return err == nil
	})
	return p
}

// read returns the contents of a run directory.
func read(t *testing.T, run string) *notes {
	t.Helper()
	r, err := results.Open(run)
	require.NoError(t, err)
	n := &notes{}
	for v, err := range r.Intervals() {
		require.NoError(t, err)
		n.intervals = append(n.intervals, v)
	}
	for e, err := range r.Events() {
		require.NoError(t, err)
		n.events = append(n.events, *e)
	}
	return n
}

func TestAKilledControllerIsFoundAgain(t *testing.T) {
	tier.Slow(t, "starts processes")
	t.Parallel()
	dir := t.TempDir()
	run, calm := filepath.Join(dir, "run"), watchCalm(t)
	first := conduct(t, dir)
	pass := passOf(t, dir)
	var jobs []*job
	for range 3 {
		jobs = append(jobs, submit(t, pass, patient))
	}
	require.Eventually(t, "a second of step 1 that is held", func() bool {
		n := read(t, run)
		return len(n.intervals) > 2 && n.intervals[len(n.intervals)-1].Phase == measure.Measured
	})
	first.kill()
	<-time.After(1500 * time.Millisecond) // reports cannot be sent
	second := conduct(t, dir)
	for _, j := range append(jobs, second) {
		j.end(t)
	}
	n := read(t, run)
	if did := done(jobs); did == 0 || did != n.done() {
		t.Errorf("the workers did %d operations, %d were written", did, n.done())
	}
	once(t, n)
	if !n.has("resume", "workers still hold step 1, which goes on") || !n.has("end", measure.AllDone) || n.has("warning", "") {
		t.Errorf("events %v", n.events)
	}
	held := map[int]float64{}
	for _, v := range n.intervals {
		if v.Phase == measure.Measured {
			held[v.Step] += v.Seconds
		}
	}
	if len(held) != 2 || calm() && (held[1] < 5.8 || held[1] > 6.2 || held[2] < 3.8 && held[3] < 3.8) {
		t.Errorf("seconds of hold by step: %v, want 6 and 4", held)
	}
}

// Reports of a worker that ends before its first step belong to no step.
func TestIntervalsOfNoStep(t *testing.T) {
	n := &notes{}
	k := newController(engine.Config{Plan: &scenario.Plan{}, Sink: n}, WorkerOptions{}, time.Now)
	s := newSession(0)
	w := &remote{connection: s, there: true}
	s.taken, s.open[1] = 1, struct{}{}
	if err := errors.Join(k.report(w, &report{No: 1, Interval: &measure.Interval{Start: time.Now(), Phase: measure.GracefulStop}}),
		k.sum.flush()); err != nil {
		t.Fatal(err)
	}
	if len(n.intervals) != 0 || s.acked() != 1 {
		t.Errorf("%d intervals written, reports up to %d done with", len(n.intervals), s.acked())
	}
}

// A worker that reconnects keeps seconds of the step that it held, and may be given the next step
// before it has reported them: the time of the other workers does not pass it.
func TestAWorkerThatIsBackHasYetToTell(t *testing.T) {
	k := newController(engine.Config{Plan: &scenario.Plan{}, Sink: &notes{}}, WorkerOptions{ResumeState: &ResumeState{Broken: 1}}, time.Now)
	k.past = k.options.ResumeState
	old, fresh := &remote{connection: newSession(0), there: true, absent: true, in: true, held: true},
		&remote{connection: newSession(0), there: true}
	require.NoError(t, k.restore(old, &registration{Step: 1, Ready: true}))
	k.workers = []*remote{old, fresh}
	part := scenario.Step{Number: 2, Clients: 1, Begin: time.Now()}
	k.give(old, part)
	k.give(fresh, part)
	if at := k.reportedUntil(); !at.IsZero() || fresh.latest.IsZero() {
		t.Errorf("all have told up to %v; the new one has nothing to tell of before %v", at, fresh.latest)
	}
}

// A resumed run gives each population the clients of the step that is held again under a new
// number.
func TestPopulationsOfAResumedRun(t *testing.T) {
	p := &scenario.Plan{Populations: []scenario.Population{{Name: "a", Clients: []int{10, 10}}, {Name: "b", Clients: []int{10, 40}}},
		Steps: []scenario.Step{{Number: 1, Clients: 20}, {Number: 2, Clients: 50}}}
	for step, want := range map[scenario.Step][2]int{
		{Number: 1, Clients: 20}: {10, 10}, {Number: 2, Clients: 50}: {10, 40}, {Number: 3, Place: 1, Clients: 20}: {10, 10},
	} {
		k := newController(engine.Config{Plan: p, Sink: &notes{}}, WorkerOptions{}, time.Now)
		for i := range 2 {
			k.workers = append(k.workers, &remote{connection: newSession(0), there: true, ready: true, site: i})
			k.heard(k.workers[i])
		}
		require.NoError(t, k.begin(t.Context(), engine.Answer{Step: step}))
		if got := [2]int{k.workers[0].clients, k.workers[1].clients}; got != want {
			t.Errorf("step %d: %d clients, want %d", step.Number, got, want)
		}
	}
}
