package engine

import (
	"context"
	"fmt"
	"time"

	"weir/loadtest/measure"
	"weir/loadtest/scenario"
)

// An Answer is the result of a call of StepSource.Next.
type Answer struct {
	Step scenario.Step
	Err  error
}

// Ask calls p.Next in a goroutine of its own, so that it does not delay the intervals. The caller
// must receive from the returned channel.
func Ask(ctx context.Context, p StepSource) <-chan Answer {
	c := make(chan Answer, 1)
	go func() {
		step, err := p.Next(ctx)
		c <- Answer{step, err}
	}()
	return c
}

// next returns the step after the current step. If a cool-down separates the two, it comes first;
// otherwise the clients continue until the StepSource has returned a step, with several engines for
// longestSilence at most.
func (r *run) next(ctx context.Context) (scenario.Step, error) {
	apart := r.step.Cooldown > 0 || r.step.Jobs > 0
	if _, several := r.Steps.(StepBarrier); !apart && !several {
		return r.Steps.Next(ctx)
	}
	return r.rest(ctx, apart)
}

// longestSilence is the time that clients continue after a step while the next step is not known.
const longestSilence = 5 * time.Second

// rest is the time between two steps that are apart: all clients leave, their last operations end
// within the graceful stop or are cancelled, the service rests for the cool-down, and then the
// StepSource is called. All these seconds belong to phase drain. Intervals are cut only at whole
// seconds and at the end, so that the intervals of several processes add up.
//
// If the steps are not apart, the StepSource is called at once, and the clients leave only if it
// takes long.
func (r *run) rest(ctx context.Context, apart bool) (scenario.Step, error) {
	asking, cancel := context.WithCancel(ctx)
	var answers <-chan Answer
	defer func() {
		cancel()
		if answers != nil {
			<-answers
		}
	}()
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
			if answer.Err != nil || !apart {
				return answer.Step, answer.Err // the rest of the second belongs to the next step, or to the run's end
			}
			return answer.Step, r.cut(measure.GracefulStop)
		}
		select {
		case <-silence.C:
			apart = true
			home = r.leave()
			drain.Reset(time.Duration(r.Plan.GracefulStop))
			second.Reset(toNextSecond(r.Clock()))
		case <-home:
			home = nil
			drain.Stop()
			r.comeBack()
			if answers == nil && answer == nil {
				cool.Reset(time.Duration(r.step.Cooldown))
			}
		case <-drain.C:
			if err := r.warn(fmt.Sprintf("operations still running %v after step %d were broken off", r.Plan.GracefulStop,
				r.step.Number)); err != nil {
				return scenario.Step{}, err
			}
			r.breakOff()
		case <-cool.C:
			answers = Ask(asking, r.Steps)
		case a := <-answers:
			answer, answers = &a, nil
		case <-second.C:
			if err := r.resting(); err != nil {
				return scenario.Step{}, err
			}
			second.Reset(toNextSecond(r.Clock()))
		case <-ctx.Done():
			return scenario.Step{}, ctx.Err()
		case <-r.Finish:
			return scenario.Step{}, r.early(measure.GracefulStop, r.Finished())
		}
	}
}

// stopped returns a timer that does not run.
func stopped() *time.Timer {
	t := time.NewTimer(time.Hour)
	t.Stop()
	return t
}

// resting writes a second of rest and checks the stop rules.
func (r *run) resting() error {
	if err := r.cut(measure.GracefulStop); err != nil {
		return err
	}
	if why, now := r.stop.Due(r.rec.Now() - r.loaded); now {
		r.ending = why
		return errFinished
	}
	return nil
}

// leave ends all clients and returns a channel that is closed when they have left.
func (r *run) leave() <-chan struct{} {
	if r.arrivals != nil {
		r.arrivals.close()
	}
	r.pool.resize(0)
	home := make(chan struct{})
	go func() { r.pool.wait(); close(home) }()
	return home
}

// comeBack prepares for clients after all have left: the cancellation of their last operations must
// not cancel later operations.
func (r *run) comeBack() {
	r.breakOff()
	r.soft, r.breakOff = context.WithCancel(r.hard)
	if past := r.arrivals; past != nil {
		r.arrivals = newArrivals(r.rec, r.Pacer, r.idle, 0)
		r.arrivals.rand = past.rand
		r.runner.due = r.arrivals.due
	}
}
