package cluster

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"weir/loadtest/engine"
	"weir/loadtest/measure"
	"weir/loadtest/scenario"
)

// A jobStep is a step whose clients are jobs of a batch system. Each job has a worker of its own,
// which works from its start for the duration of the step. The batch system determines the number
// of running jobs, so the controller determines the phases: ramp while more and more jobs begin,
// measurement while as many run as the system allows, graceful stop while they end. If the first
// jobs end before the last jobs begin, the measurement begins then. It continues while jobs that
// end make room for jobs that begin, and for at least a fifth of the jobs' time, so that every step
// has a measurement.
type jobStep struct {
	scenario.Step
	called     time.Time
	begun      int
	first      time.Time // begin of the first job
	last       time.Time // begin of the last job
	ended      time.Time // first end of a job after that
	steadyFrom time.Time // begin of the measurement; zero: not yet
	stopFrom   time.Time // begin of the graceful stop
}

// phase returns the phase of a second that is over. A second in which the phase changes is not part
// of the measurement.
func (j *jobStep) phase(second int64) string {
	switch {
	case j.steadyFrom.IsZero() || second <= j.steadyFrom.Unix():
		return measure.Ramp
	case !j.stopFrom.IsZero() && second >= j.stopFrom.Unix():
		return measure.GracefulStop
	}
	return measure.Measured
}

// idle reports whether a job has no client any more and has reported everything.
func idle(v *measure.Interval) bool {
	return v.Clients == 0 && v.Begun+v.Done+v.Wrong+v.Moved+v.Tasks == 0 && len(v.Failed) == 0
}

// coming returns the number of jobs of the step that are still to begin.
func (k *controller) coming() int {
	j := k.jobs
	left := max(j.Clients-j.begun, 0)
	if k.options.Coming != nil {
		left = min(left, k.options.Coming())
	}
	if since := later(j.called, later(j.last, k.emptySince)); len(k.present()) == 0 && k.clock().Sub(since) > k.options.Wait {
		return 0
	}
	return left
}

func later(a, b time.Time) time.Time {
	if a.After(b) {
		return a
	}
	return b
}

// expectsReturn reports whether workers of a killed controller may still reconnect: a worker that
// holds a step decides how the run continues.
func (k *controller) expectsReturn() bool {
	for _, w := range k.present() {
		if w.absent && k.silent(w) < k.options.patience/3 {
			return true
		}
	}
	return false
}

// nextJobs replaces next if each client is a job.
func (k *controller) nextJobs(ctx context.Context) error {
	j := k.jobs
	if k.answers != nil || k.leaving || k.ended {
		return nil
	}
	if j == nil {
		if !k.clock().After(k.nextStepAt) || k.expectsReturn() {
			return nil
		}
		if err := k.reportResume(false); err != nil {
			return err
		}
		k.answers = engine.Ask(ctx, k.Steps)
		return nil
	}
	for _, w := range k.present() {
		switch {
		case w.ready && w.step == 0 && j.begun < j.Clients:
			if err := k.startJob(w); err != nil {
				return err
			}
		case w.ready:
			w.ready = false
			_ = w.say(order{End: true})
		}
	}
	there := slices.ContainsFunc(k.workers, func(w *remote) bool { return w.there && w.step == j.Number })
	if !there && k.coming() == 0 {
		return k.overJobs()
	}
	return nil
}

// updatePhase determines the phase before its seconds are written: after a time without a
// controller many reports arrive at once.
func (k *controller) updatePhase() {
	j := k.jobs
	if j == nil || j.begun == 0 || !j.stopFrom.IsZero() {
		return
	}
	now, coming := k.clock(), k.coming()
	switch {
	case !j.steadyFrom.IsZero():
	case coming == 0:
		j.steadyFrom = j.last
	case now.Sub(j.last) > k.options.patience || now.Sub(j.first) > time.Duration(j.Duration):
		j.steadyFrom = now
	}
	working := 0
	for _, w := range k.present() {
		if w.in && w.step == j.Number {
			working++
		}
	}
	if j.begun > working && coming == 0 {
		if j.ended.IsZero() {
			j.ended = now // the job was lost, or ended while there was no controller
		}
		j.stopFrom = later(j.ended, j.steadyFrom.Add(max(time.Duration(j.Duration)/5, 2*time.Second)))
	}
}

// jobEnded records that a job has reported its last second.
func (j *jobStep) jobEnded(w *remote) {
	if j != nil && (j.ended.IsZero() || w.latest.Before(j.ended)) {
		j.ended = w.latest
	}
}

// startJob gives a worker its client.
func (k *controller) startJob(w *remote) error {
	j := k.jobs
	one := j.Step
	one.Clients, one.Ramp, one.Warmup = 1, 0, 0
	one.Cooldown = 1 // it leaves at the end of its time, with or without a controller
	one.Begin = k.clock().Add(k.notice(1))
	if j.begun++; j.begun == 1 {
		j.first = one.Begin
	}
	j.last, j.ended = one.Begin, time.Time{}
	k.give(w, one)
	return k.journal.note(journalEntry{identity: identity{Session: w.session}, Step: j.Number, Numbers: k.numbers})
}

// beginJobs requests the jobs of a step.
func (k *controller) beginJobs(ctx context.Context, step scenario.Step) error {
	if k.skip { // workers have held it since before the restart
		k.skip = false
		step.Number = k.past.Broken
		k.jobs = k.before
		k.jobs.Step, k.jobs.called = step, k.clock()
		return nil
	}
	k.jobs = &jobStep{Step: step, called: k.clock()}
	k.sum.phase = k.jobs.phase
	if k.loaded.IsZero() {
		k.loaded = k.clock()
	}
	k.number = step.Number
	err := k.event(measure.Event{
		Kind: measure.EventStep, Step: step.Number, Text: fmt.Sprintf("step %d: %d clients, each a job of its own", step.Number, step.Clients),
		Clients: step.Clients, Duration: time.Duration(step.Duration).Seconds(),
	})
	if k.options.Call != nil {
		err = errors.Join(err, k.options.Call(ctx, step))
	}
	return err
}

// overJobs ends a step after all its jobs have ended.
func (k *controller) overJobs() error {
	j := k.jobs
	if j.begun == 0 {
		return errors.Join(fmt.Errorf("no job of step %d has begun in %v", j.Number, k.options.Wait), k.absent())
	}
	err := k.sum.flush()
	k.jobs, k.nextStepAt = nil, k.clock().Add(time.Duration(j.Cooldown))
	if j.begun < j.Clients {
		text := fmt.Sprintf("step %d: %d of %d jobs have begun", j.Number, j.begun, j.Clients)
		if why := k.absent(); why != nil {
			text += ": " + inLine(why)
		}
		err = errors.Join(err, k.event(measure.Event{Kind: measure.EventWarning, Text: text, Missing: j.Clients - j.begun}))
	}
	return err
}
