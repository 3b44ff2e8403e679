// Package engine steps virtual clients up and down and keeps them busy with tasks of a workload,
// while meters count.
//
// It runs alone or as one of many engines: a StepSource provides the steps, and a measure.Sink
// receives the measurements. These two may be remote.
package engine

import (
	"context"
	"errors"
	"fmt"
	"io"
	"runtime"
	"runtime/debug"
	"sync"
	"sync/atomic"
	"time"

	"weir/internal/say"
	"weir/loadtest/engine/scratch"
	"weir/loadtest/measure"
	"weir/loadtest/scenario"
	"weir/loadtest/workload"
	"weir/storage"
)

// A StepSource provides the steps. Next waits until the next step shall begin; it returns io.EOF
// after the last step. After a step with a cool-down it is called in another goroutine than Run's,
// and its ctx ends with Config.Finish.
type StepSource interface {
	Next(ctx context.Context) (scenario.Step, error)
}

// A StepBarrier is a StepSource of several engines, whose steps end together.
type StepBarrier interface {
	StepSource
	// Gone reports that all clients of a step have done their tasks and left. It returns at once;
	// the returned channel is closed when the other engines have arrived.
	Gone(step int) <-chan struct{}
}

// A Manifest records the files and folders that a run creates on its target, before they are
// created. It is used by many goroutines at once.
type Manifest interface {
	Created(path string, size int64, seed uint64) error
	Removed(path string) error
}

// Config is the configuration of a run besides its plan.
type Config struct {
	Plan     *scenario.Plan
	Service  storage.Service
	Files    []workload.File // of the file set, from Prepare
	Folder   string          // below the target, for files that clients write
	Manifest Manifest        // nil if the workload writes nothing
	Scratch  string          // folder of this machine for the copies of staged jobs, as package scratch makes it
	Room     *scratch.Room   // that the copies may take; nil: no bound
	Steps    StepSource      // nil: the plan's steps, one after the other
	Sink     measure.Sink
	Pacer    Pacer            // nil: the most exact pacer of this system
	Clock    func() time.Time // the run's: its whole seconds end intervals, and steps begin by it; nil: this machine's
	Number   func(i int) int  // number of client i of this engine (0 and up) within the run; nil: Plan.First and up
	// Clients from this number on each make their own folder; the others have theirs (0: all have).
	Homes  int
	Finish <-chan struct{}       // closed: no new operation begins, others end (nil: never)
	Why    func() measure.Ending // the reason for which Finish was closed; nil: an interrupt
	// Waiting is called in Prepare, at most once, if the target has not responded for two seconds;
	// its argument describes the wait. nil: no call.
	Waiting func(what string)
}

// Finished returns the ending of a run whose Finish was closed.
func (c *Config) Finished() measure.Ending {
	if c.Why == nil {
		return measure.InterruptedBy("")
	}
	return c.Why()
}

// Ended returns the ending of a run with err: interrupted if Finish was closed by an interrupt
// before ctx ended.
func (c *Config) Ended(ctx context.Context, err error) measure.Ending {
	end := measure.Broken(err)
	if c.finishing() && ctx.Err() != nil {
		if why := c.Finished(); why.Outcome == measure.Interrupted {
			end.Outcome, end.Reason = why.Outcome, why.Reason
		}
	}
	return end
}

// Run drives the plan's load to its end. It returns early, without an error, when Finish is closed
// or one of the plan's stop rules holds; with ctx's error when ctx ends, which also cancels
// operations. The sink has all measurements in each case. All goroutines have ended when Run
// returns; the service stays open.
func Run(ctx context.Context, c Config) error {
	if c.Steps == nil {
		c.Steps = FixedSteps(c.Plan)
	}
	if c.Pacer == nil {
		p, err := NewPacer()
		if err != nil {
			return err
		}
		defer func() { _ = p.Close() }() // all sleepers are awake
		c.Pacer = p
	}
	r, err := newRun(ctx, c)
	if err != nil {
		return err
	}
	if j := c.Plan.Work.Job; j != nil && j.Burn {
		var back func()
		r.runner.cores, back = newCores()
		defer back()
	}
	err = r.steps(ctx)
	if err != nil {
		r.ending = c.Ended(ctx, err)
	}
	return errors.Join(err, r.finish(ctx), r.Sink.Event(r.ending.Event(r.Clock(), r.step.Number)))
}

