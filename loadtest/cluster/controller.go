package cluster

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"weir/loadtest/engine"
	"weir/loadtest/measure"
	"weir/loadtest/scenario"
)

// A controller drives a run with workers. Only its goroutine, steer, reads and changes its state;
// other goroutines send it workerInput.
type controller struct {
	engine.Config
	options    WorkerOptions
	clock      func() time.Time
	began      time.Time // of clock
	workers    []*remote // all workers that ever connected
	sum        *sum
	stop       *engine.Stopper
	inbox      chan workerInput
	numbers    int                  // number of clients' numbers that are in use
	number     int                  // number of the step
	loaded     time.Time            // begin of the first step
	kept       *scenario.Step       // the step source's next step, which no worker holds yet
	failed     int                  // workers that ended with an error of their own
	answers    <-chan engine.Answer // response of the step source; nil unless it is awaited
	cool       bool                 // clients rest between the last step and the next
	leaving    bool
	ended      bool      // no more steps
	emptySince time.Time // time since which no worker is connected
	lastError  string    // of the worker that was lost last
	ending     measure.Ending
	lastTick   time.Time
	jobs       *jobStep  // with one job per client: the step that is held, or nil
	nextStepAt time.Time // earliest begin of the next step
	here       machine
	full       map[string]bool        // disks that a warning was given for
	device     atomic.Pointer[string] // this machine's device with workers' copies; nil: unknown
	journal    *journal               // nil: not needed

	past    *ResumeState
	before  *jobStep             // with one job per client: the step that was broken off
	events  map[eventKey]bool    // events that were written before the restart
	warned  map[string]int       // one more than the number of the last step with this warning
	others  map[string]bool      // other versions of workers that were reported
	watched map[string]time.Time // by host: time of the last sample before the restart
	resumed bool                 // the run's steps are known
	started bool                 // a step was begun, or continues
	skip    bool                 // the source's next response is the step that workers still hold
}

func newController(c engine.Config, o WorkerOptions, clock func() time.Time) *controller {
	if c.Steps == nil {
		c.Steps = engine.FixedSteps(c.Plan)
	}
	now, here := clock(), thisMachine()
	if o.away {
		here.boot = ""
	}
	return &controller{
		Config: c, options: o.complete(), clock: clock, began: now, emptySince: now, lastTick: now,
		sum: newSum(c.Sink), stop: engine.NewStopper(c.Plan.Stop), inbox: make(chan workerInput), here: here, warned: map[string]int{},
	}
}

// unbound returns the plan of worker i without stop rules, which apply to all workers together.
func unbound(p *scenario.Plan, i int) *scenario.Plan {
	own := *p.Of(i)
	own.Stop = scenario.Stop{}
	own.First = p.First + max(i, 0) // separates the arrivals of the open model
	return &own
}

// finish writes the remaining results and the ending of the run.
func (k *controller) finish(ctx context.Context, err error) error {
	if err != nil {
		k.ending = k.Ended(ctx, err)
	} else if k.ending.Outcome == "" {
		k.ending = measure.Completed()
	}
	return errors.Join(err, k.sum.flush(), k.Sink.Event(k.ending.Event(k.clock(), 0)))
}

func (k *controller) steer(ctx context.Context) error {
	finish := k.Finish
	tick := time.NewTicker(k.options.patience / 120)
	defer tick.Stop()
	asking, cancel := context.WithCancel(ctx)
	reaching, stop := context.WithCancel(ctx)
	var reached sync.WaitGroup
	defer func() {
		stop()
		reached.Wait()
		cancel()
		if k.answers != nil {
			<-k.answers
		}
	}()
	for {
		if over, err := k.over(); over {
			return err
		}
		var err error
		select {
		case h := <-k.inbox:
			k.reach(reaching, &reached, h)
			err = k.handle(asking, h)
			if h.done != nil {
				h.done <- struct{}{}
			}
		case a := <-k.answers:
			k.answers = nil
			err = k.begin(asking, a)
		case <-finish:
			finish = nil
			err = k.leave(k.Finished(), cancel)
		case <-tick.C:
			err = k.tick(asking, cancel)
		case <-ctx.Done():
			return context.Cause(ctx)
		}
		if err != nil {
			return err
		}
	}
}

