package main

import (
	"errors"
	"fmt"
	"os"
	"slices"
	"time"

	"weir/engine"
	"weir/internal/unit"
	"weir/measure"
	"weir/results"
	"weir/scenario"
)

// A resumed is the run that a session goes on with.
type resumed struct {
	out      *results.Writer
	run      *results.Run
	progress *results.Progress
	first    int // place in the plan of the step to go on with
	broken   int // number of the step that was broken off, 0 if none
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

// resumeSession opens the run in dir and has next go on with it.
func resumeSession(in interrupts, dir string, f runFlags, s streams, next func(*session) error) (err error) {
	run, err := reopen(dir)
	if err != nil {
		return err
	}
	f.page.show(dir)
	r := newSession(in, run.run.Plan, f, s)
	r.resumed = run
	defer func() {
		if r.out == nil { // nobody else closes it
			err = errors.Join(err, run.out.Close())
		}
	}()
	return next(r)
}

// resumeRun goes on with the run in dir at the step where it stopped: with its
// plan, and with secrets from where the plan says that they are. What it had
// made on its target is removed and made anew.
func resumeRun(in interrupts, dir string, f runFlags, s streams) error {
	return resumeSession(in, dir, f, s, func(r *session) error {
		if err := r.resumed.refuse(); err != nil {
			return exit{exitUsage, fmt.Errorf("%s: %w", dir, err)}
		}
		return r.run(dir, func() error { return conclude(dir, f.json, f.failOn, s) })
	})
}

var errKept = errors.New("a run that leaves what it writes (workload.keep) cannot be resumed: it would write the same names again")

// refuse says why the run cannot go on, nil if it can. It takes from the plan's
// stop rules what was done already.
func (run *resumed) refuse() error {
	p := run.run.Plan
	switch {
	case p.Find != nil:
		return errors.New("this was a search: go on with weir find --resume")
	case run.first >= len(p.Steps) && !run.hanging():
		return run.over()
	case p.Work.Keep:
		return errKept
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

// hanging tells whether workers may still wait to be told that the run is over,
// with reports that nobody has taken: it was killed before it ended.
func (run *resumed) hanging() bool {
	if run.run.Plan.On.Batch == "" || run.progress.Ended != nil {
		return false
	}
	state, err := stateDir(run.run.About.Run)
	if err == nil {
		_, err = os.Stat(state)
	}
	return err == nil
}

// with goes on with the workers of the run if they were found. Where clients are
// jobs, a step may have been held for long enough and not be over.
func (run *resumed) with(workers bool) error {
	last := len(run.progress.Steps) - 1
	switch {
	case run.run.Plan.Find != nil: // it says itself whether it is over
	case !workers && run.first >= len(run.run.Plan.Steps):
		return exit{exitUsage, run.over()}
	case workers && run.run.Plan.On.JobPerClient && run.broken == 0 && last >= 0 && !run.progress.Steps[last].Passed:
		run.first, run.broken = run.first-1, run.progress.Steps[last].Number
	}
	return nil
}

// steps are those that are left. Their numbers are new ones, beyond all of the
// plan's: what was held of the one that was broken off keeps its number.
func (run *resumed) steps() []scenario.Step {
	number := max(len(run.run.Plan.Steps), run.progress.Last)
	left := slices.Clone(run.run.Plan.Steps[run.first:])
	for i := range left {
		left[i].Number, left[i].Begin = number+1+i, time.Time{}
	}
	return left
}

// spent is for how long there was load before the run was resumed.
func (r *session) spent() time.Duration {
	if r.resumed == nil {
		return 0
	}
	return r.resumed.progress.Spent
}

// ahead is the plan of what the session has still to do.
func (r *session) ahead() *scenario.Plan {
	if r.find != nil {
		left := *r.plan
		find := r.find.limits
		find.Time = unit.Duration(max(r.find.left(), 0))
		left.Find = &find
		return &left
	}
	if r.resumed == nil {
		return r.plan
	}
	left := *r.plan
	left.Steps = r.resumed.steps()
	return &left
}

// again makes the target as it was before the run that is resumed: what that
// has left there goes, and only what its manifest names in its own folder.
func (r *session) again(m *results.Manifest) error {
	if r.resumed == nil || r.troop != nil && r.troop.found { // whose workers use it
		return nil
	}
	left, err := leftovers(m)
	if err == nil {
		err = within(left, r.config.Folder)
	}
	if err != nil || len(left) == 0 {
		return err
	}
	return r.sweep(m)
}

// goOn tells that the run is resumed, and steers it to the steps that are left.
func (r *session) goOn() error {
	if r.find != nil {
		r.config.Pilot = r.find.pilot(r)
	}
	if r.resumed == nil {
		return nil
	}
	text := "resumed by weir " + version()
	if r.resumed.broken > 0 {
		text += fmt.Sprintf("; step %d was broken off and is held again", r.resumed.broken)
	}
	if r.find == nil {
		r.config.Pilot = engine.Alone(r.ahead())
	}
	if r.troop != nil && r.troop.found {
		return nil // who finds its workers knows more, and tells
	}
	return r.config.Sink.Event(measure.Event{Time: time.Now().UTC(), Kind: "resume", Step: r.resumed.broken, Text: text})
}
