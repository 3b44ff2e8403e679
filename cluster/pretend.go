package cluster

import (
	"context"
	"errors"
	"fmt"
	"io"
	"sync"
	"time"

	"weir/internal/pause"
	"weir/measure"
	"weir/scenario"
	"weir/storage"
)

// A Pretense is many workers in one process that measure nothing but talk as
// workers do: to see how many of them a controller can follow.
type Pretense struct {
	Workers int
	// Got is told when a worker got a step. It is called by many goroutines at
	// once. nil: nobody is.
	Got func(step scenario.Step, at time.Time)
}

// Run has the workers come in with the pass p and live until the run is over.
// They tell of a hundred operations each second.
func (r Pretense) Run(ctx context.Context, p Pass) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	var all sync.WaitGroup
	for range r.Workers {
		all.Go(func() {
			if err := r.one(ctx, p); err != nil && !errors.Is(err, errOver) {
				cancel(err)
			}
		})
	}
	all.Wait()
	return context.Cause(ctx)
}

// one is the life of one of them.
func (r Pretense) one(ctx context.Context, p Pass) error {
	m := newMember(p, JoinOptions{patience: patience, limit: longestAlone})
	defer m.close()
	if err := m.comeIn(ctx); err != nil {
		return err
	}
	w := newWorker(m.send)
	m.worker = w
	return m.live(ctx, func(ctx context.Context) error {
		for {
			step, err := w.Next(ctx)
			if errors.Is(err, io.EOF) {
				return nil
			}
			if err != nil {
				return err
			}
			if r.Got != nil {
				r.Got(step, m.clock.now())
			}
			if err := r.hold(ctx, m, step); err != nil {
				return err
			}
		}
	})
}

// hold tells of a step, second by second.
func (r Pretense) hold(ctx context.Context, m *member, step scenario.Step) error {
	end := step.Begin.Add(time.Duration(step.Ramp + step.Settle + step.Hold))
	for from := step.Begin; from.Before(end); {
		to := from.Truncate(time.Second).Add(time.Second)
		if to.After(end) {
			to = end
		}
		if !pause.For(ctx, to.Sub(m.clock.now())) {
			return fmt.Errorf("pretense: %w", context.Cause(ctx))
		}
		v := &measure.Interval{
			Start: from, Seconds: to.Sub(from).Seconds(), Step: step.Number, Phase: measure.Hold,
			Clients: float64(step.Clients), Kind: storage.Read, Moved: 100 << 20, Begun: 100, Done: 100, Tasks: 100,
		}
		for i := range 100 {
			v.Latency.Record(time.Duration(50+i) * time.Millisecond)
			v.FirstByte.Record(time.Duration(5+i/10) * time.Millisecond)
			v.Late.Record(time.Duration(i) * time.Microsecond)
		}
		if err := m.worker.Interval(v); err != nil {
			return err
		}
		from = to
	}
	return nil
}
