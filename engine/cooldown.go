package engine

import (
	"context"
	"fmt"
	"time"

	"weir/measure"
	"weir/scenario"
)

// An Answer is what a pilot said.
type Answer struct {
	Step scenario.Step
	Err  error
}

// Ask lets p think in a goroutine of its own, without holding up the seconds
// that are written. The caller takes the one answer that comes, however it ends.
func Ask(ctx context.Context, p StepSource) <-chan Answer {
	c := make(chan Answer, 1)
	go func() {
		step, err := p.Next(ctx)
		c <- Answer{step, err}
	}()
	return c
}

// next asks the pilot for the step after the current one. A step that is to
// stand apart from what follows comes to its rest before; else clients go on
// until the answer is there. Where the pilot is not heard of they cannot go on
// for ever, with a load that nobody has asked for and nobody knows of.
func (r *run) next(ctx context.Context) (scenario.Step, error) {
	apart := r.step.Cool > 0 || r.step.Jobs > 0
	if _, several := r.Steps.(StepBarrier); !apart && !several {
		return r.Steps.Next(ctx)
	}
	return r.rest(ctx, apart)
}

// longestSilence is for how long clients go on after a step without a word of
// the next one.
const longestSilence = 5 * time.Second

// rest is the time between two steps that stand apart: all clients leave, their
// last operations end within the plan's drain time or are broken off, the
// service rests for the step's cool time, and then the pilot is asked, which
// may take its time. All these seconds are of phase drain. Cuts lie only at
// whole seconds and at the end, so that those of several processes add up.
//
// If they do not stand apart the pilot is asked at once, and clients leave only
// when that takes long.
func (r *run) rest(ctx context.Context, apart bool) (scenario.Step, error) {
	asking, cancel := context.WithCancel(ctx)
	defer cancel()
	var answers <-chan Answer
	leave := func() {
		cancel()
		if answers != nil {
			<-answers
		}
	}
	var home <-chan struct{} // of the clients that leave; nil: they are there, or have left
	var answer *Answer
	silence, drain, cool, second := stopped(), stopped(), stopped(), stopped()
	for _, t := range []*time.Timer{silence, drain, cool, second} {
		defer t.Stop()
	}
	silence.Reset(0)
	if !apart {
		answers = Ask(asking, r.Steps)
		silence.Reset(longestSilence)
	}
	for {
		if answer != nil && home == nil {
			return r.goOn(*answer, apart)
		}
		select {
		case <-silence.C:
			apart = true
			home = r.leave()
			drain.Reset(time.Duration(r.Plan.Drain))
			second.Reset(toNextSecond(r.Clock()))
		case <-home:
			home = nil
			drain.Stop()
			r.comeBack()
			if answers == nil && answer == nil {
				cool.Reset(time.Duration(r.step.Cool))
			}
		case <-drain.C:
			if err := r.warn(fmt.Sprintf("operations still running %v after step %d were broken off", r.Plan.Drain, r.step.Number)); err != nil {
				return scenario.Step{}, err
			}
			r.breakOff()
		case <-cool.C:
			answers = Ask(asking, r.Steps)
		case a := <-answers:
			answer, answers = &a, nil
		case <-second.C:
			if err := r.resting(); err != nil {
				leave()
				return scenario.Step{}, err
			}
			second.Reset(toNextSecond(r.Clock()))
		case <-ctx.Done():
			leave()
			return scenario.Step{}, ctx.Err()
		case <-r.Finish:
			leave()
			return scenario.Step{}, r.early(measure.Drain, r.Finished())
		}
	}
}

// stopped returns a timer that does not run.
func stopped() *time.Timer {
	t := time.NewTimer(time.Hour)
	t.Stop()
	return t
}

// goOn ends a rest with what the pilot said. If clients are still there, what
// is left of the second belongs to the next step.
func (r *run) goOn(a Answer, rested bool) (scenario.Step, error) {
	if a.Err != nil || !rested {
		return a.Step, a.Err // or to the run's end
	}
	return a.Step, r.cut(measure.Drain)
}

// resting writes a second of rest and holds the run against its stop rules.
func (r *run) resting() error {
	if err := r.cut(measure.Drain); err != nil {
		return err
	}
	if why, now := r.stop.Due(r.rec.Now()); now {
		r.ending = why
		return errFinished
	}
	return nil
}

// leave sends all clients home and returns what is closed when they are.
func (r *run) leave() <-chan struct{} {
	if r.arrivals != nil {
		r.arrivals.close()
	}
	r.pool.resize(0)
	home := make(chan struct{})
	go func() { r.pool.wait(); close(home) }()
	return home
}

// comeBack makes ready for clients after all have gone home: operations that
// were broken off then are no reason to break off later ones.
func (r *run) comeBack() {
	r.breakOff()
	r.soft, r.breakOff = context.WithCancel(r.hard)
	if past := r.arrivals; past != nil {
		r.arrivals = newArrivals(r.rec, r.Pacer, r.idle, 0)
		r.arrivals.rand = past.rand
		r.runner.due = r.arrivals.due
	}
}
