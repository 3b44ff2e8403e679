package engine

import (
	"context"
	"fmt"
	"math"
	"time"

	"weir/loadtest/measure"
)

// While clients are started or stopped the number of clients is adjusted this often.
const rampTick = 5 * time.Millisecond

// phase keeps up one phase of the current step, planned to last for span, until end, and cuts an
// interval at each whole second of the wall clock and at the phase's end. In the ramp the number of
// clients changes evenly from the current number to the step's. A phase of clients that do some
// tasks and leave ends with the last of them.
func (r *run) phase(ctx context.Context, name string, span time.Duration, end time.Time) error {
	begin := r.Clock()
	r.rec.BeginPhase()
	from, to := r.pool.size(), r.step.Clients
	ramp := name == measure.Ramp && r.arrivals == nil
	timer := time.NewTimer(0)
	defer timer.Stop()
	for now := begin; now.Before(end) && !r.deserted; {
		cut := now.Add(toNextSecond(now))
		next := earlier(cut, end)
		if ramp {
			next = earlier(next, now.Add(rampTick))
		}
		r.lookRound()
		timer.Reset(next.Sub(r.Clock()))
		select {
		case <-timer.C:
		case <-r.pool.empty:
			continue // look closer
		case <-r.others:
			r.deserted = true
		case <-ctx.Done():
			return ctx.Err()
		case <-r.Finish:
			return r.early(name, r.Finished())
		}
		now = r.Clock()
		if ramp && span > 0 {
			share := min(max(1-float64(end.Sub(now))/float64(span), 0), 1)
			r.pool.resize(int(math.Round(float64(from) + float64(to-from)*share)))
		}
		if now.Before(cut) && now.Before(end) && !r.deserted {
			continue
		}
		if err := r.cut(name); err != nil {
			return err
		}
		if why, now := r.stop.Due(r.rec.Now() - r.loaded); now {
			return r.early(name, why)
		}
	}
	if ramp {
		r.pool.resize(to)
	}
	return nil
}

// lookRound detects that the clients of a step have done their tasks and left.
func (r *run) lookRound() {
	if r.others != nil || r.step.Jobs == 0 || r.pool.there.Load() > 0 || r.pool.size() < r.step.Clients {
		return
	}
	if g, ok := r.Steps.(StepBarrier); ok {
		r.others = g.Gone(r.step.Number)
		return
	}
	alone := make(chan struct{})
	close(alone)
	r.others = alone
}

// early ends the steps before their time.
func (r *run) early(phase string, why measure.Ending) error {
	if err := r.cut(phase); err != nil {
		return err
	}
	r.ending = why
	return errFinished
}

// cut writes the intervals and events since the last cut.
func (r *run) cut(phase string) error {
	intervals, events := r.rec.Cut(r.step.Number, phase, r.idle)
	for _, v := range intervals {
		if v.Seconds <= 0 && v.Begun+v.Done+v.Wrong+v.Moved+v.Tasks+v.Events == 0 && v.Compute == 0 && len(v.Failed) == 0 {
			continue // nothing can happen in no time, except in a test's clock
		}
		r.stop.Saw(v)
		if err := r.Sink.Interval(v); err != nil {
			return err
		}
	}
	for _, e := range events {
		if err := r.Sink.Event(e); err != nil {
			return err
		}
	}
	if step := r.wall.stepped(r.Clock()); step != 0 {
		return r.warn(fmt.Sprintf("the wall clock was set by %v: from here on the hosts' samples and the clients' intervals do not tell "+
			"the same seconds", step))
	}
	return nil
}

func toNextSecond(t time.Time) time.Duration {
	return time.Second - time.Duration(t.Nanosecond())
}

func earlier(a, b time.Time) time.Time {
	if b.Before(a) {
		return b
	}
	return a
}

// The wall clock may drift this much in one look without being a step: NTP
// slews by half a millisecond a second at most.
const drift = 20 * time.Millisecond

// A wall detects whether the wall clock is set during a run. Intervals are counted on a clock that
// never jumps, but samples of other hosts are not: after a step the two clocks no longer agree on
// the second.
type wall struct {
	base time.Time // with both clocks' readings
	off  time.Duration
}

// stepped returns the time by which the wall clock was set since the last look, 0 if it was not
// set.
func (w *wall) stepped(now time.Time) time.Duration {
	return w.look(now.Round(0).Sub(w.base.Round(0)) - now.Sub(w.base))
}

// look updates the offset of the wall clock from the other clock, and returns its step.
func (w *wall) look(ahead time.Duration) time.Duration {
	step := ahead - w.off
	w.off = ahead
	if step.Abs() <= drift {
		return 0
	}
	return step
}
