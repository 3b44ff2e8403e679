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

// A controller drives a run with workers. Only its goroutine, steer, reads and changes its state; others
// send it workerInput.
type controller struct {
	engine.Config
	options    WorkerOptions
	clock      func() time.Time
	began      time.Time // of clock
	workers    []*remote // all that ever connected
	sum        *sum
	stop       *engine.Stopper
	inbox      chan workerInput
	numbers    int                  // how many clients' numbers have been given
	number     int                  // of the step
	loaded     time.Time            // when the first one began
	kept       *scenario.Step       // that the step source has named, and that no worker holds
	failed     int                  // workers that ended with an error of their own
	answers    <-chan engine.Answer // of the step source; nil unless it is being asked
	cool       bool                 // the step that ended last stands apart from the next
	leaving    bool
	ended      bool      // no more steps
	emptySince time.Time // since when no worker is there
	lastError  string    // by a worker that was lost last
	ending     measure.Ending
	lastTick   time.Time
	jobs       *jobStep  // where clients are jobs: the step that is held; nil: none
	nextStepAt time.Time // from when on there may be another one
	here       machine
	full       map[string]bool        // disks that were warned of
	device     atomic.Pointer[string] // of this machine, that copies of workers' files lie on; nil: none yet
	journal    *journal               // nil: not needed

	past    *ResumeState
	before  *jobStep             // of the step that was broken off, where clients are jobs
	events  map[eventKey]bool    // that were written before
	warned  map[string]int       // one more than the number of the step in which workers gave a warning last
	others  map[string]bool      // other versions of workers that were reported
	watched map[string]time.Time // up to when, by host, before
	resumed bool                 // the run's steps are known
	started bool                 // a step was begun, or goes on
	skip    bool                 // the step source's next answer is the step that workers still hold
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

// unbound is the plan of worker i: when the run is to stop is judged for all together.
func unbound(p *scenario.Plan, i int) *scenario.Plan {
	own := *p.Of(i)
	own.Stop = scenario.Stop{}
	own.First = p.First + max(i, 0) // sets the arrivals of the open model apart
	return &own
}

// finish writes what is left, and how the run ended.
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

// inLine is an error's text in one line.
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
	cancel() // the step source need not think any more
	k.broadcast(order{Leave: true})
	return nil
}

// broadcast sends an order to all connected workers.
func (k *controller) broadcast(o order) {
	for _, w := range k.present() {
		_ = w.say(o)
	}
}

// tick is called several times a second: with time alone, workers are lost and steps begin.
func (k *controller) tick(ctx context.Context, cancel func()) error {
	now := k.clock()
	gap := now.Sub(k.lastTick)
	k.lastTick = now
	for _, w := range k.present() {
		if gap > k.silenceLimit() { // this process was held up
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
		return k.next(ctx) // which phase it is will be known when the step source has said how long the step holds
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

// silenceLimit is how long a worker that holds a step, and then reports every second, may be silent before the others
// begin the next step without it.
func (k *controller) silenceLimit() time.Duration {
	return max(k.options.patience/12, 2500*time.Millisecond)
}