// FixedSteps is the StepSource of an engine that works by itself: the steps of the plan, one
// after the other.
func FixedSteps(p *scenario.Plan) StepSource { return &fixedSteps{steps: p.Steps} }

type fixedSteps struct{ steps []scenario.Step }

func (a *fixedSteps) Next(ctx context.Context) (scenario.Step, error) {
	if len(a.steps) == 0 {
		return scenario.Step{}, io.EOF
	}
	s := a.steps[0]
	a.steps = a.steps[1:]
	return s, ctx.Err()
}

// run is one call of Run.
type run struct {
	Config
	rec      *measure.Recorder
	pool     *clientPool
	arrivals *arrivals // open model only
	checker  *checker
	remover  *remover // of copies; nil: clients make no copies, or the copies stay
	stop     *Stopper
	wall     wall
	step     scenario.Step
	loaded   time.Duration // when the first step began, by the clock of rec
	idle     storage.Kind  // of intervals in which nothing ever ran
	ending   measure.Ending
	hard     context.Context
	kill     context.CancelFunc
	soft     context.Context // of operations, within hard: ends when a step cancels its last
	breakOff context.CancelFunc
	runner   *clientRunner
	freeing  sync.WaitGroup // of calls of free

	over atomic.Pointer[chan struct{}] // closed when the step has ended; nil before the first

	others   <-chan struct{} // closed when the step's clients have left everywhere; nil while there are some here
	deserted bool            // it is closed
}

func newRun(ctx context.Context, c Config) (*run, error) {
	if err := workload.Check(c.Plan.Work); err != nil {
		return nil, err
	}
	if _, err := workload.New(c.Plan.Work, c.Files, c.Plan.First, c.Folder); err != nil {
		return nil, err
	}
	if err := errors.Join(workload.Enough(c.Plan.Work, c.Files), c.checkScratch()); err != nil {
		return nil, err
	}
	if c.Clock == nil {
		c.Clock = time.Now
	}
	if c.Number == nil {
		c.Number = func(i int) int { return c.Plan.First + i }
	}
	r := &run{Config: c, rec: measure.NewRecorder(c.Clock, c.Plan.Population), idle: mainKind(c.Plan.Work)}
	r.stop = NewStopper(c.Plan.Stop)
	r.wall = wall{base: c.Clock()}
	r.hard, r.kill = context.WithCancel(ctx)
	r.soft, r.breakOff = context.WithCancel(r.hard)
	if w := c.Plan.Work; w.Kind == workload.CopyWork && !w.Keep {
		r.remover = startRemover(r.hard, c)
	}
	r.checker = startChecker(r.hard, r.rec, c.Service, c.Plan.Work, r.remover)
	kind := c.Plan.Work.Kind
	runner := &clientRunner{
		run: r, seed: c.Plan.Seed, fresh: c.Plan.Work.Session == workload.FreshSession || kind == "login",
		jobs: kind == "job" || kind == "command-job",
	}
	if c.Plan.Model == scenario.OpenModel {
		r.arrivals = newArrivals(r.rec, c.Pacer, r.idle, c.Plan.Seed+uint64(c.Plan.First))
		runner.due = r.arrivals.due
	}
	r.runner = runner
	r.pool = newClientPool(&executor{run: runner.advance}, r.rec, r.arrivals == nil)
	return r, nil
}

// mainKind is the kind of operation that represents an idle second.
func mainKind(w workload.Work) storage.Kind {
	var k storage.Kind
	switch {
	case w.Kind == workload.CommandJobWork:
		return storage.Run
	case k.UnmarshalText([]byte(w.Kind)) != nil:
		return storage.Read // mix, metadata, job
	}
	return k
}

// errFinished ends the steps early without being an error of the run.
var errFinished = errors.New("finished early")

func (r *run) steps(ctx context.Context) error {
	step, err := r.Steps.Next(ctx)
	r.rec.Cut(0, measure.GracefulStop, r.idle) // the wait for the first step belongs to no step
	r.loaded = r.rec.Now()
	for ; err == nil; step, err = r.next(ctx) {
		r.step = step
		if err = r.oneStep(ctx); err != nil {
			break
		}
	}
	switch {
	case errors.Is(err, io.EOF):
		r.ending = measure.Completed()
		if r.finishing() { // a StepSource has no more steps then
			r.ending = r.Finished()
		}
		return nil
	case errors.Is(err, errFinished):
		return nil
	}
	return err
}

