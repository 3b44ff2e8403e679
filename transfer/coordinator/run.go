package coordinator

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"sync"
	"time"

	"weir/internal/db"
	"weir/internal/pause"
)

const (
	second        = time.Second
	saveEvery     = 10 * time.Second // interval for saving links and for ending files of banned storage elements
	probeEvery    = 30 * time.Second
	workBatch     = 5000 // files that are added to the queue in one transaction
	longDispatch  = 50 * time.Millisecond
	longestRest   = 250 * time.Millisecond // after a long dispatch
	smallestShift = 2 * time.Second        // the smallest deviation of a clock that counts as a change of the time
)

// Run dispatches files until ctx ends. Then it aborts third-party copies and returns nil. Failures
// are logged and retried; only the loss of the database to another coordinator is an error.
func (c *Coordinator) Run(ctx context.Context) error {
	ctx, end := context.WithCancel(ctx)
	defer end()
	var loops sync.WaitGroup
	var taken error
	loops.Go(func() {
		defer end()
		taken = c.state.Claim.Keep(ctx)
	})
	notify := func(ctx context.Context) { c.notifications.Run(ctx, c.url) }
	for _, loop := range []func(context.Context){c.workAll, c.dispatchAll, c.everySecond, c.copier.VerifyOrphans, c.registry.ProbeAll,
		c.copier.SweepAll, notify, c.publishAll, c.samples.SampleHost, c.forgetAll, c.registry.RemoveAllUnused, c.pruneAll, c.access.ExchangeAll,
		c.copier.TapeAll} {
		loops.Go(func() { loop(ctx) })
	}
	c.copier.FindOrphans()
	loops.Wait()
	c.copier.Wait()
	if taken != nil {
		return fmt.Errorf("coordinator: database %s: another coordinator has it: %w", c.db, taken)
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), 5*second)
	defer cancel()
	if err := c.saveLinks(ctx); err != nil && !errors.Is(err, db.ErrBusy) {
		return err
	}
	return nil
}

// workAll adds the files of requests to the queue, cancels them or queues them again, according to
// the decisions of users.
func (c *Coordinator) workAll(ctx context.Context) {
	for ctx.Err() == nil {
		next, more := c.work.Next(), false
		c.health.UntilDone(ctx, func(ctx context.Context) (err error) {
			more, err = c.queue.Work(ctx, workBatch)
			return err
		})
		if more {
			c.wake.Broadcast()
			c.eventsChanged.Broadcast()
			continue
		}
		pause.Await(ctx, next)
	}
}

// dispatchAll dispatches waiting files when a mover may have a free slot.
func (c *Coordinator) dispatchAll(ctx context.Context) {
	for ctx.Err() == nil {
		next, began := c.wake.Next(), time.Now()
		c.health.UntilDone(ctx, c.dispatch)
		if took := time.Since(began); took > longDispatch { // files that become ready meanwhile are dispatched together
			pause.For(ctx, min(took, longestRest))
		}
		pause.Await(ctx, next)
	}
}

// everySecond renews and expires leases and does other periodic work.
func (c *Coordinator) everySecond(ctx context.Context) {
	var saved time.Time
	for watched := c.now(); ctx.Err() == nil; pause.For(ctx, second) {
		now := c.now()
		if err := c.clockSet(ctx, &watched, now); err != nil {
			c.health.Database(err) // leases do not expire by a clock that was set
			continue
		}
		for _, one := range c.changes.Add(c.leases.Tick(now)) {
			c.counters.Changed(one)
		}
		err := c.renew(ctx)
		if err == nil { // leases that could not be renewed do not expire
			err = c.expire(ctx)
		}
		c.health.Database(err)
		c.health.Database(c.registry.Watch(ctx))
		c.health.Database(c.configuration.ExpireBans(ctx))
		if now.Sub(saved) >= saveEvery {
			saved = now
			c.health.Database(c.saveLinks(ctx))
			c.health.Database(c.configuration.CancelBanned(ctx))
		}
	}
}

// clockSet detects that this machine's clock was set, and shifts the times in the database. Times in
// memory follow the monotonic clock.
func (c *Coordinator) clockSet(ctx context.Context, watched *time.Time, now time.Time) error {
	by := now.Round(0).Sub(watched.Round(0)) - now.Sub(*watched)
	if by.Abs() > smallestShift {
		if err := c.copier.SweepSoon(ctx); err != nil { // first, because it may be repeated and a shift may not
			return err
		}
		if err := c.queue.Shift(ctx, by); err != nil {
			return err
		}
		c.log.Warn("the clock of this machine was set", "seconds", by.Seconds())
	}
	*watched = now
	return nil
}

// expire expires leases, requests and pauses in the queue.
func (c *Coordinator) expire(ctx context.Context) error {
	missing, changes, err := c.queue.Expire(ctx)
	c.applyChanges("", changes, nil)
	c.copier.AddMissing(missing)
	return err
}

// healthy serves GET /healthz.
func (c *Coordinator) healthy(w http.ResponseWriter, r *http.Request) {
	if err := c.alive.Answer(r.Context()); err != nil {
		w.Header().Set("Retry-After", "2")
		http.Error(w, "the database is unavailable", http.StatusServiceUnavailable)
		return
	}
	_, _ = w.Write([]byte("ok\n")) // a client that has disconnected does not need it
}
