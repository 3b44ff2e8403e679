package cluster

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"sync"
	"sync/atomic"

	"weir/loadtest/engine"
	"weir/loadtest/engine/scratch"
	"weir/loadtest/measure"
	"weir/loadtest/scenario"
	"weir/storage"
)

// Manifests opens the manifest of a run directory for a worker.
type Manifests func(dir string) (engine.Manifest, io.Closer, error)

// Work runs a worker: it reads its share of a plan from in, executes it, and writes its
// measurements to out. It returns when the run has ended, or when in ends: a worker does not
// outlive its controller.
func Work(ctx context.Context, in io.Reader, out io.Writer, drivers []storage.Driver, open Manifests) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	enc := json.NewEncoder(out)
	w := newWorker(func(r report) error { return enc.Encode(r) })
	dec := json.NewDecoder(in)
	var first order
	if err := dec.Decode(&first); errors.Is(err, io.EOF) {
		return nil // the run ended before its begin
	} else if err != nil {
		return fmt.Errorf("worker: first order: %w", err)
	}
	if first.Begin == nil || first.Begin.Plan == nil {
		return errors.New("worker: the first order has no plan")
	}
	go w.listen(ctx, dec, cancel) // ends with in, which its owner closes
	err := w.drive(ctx, first.Begin, drivers, open)
	if cause := context.Cause(ctx); err != nil && cause != nil {
		err = cause
	}
	last := report{Done: true}
	if err != nil {
		last.Error = err.Error()
	}
	return errors.Join(err, w.say(last))
}

type worker struct {
	mu      sync.Mutex
	send    func(report) error // called by one goroutine at a time
	steps   chan order
	finish  chan struct{}
	leaving bool          // finish is closed
	gone    int           // number of the step that our clients have left
	over    chan struct{} // closed when the clients of all workers have left

	asks    bool   // waits for the next step
	step    int    // number of the current or last step
	clients int    // number of clients in that step
	has     []span // numbers of our clients, in the order of their assignment
	places  sync.RWMutex
	ways    map[place]*found
	own     engine.Config // fields that the worker sets: clock and manifest
	quota   scratchQuota
	stages  atomic.Pointer[scratchReport] // nil: no copies of files, or not yet
}

func newWorker(send func(report) error) *worker {
	return &worker{send: send, steps: make(chan order, 1), finish: make(chan struct{}), ways: map[place]*found{}}
}

var (
	_ engine.StepBarrier = (*worker)(nil)
	_ measure.Sink       = (*worker)(nil)
)

func (w *worker) say(r report) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.send(r)
}

// Interval implements measure.Sink.
func (w *worker) Interval(v *measure.Interval) error { return w.say(report{Interval: v}) }

// Event implements measure.Sink. Steps are announced by the controller.
func (w *worker) Event(e measure.Event) error {
	if e.Kind == measure.EventStep {
		return nil
	}
	return w.say(report{Event: &e})
}

// Next implements engine.StepSource.
func (w *worker) Next(ctx context.Context) (scenario.Step, error) {
	w.mu.Lock()
	w.asks = true
	err := w.send(report{Ready: true, After: w.step})
	w.mu.Unlock()
	if err != nil {
		return scenario.Step{}, err
	}
	select {
	case o := <-w.steps:
		if o.Step == nil {
			return scenario.Step{}, io.EOF
		}
		w.mu.Lock()
		w.has = append(w.has, o.Numbers...)
		w.asks, w.step, w.clients = false, o.Step.Number, o.Step.Clients
		w.mu.Unlock()
		return *o.Step, nil
	case <-w.finish:
		return scenario.Step{}, io.EOF
	case <-ctx.Done():
		return scenario.Step{}, ctx.Err()
	}
}

// number returns the number of our client i within the run.
func (w *worker) number(i int) int {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, s := range w.has {
		if i < s.Count {
			return s.First + i
		}
		i -= s.Count
	}
	return -1 // there is no such client
}

// Gone implements engine.StepBarrier. If no worker is left, the run is about to be aborted.
func (w *worker) Gone(step int) <-chan struct{} {
	over := make(chan struct{})
	w.mu.Lock()
	w.gone, w.over = step, over
	w.mu.Unlock()
	_ = w.say(report{Gone: step})
	return over
}

// describe fills in the state that a restarted controller needs.
func (w *worker) describe(h *registration) {
	w.mu.Lock()
	defer w.mu.Unlock()
	h.Scratch = w.stages.Load()
	h.Step, h.Ready, h.Gone, h.Clients, h.Has = w.step, w.asks, w.over != nil, w.clients, slices.Clone(w.has)
}

// left records that all clients of all workers have left a step.
func (w *worker) left(step int) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.over != nil && w.gone == step {
		close(w.over)
		w.over = nil
	}
}

func (w *worker) listen(ctx context.Context, dec *json.Decoder, cancel context.CancelCauseFunc) {
	for ctx.Err() == nil {
		var o order
		if err := dec.Decode(&o); err != nil {
			cancel(fmt.Errorf("worker: the controller is gone: %w", err))
			return
		}
		w.execute(ctx, o)
	}
}

// execute executes an order. It is called by one goroutine.
func (w *worker) execute(ctx context.Context, o order) {
	switch {
	case o.Over > 0:
		w.left(o.Over)
	case o.Leave:
		if !w.leaving {
			close(w.finish)
		}
		w.leaving = true
	case o.Way != nil:
		w.learn(o.Way)
	case o.Quota > 0:
		w.quota.set(o.Quota)
	default:
		select {
		case w.steps <- o:
		case <-ctx.Done():
		}
	}
}

func (w *worker) drive(ctx context.Context, b *begin, drivers []storage.Driver, open Manifests) (err error) {
	var reach storage.Reach
	if b.Ask {
		reach = w.reach
	}
	service, err := OpenService(ctx, b.Plan, drivers, reach)
	if err != nil {
		return err
	}
	defer func() { _ = service.Close() }() // no client is left that could lose data
	c := engine.Config{
		Clock: w.own.Clock, Manifest: w.own.Manifest, Plan: b.Plan, Service: service, Files: b.Files, Folder: b.Folder, Scratch: b.Scratch,
		Room: scratch.NewRoom(b.Quota), Steps: w, Sink: w, Finish: w.finish, Number: w.number, Homes: b.Homes,
	}
	if b.Scratch == "" {
		place, err := w.openScratch(b)
		if err != nil {
			return err
		}
		defer func() { err = errors.Join(err, place.Close()) }()
		c.Scratch, c.Room = place.Path(), w.quota.room
	}
	if b.Manifest != "" {
		m, closer, err := open(b.Manifest)
		if err != nil {
			return err
		}
		defer func() { _ = closer.Close() }() // each entry was written when it was made
		c.Manifest = m
	}
	return engine.Run(ctx, c)
}