// finishing reports whether Finish is closed.
func (c *Config) finishing() bool {
	select {
	case <-c.Finish:
		return true
	default:
		return false
	}
}

// crowded is the number of clients from which the garbage of their start is collected before
// measurement starts.
const crowded = 1000

// free returns unused memory to the system. While clients are always runnable this takes tens of
// seconds, because each piece of the heap that is swept waits for its turn among them.
func free() {
	runtime.GC() // the second collection frees the contents of pools
	debug.FreeOSMemory()
}

func (r *run) oneStep(ctx context.Context) error {
	err := r.Sink.Event(measure.Event{
		Time: r.Clock().UTC(), Kind: measure.EventStep, Step: r.step.Number, Text: fmt.Sprintf("step %d: %s", r.step.Number, describe(r.step)),
		Clients: r.step.Clients, Rate: float64(r.step.Rate), Duration: time.Duration(r.step.Duration).Seconds(),
	})
	if err != nil {
		return err
	}
	if r.finishing() { // because of the results of the last step: this step has no clients yet
		return r.early(measure.Ramp, r.Finished())
	}
	if r.arrivals != nil {
		r.arrivals.step(r.step, r.pool)
	}
	over := make(chan struct{})
	r.over.Store(&over)
	defer close(over)
	r.pool.step(r.step.Jobs)
	r.others, r.deserted = nil, false
	end := r.step.Begin
	if end.IsZero() {
		end = r.Clock()
	}
	for _, p := range []struct {
		name string
		span time.Duration
	}{
		{measure.Ramp, time.Duration(r.step.Ramp)},
		{measure.Warmup, time.Duration(r.step.Warmup)},
		{measure.Measured, time.Duration(r.step.Duration)},
	} {
		end = end.Add(p.span)
		if p.name == measure.Warmup && p.span > 0 && r.pool.size() >= crowded {
			r.freeing.Go(free)
		}
		if p.name == measure.Measured && r.deserted {
			return r.warn(fmt.Sprintf("all jobs of step %d ended before its measurement began, so nothing of it was measured: use load.ramp: "+
				"0 and load.warmup: 0", r.step.Number))
		}
		if err := r.phase(ctx, p.name, p.span, end); err != nil {
			return err
		}
	}
	return nil
}

func describe(s scenario.Step) string {
	if s.Rate > 0 {
		return fmt.Sprintf("%v arrivals, at most %d clients", s.Rate, s.Clients)
	}
	if s.Jobs > 0 {
		return fmt.Sprintf("%s, %s each", say.Plural(s.Clients, "client"), say.Plural(s.Jobs, "job"))
	}
	return say.Plural(s.Clients, "client")
}

// warn records a warning of the step that is held.
func (r *run) warn(text string) error {
	return r.Sink.Event(measure.Event{Time: r.Clock().UTC(), Kind: measure.EventWarning, Step: r.step.Number, Text: text})
}

// Requests for checksums that wait when the last client has ended are made until the drain time is
// over, but at least for this time.
const leastPatience = 5 * time.Second

// finish ends all clients, waits for their last operations as long as the plan allows, and writes
// the rest.
func (r *run) finish(ctx context.Context) error {
	home := r.leave()
	deadline := time.Now().Add(time.Duration(r.Plan.GracefulStop))
	drain := time.NewTimer(time.Duration(r.Plan.GracefulStop))
	defer drain.Stop()
	var err error
	for waiting := true; waiting; {
		second := time.NewTimer(toNextSecond(r.Clock()))
		select {
		case <-home:
			waiting = false
		case <-drain.C:
			err = errors.Join(err, r.warn(fmt.Sprintf("operations still running %v after the last step were broken off", r.Plan.GracefulStop)))
			r.kill()
		case <-ctx.Done():
			r.kill()
			<-home
			waiting = false
		case <-second.C:
			err = errors.Join(err, r.cut(measure.GracefulStop))
		}
		second.Stop()
	}
	r.pool.exec.close()
	// A service that hangs must not delay the end with each of the requests.
	patience := time.AfterFunc(max(time.Until(deadline), leastPatience), r.kill)
	r.checker.close()
	r.remover.close()
	patience.Stop()
	r.freeing.Wait()
	err = errors.Join(err, r.cut(measure.GracefulStop))
	r.kill()
	return err
}
