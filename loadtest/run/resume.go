package run

import (
	"errors"
	"fmt"
	"os"
	"slices"
	"time"

	"weir/internal/unit"
	"weir/loadtest/cluster"
	"weir/loadtest/engine"
	"weir/loadtest/measure"
	"weir/loadtest/results"
	"weir/loadtest/scenario"
)

// A resumed run is a run that a session continues.
type resumed struct {
	out      *results.Writer
	run      *results.Run
	progress *results.Progress
	first    int // place in the plan of the step to go on with
	broken   int // number of the step that was interrupted, 0 if no step was
}

// reopen opens the run in dir to go on with it.
func reopen(dir string) (*resumed, error) {
	out, run, err := results.Resume(dir)
	if err != nil {
		return nil, err
	}
	p, err := run.Progress()
	if err != nil {
		return nil, errors.Join(err, out.Close())
	}
	first, broken := p.Left()
	return &resumed{out: out, run: run, progress: p, first: first, broken: broken}, nil
}

// Resume continues the run in c.Dir at the step where it stopped: with its plan, and with secrets
// from the places that the plan names. The files and folders of the run on its target are removed
// and made again. target is the target of the run if the plan lacks its secrets, or "".
func Resume(c Config, target string) error {
	return resume(c, target, func(r *session) error {
		if err := r.resumed.refuse(); err != nil {
			return usage(fmt.Errorf("%s: %w", c.Dir, err))
		}
		return r.run()
	})
}

// resume opens the run in c.Dir and calls next to continue it.
func resume(c Config, target string, next func(*session) error) (err error) {
	run, err := reopen(c.Dir)
	if err != nil {
		return err
	}
	plan, err := run.run.Plan.Complete(target)
	if err != nil {
		return usage(errors.Join(fmt.Errorf("--resume %s: %w", c.Dir, err), run.out.Close()))
	}
	run.run.Plan, c.Plan = plan, plan
	r := newSession(c)
	r.resumed = run
	defer func() {
		if r.out == nil { // measure has not taken it over
			err = errors.Join(err, run.out.Close())
		}
	}()
	return next(r)
}

var errKept = errors.New("a run that leaves what it writes (workload.keep) cannot be resumed: it would write the same names again")

var errEvents = errors.New("a run with events cannot be resumed: their times are those of one load; run the scenario again")

// refuse returns an error if the run cannot continue. It subtracts the earlier part of the run from
// the plan's stop rules.
func (run *resumed) refuse() error {
	p := run.run.Plan
	switch {
	case p.Find != nil:
		return errors.New("this was a search: go on with weir find --resume")
	case run.first >= len(p.Steps) && !run.hanging():
		return run.over()
	case p.Keeps():
		return errKept
	case len(p.Events) > 0:
		return errEvents
	}
	spent := run.progress
	if t := p.Stop.Time; t > 0 {
		if p.Stop.Time -= unit.Duration(spent.Spent); p.Stop.Time <= 0 {
			return fmt.Errorf("the run is over: stop.time is %v", t)
		}
	}
	if n := p.Stop.Count; n > 0 {
		if p.Stop.Count -= spent.Done; p.Stop.Count <= 0 {
			return fmt.Errorf("the run is over: stop.count is %d", n)
		}
	}
	if n := p.Stop.Bytes; n > 0 {
		if p.Stop.Bytes -= unit.Size(spent.Moved); p.Stop.Bytes <= 0 {
			return fmt.Errorf("the run is over: stop.bytes is %v", n)
		}
	}
	return nil
}

func (run *resumed) over() error {
	return fmt.Errorf("the run is over: all %d steps were held; start a new one with weir run", len(run.run.Plan.Steps))
}

// hanging reports whether workers may still wait for the end of the run, with reports that were not
// collected: it was killed before it ended.
func (run *resumed) hanging() bool {
	if run.run.Plan.On.Batch == "" || run.progress.Ended != nil {
		return false
	}
	state, err := cluster.StateDir(run.run.About.Run)
	if err == nil {
		_, err = os.Stat(state)
	}
	return err == nil
}

// with continues with the workers of the run if they were found. If clients are jobs, a step may
// have been held for long enough and not be over.
func (run *resumed) with(workers bool) error {
	last := len(run.progress.Steps) - 1
	switch {
	case run.run.Plan.Find != nil: // the search decides itself whether it is over
	case !workers && run.first >= len(run.run.Plan.Steps):
		return usage(run.over())
	case workers && run.run.Plan.On.JobPerClient && run.broken == 0 && last >= 0 && !run.progress.Steps[last].Passed:
		run.first, run.broken = run.first-1, run.progress.Steps[last].Number
	}
	return nil
}

// steps returns the remaining steps. Their numbers are new, beyond all numbers of the plan: the
// measurements of the step that was interrupted keep its number.
func (run *resumed) steps() []scenario.Step {
	number := max(len(run.run.Plan.Steps), run.progress.Last)
	left := slices.Clone(run.run.Plan.Steps[run.first:])
	for i := range left {
		left[i].Number, left[i].Place, left[i].Begin = number+1+i, run.first+1+i, time.Time{}
	}
	return left
}

// spent returns the time for which there was load before the run was resumed.
func (r *session) spent() time.Duration {
	if r.resumed == nil {
		return 0
	}
	return r.resumed.progress.Spent
}

// ahead returns the plan of the remaining part of the session.
func (r *session) ahead() *scenario.Plan {
	if r.find != nil {
		left := *r.Plan
		find := r.find.limits
		find.Time = unit.Duration(max(r.find.left(), 0))
		left.Find = &find
		return &left
	}
	if r.resumed == nil {
		return r.Plan
	}
	left := *r.Plan
	left.Steps = r.resumed.steps()
	return &left
}

// cleanTarget removes the files and folders of the resumed run from the target, and only paths of
// its manifest in its own folder.
func (r *session) cleanTarget(m *results.Manifest) error {
	if r.resumed == nil || r.foundWorkers() { // they use it
		return nil
	}
	left, err := leftovers(m)
	if err == nil {
		err = within(left, r.engine.Folder)
	}
	if err != nil || len(left) == 0 {
		return err
	}
	return r.sweep(m)
}

// resumeSteps writes that the run is resumed, and continues with the remaining steps.
func (r *session) resumeSteps() error {
	if r.resumed == nil {
		return nil
	}
	text := "resumed by weir " + r.Version
	if r.resumed.broken > 0 {
		text += fmt.Sprintf("; step %d was broken off and is held again", r.resumed.broken)
	}
	if r.find == nil {
		r.engine.Steps = engine.FixedSteps(r.ahead())
	}
	if r.foundWorkers() {
		return nil // cluster writes it, with the state of the workers
	}
	return r.engine.Sink.Event(measure.Event{Time: time.Now().UTC(), Kind: measure.EventResume, Step: r.resumed.broken, Text: text})
}

// past returns the earlier measurements, for workers that are found.
func (run *resumed) past(version string) *cluster.ResumeState {
	return &cluster.ResumeState{Intervals: run.run.Intervals(), Events: run.run.Events(), Samples: run.run.Samples(),
		Text: "resumed by weir " + version}
}
