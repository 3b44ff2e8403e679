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
func Ask(ctx context.Context, p Pilot) <-chan Answer {
	c := make(chan Answer, 1)
	go func() {
		step, err := p.Next(ctx)
		c <- Answer{step, err}
	}()
	return c
}

// next asks the pilot for the step after the current one; a step that is to
// stand apart from what follows comes to its rest before.
func (r *run) next(ctx context.Context) (scenario.Step, error) {
	if r.step.Cool <= 0 && r.step.Jobs == 0 {
		return r.Pilot.Next(ctx)
	}
	return r.rest(ctx)
}

// rest is the time between two steps that stand apart: all clients leave, their
// last operations end within the plan's drain time or are broken off, the
// service rests for the step's cool time, and then the pilot is asked, which
// may take its time. All these seconds are of phase drain. Cuts lie only at
// whole seconds and at the end, so that those of several processes add up.
func (r *run) rest(ctx context.Context) (scenario.Step, error) {
	asking, cancel := context.WithCancel(ctx)
	defer cancel()
	var answers <-chan Answer
	leave := func() {
		cancel()
		if answers != nil {
			<-answers
		}
	}
	home := r.leave()
	drain, cool := time.NewTimer(time.Duration(r.Plan.Drain)), time.NewTimer(time.Hour)
	defer drain.Stop()
	defer cool.Stop()
	cool.Stop()
	second := time.NewTimer(toNextSecond(time.Now()))
	defer second.Stop()
	for {
		select {
		case <-home:
			home = nil
			drain.Stop()
			r.comeBack()
			cool.Reset(time.Duration(r.step.Cool))
		case <-drain.C:
			if err := r.event("warning", fmt.Sprintf("operations still running %v after step %d were broken off", r.Plan.Drain, r.step.Number)); err != nil {
				return scenario.Step{}, err
			}
			r.breakOff()
		case <-cool.C:
			answers = Ask(asking, r.Pilot)
		case a := <-answers:
			if a.Err != nil {
				return a.Step, a.Err // what is left of the second belongs to the run's end
			}
			return a.Step, r.cut(measure.Drain)
		case <-second.C:
			if err := r.resting(); err != nil {
				leave()
				return scenario.Step{}, err
			}
			second.Reset(toNextSecond(time.Now()))
		case <-ctx.Done():
			leave()
			return scenario.Step{}, ctx.Err()
		case <-r.Finish:
			leave()
			return scenario.Step{}, r.early(measure.Drain, "finish was asked for")
		}
	}
}

// resting writes a second of rest and holds the run against its stop rules.
func (r *run) resting() error {
	if err := r.cut(measure.Drain); err != nil {
		return err
	}
	if reason := r.stop.reason(r.rec.Now()); reason != "" {
		r.outcome = "ended early: " + reason
		return errFinished
	}
	return nil
}

// leave sends all clients home and returns what is closed when they are.
func (r *run) leave() <-chan struct{} {
	if r.arrivals != nil {
		r.arrivals.close()
	}
	r.crowd.resize(0)
	home := make(chan struct{})
	go func() { r.crowd.wait(); close(home) }()
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
		r.life.due = r.arrivals.due
	}
}