// over reports whether the run is over: no worker is connected or expected.
func (k *controller) over() (bool, error) {
	if len(k.present()) > 0 {
		return false, nil
	}
	switch waited := k.clock().Sub(k.emptySince); {
	case k.ended || k.leaving:
		return true, nil
	case k.jobs != nil:
		return false, nil // it ends by itself
	case k.options.closed, k.number > 0 && waited > k.options.Wait, k.number == 0 && k.failed >= k.options.Want, k.number > 0 &&
		k.noneExpected():
		return true, errors.Join(errors.New("all workers were lost"), k.absent())
	case waited > k.options.Wait:
		return true, errors.Join(fmt.Errorf("no worker connected within %v", k.options.Wait), k.absent())
	case k.noneExpected():
		return true, errors.Join(errors.New("no worker connected, and no more are expected"), k.absent())
	}
	return false, nil
}

// noneExpected reports whether the batch system has no more jobs of workers.
func (k *controller) noneExpected() bool {
	return k.options.Left != nil && !k.options.JobPerClient && k.options.Left() == 0
}

// absent returns the known reasons why workers are missing.
func (k *controller) absent() error {
	var all []error
	if k.lastError != "" {
		all = append(all, errors.New(k.lastError))
	}
	if k.options.Absent != nil {
		for i, s := range k.options.Absent() {
			if i == mostAbsent {
				all = append(all, errors.New("and others"))
				break
			}
			all = append(all, errors.New(s))
		}
	}
	return errors.Join(all...)
}

// inLine returns an error's text in one line.
func inLine(err error) string { return strings.ReplaceAll(err.Error(), "\n", "; ") }

// mostAbsent is the number of absent workers whose reason is reported.
const mostAbsent = 5

// present returns the connected workers.
func (k *controller) present() []*remote {
	var there []*remote
	for _, w := range k.workers {
		if w.there {
			there = append(there, w)
		}
	}
	return there
}

// leave stops all clients before the steps are done.
func (k *controller) leave(why measure.Ending, cancel func()) error {
	if k.leaving {
		return nil
	}
	k.leaving = true
	k.ending = why
	cancel() // the step source's response is not needed any more
	k.broadcast(order{Leave: true})
	return nil
}

// broadcast sends an order to all connected workers.
func (k *controller) broadcast(o order) {
	for _, w := range k.present() {
		_ = w.say(o)
	}
}

// tick is called several times a second: it gives up silent workers, and begins steps that are due.
func (k *controller) tick(ctx context.Context, cancel func()) error {
	now := k.clock()
	gap := now.Sub(k.lastTick)
	k.lastTick = now
	for _, w := range k.present() {
		if gap > k.silenceLimit() { // this process was suspended
			w.lastHeard.Add(int64(gap))
		}
		if k.silent(w) > k.options.patience && (!k.options.closed || w.in) {
			if err := k.dropWorker(w, fmt.Errorf("%w for %v", errSilent, k.options.patience)); err != nil {
				return err
			}
		}
	}
	if why, due := k.stop.Due(now.Sub(k.loaded)); due && !k.loaded.IsZero() {
		return k.leave(why, cancel)
	}
	return k.proceed(ctx)
}

// proceed writes the seconds that all workers have reported, and advances the run when due.
func (k *controller) proceed(ctx context.Context) error {
	if k.options.JobPerClient && k.skip {
		return k.next(ctx) // the phase depends on the step's duration, which is not known yet
	}
	k.updatePhase()
	return errors.Join(k.sum.before(k.reportedUntil()), k.next(ctx))
}

// silent returns how long ago a worker was last heard from.
func (k *controller) silent(w *remote) time.Duration {
	return k.clock().Sub(k.began) - time.Duration(w.lastHeard.Load())
}

// heard records that a worker was heard from now.
func (k *controller) heard(w *remote) { w.lastHeard.Store(int64(k.clock().Sub(k.began))) }

// silenceLimit is the time that a worker that holds a step, and then reports every second, may be
// silent before the others begin the next step without it.
func (k *controller) silenceLimit() time.Duration {
	return max(k.options.patience/12, 2500*time.Millisecond)
}
