package coordinator

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"net/http"
	"sync"
	"time"

	"weir/internal/db"
	"weir/internal/pause"
)

const (
	second        = time.Second
	saveEvery     = 10 * time.Second // knowledge of links; files of banned storage elements are looked for
	probeEvery    = 30 * time.Second
	workBatch     = 5000 // files that are added to the queue in one transaction
	longestRetry  = 10 * time.Second
	longDispatch  = 50 * time.Millisecond
	longestRest   = 250 * time.Millisecond // after a long dispatch
	smallestShift = 2 * time.Second        // of a clock, to be taken for one that was set
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
		taken = c.claim.Keep(ctx)
	})
	for _, loop := range []func(context.Context){c.workAll, c.dispatchAll, c.everySecond, c.verifyOrphans, c.probeAll, c.sweepAll, c.notifyAll,
		c.publishAll, c.sampleHost, c.forgetAll, c.removeAllUnused, c.pruneAll, c.exchangeAll, c.tapeAll} {
		loops.Go(func() { loop(ctx) })
	}
	c.findOrphans()
	loops.Wait()
	c.third.Wait()
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

// untilDone calls f until it succeeds or ctx ends.
func (c *Coordinator) untilDone(ctx context.Context, f func(context.Context) error) {
	for wait := 100 * time.Millisecond; ctx.Err() == nil; wait = min(2*wait, longestRetry) {
		err := f(ctx)
		if ctx.Err() != nil {
			return
		}
		c.health.database(err)
		if err == nil || !pause.For(ctx, wait) {
			return
		}
	}
}

// workAll adds the files of requests to the queue, cancels them or queues them again, as users have
// decided.
func (c *Coordinator) workAll(ctx context.Context) {
	for ctx.Err() == nil {
		next, more := c.work.next(), false
		c.untilDone(ctx, func(ctx context.Context) (err error) {
			more, err = c.queue.Work(ctx, workBatch)
			return err
		})
		if more {
			c.wake.broadcast()
			c.eventsChanged.broadcast()
			continue
		}
		await(ctx, next)
	}
}

// dispatchAll dispatches waiting files when a mover may have a free slot.
func (c *Coordinator) dispatchAll(ctx context.Context) {
	for ctx.Err() == nil {
		next, began := c.wake.next(), time.Now()
		c.untilDone(ctx, c.dispatch)
		if took := time.Since(began); took > longDispatch { // files that become ready meanwhile are dispatched together
			pause.For(ctx, min(took, longestRest))
		}
		await(ctx, next)
	}
}

// await waits until a channel is closed, for at most a second.
func await(ctx context.Context, next <-chan struct{}) {
	timeout := time.NewTimer(second)
	defer timeout.Stop()
	select {
	case <-next:
	case <-timeout.C:
	case <-ctx.Done():
	}
}

// everySecond renews and expires leases and does other periodic work.
func (c *Coordinator) everySecond(ctx context.Context) {
	var saved time.Time
	for watched := c.now(); ctx.Err() == nil; pause.For(ctx, second) {
		now := c.now()
		if err := c.clockSet(ctx, &watched, now); err != nil {
			c.health.database(err) // nothing expires by a clock that was set
			continue
		}
		c.registry.mu.Lock()
		changes := c.registry.net.Tick(now)
		c.registry.mu.Unlock()
		c.addLimitChanges(changes)
		err := c.renew(ctx)
		if err == nil { // nothing expires that could not be renewed
			err = c.expire(ctx)
		}
		c.health.database(err)
		c.health.database(c.watchSites(ctx))
		c.health.database(c.expireBans(ctx))
		if now.Sub(saved) >= saveEvery {
			saved = now
			c.health.database(c.saveLinks(ctx))
			c.health.database(c.cancelBanned(ctx))
		}
	}
}

// clockSet detects that this machine's clock was set, and shifts the times in the database. Times in
// memory follow the monotonic clock.
func (c *Coordinator) clockSet(ctx context.Context, watched *time.Time, now time.Time) error {
	by := now.Round(0).Sub(watched.Round(0)) - now.Sub(*watched)
	if by.Abs() > smallestShift {
		if err := c.sweepSoon(ctx); err != nil { // first: it may be repeated, a shift may not
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

// expire has the queue expire leases, requests and pauses.
func (c *Coordinator) expire(ctx context.Context) error {
	missing, changes, err := c.queue.Expire(ctx)
	c.applyChanges("", changes, nil)
	c.addMissing(missing)
	return err
}

// A signal wakes all goroutines that wait for it.
type signal struct {
	mu sync.Mutex
	c  chan struct{}
}

// next returns a channel that the next broadcast closes. Callers take it before they look at what
// the signal announces.
func (s *signal) next() <-chan struct{} {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.c == nil {
		s.c = make(chan struct{})
	}
	return s.c
}

func (s *signal) broadcast() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.c != nil {
		close(s.c)
		s.c = nil
	}
}

// health records which parts do not work. It logs the beginning and the end of each failure.
type health struct {
	log   *slog.Logger
	mu    sync.Mutex
	wrong map[string]string
}

// set records the state of a part; err is nil if it works.
func (h *health) set(part string, err error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	old, was := h.wrong[part]
	switch {
	case err == nil && was:
		delete(h.wrong, part)
		h.log.Info("works again", "what", part)
	case err != nil && (!was || old != err.Error()):
		if h.wrong == nil {
			h.wrong = map[string]string{}
		}
		h.wrong[part] = err.Error()
		h.log.Warn("does not work now", "what", part, "error", err)
	}
}

func (h *health) database(err error) { h.set("database", err) }

// list returns the errors of the parts that do not work.
func (h *health) list() map[string]string {
	h.mu.Lock()
	defer h.mu.Unlock()
	return maps.Clone(h.wrong)
}

// A liveness checks a service at most once a second and with one question at a time, for any number
// of callers. Callers cannot interrupt the question.
type liveness struct {
	ask  func(context.Context) error
	turn chan struct{} // holds one token, whose owner may ask
	at   time.Time     // of the last answer
	said error
}

const (
	livenessEach = time.Second
	livenessTime = 5 * time.Second
)

func newLiveness(ask func(context.Context) error) *liveness {
	p := &liveness{ask: ask, turn: make(chan struct{}, 1)}
	p.turn <- struct{}{}
	return p
}

// answer returns the result of the last question, or the error of ctx.
func (p *liveness) answer(ctx context.Context) error {
	select {
	case <-p.turn:
	case <-ctx.Done():
		return ctx.Err()
	}
	defer func() { p.turn <- struct{}{} }()
	if time.Since(p.at) >= livenessEach {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), livenessTime)
		defer cancel()
		p.said = p.ask(ctx)
		p.at = time.Now()
	}
	return p.said
}

// healthy answers GET /healthz.
func (c *Coordinator) healthy(w http.ResponseWriter, r *http.Request) {
	if err := c.alive.answer(r.Context()); err != nil {
		w.Header().Set("Retry-After", "2")
		http.Error(w, "the database is unavailable", http.StatusServiceUnavailable)
		return
	}
	_, _ = w.Write([]byte("ok\n")) // a client that has disconnected does not need it
}
