package coordinator

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"weir/internal/db"
	"weir/internal/pause"
)

const (
	second      = time.Second
	keepEvery   = 10 * time.Second
	probeEvery  = 30 * time.Second
	pruneEvery  = time.Hour
	workBatch   = 5000 // files that are written down in one transaction
	longestRest = 10 * time.Second
	noticed     = 2 * time.Second // by which a clock was set at least
)

// Run moves what is to be moved, until ctx ends: then it has third parties give
// up, and returns nil. What goes wrong is said to the log, and tried again. Only
// another coordinator that has taken the database meanwhile ends it with an error.
func (c *Coordinator) Run(ctx context.Context) error {
	ctx, end := context.WithCancel(ctx)
	defer end()
	var loops sync.WaitGroup
	var taken error
	loops.Go(func() {
		defer end()
		taken = c.claim.Keep(ctx)
	})
	for _, loop := range []func(context.Context){c.workAll, c.dispatchAll, c.tick, c.askAll, c.probeAll, c.sweepAll} {
		loops.Go(func() { loop(ctx) })
	}
	c.orphans()
	loops.Wait()
	c.third.Wait()
	if taken != nil {
		return fmt.Errorf("coordinator: database %s: another coordinator has it: %w", c.db, taken)
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), 5*second)
	defer cancel()
	if err := c.keepLinks(ctx); err != nil && !errors.Is(err, db.ErrBusy) {
		return err
	}
	return nil
}

// orphans are copies by third parties that a coordinator before this one had made.
func (c *Coordinator) orphans() {
	c.registry.mu.Lock()
	var list []*activeLease
	for _, l := range c.registry.leases {
		if l.mover == "" && l.stop == nil {
			list = append(list, l)
		}
	}
	c.registry.mu.Unlock()
	c.ask(list)
}

// rest waits; false if ctx ended.
func (c *Coordinator) rest(ctx context.Context, d time.Duration) bool { return pause.For(ctx, d) }

// again does something until it works or ctx ends.
func (c *Coordinator) again(ctx context.Context, what string, f func(context.Context) error) {
	for wait := 100 * time.Millisecond; ctx.Err() == nil; wait = min(2*wait, longestRest) {
		err := f(ctx)
		if ctx.Err() != nil {
			return
		}
		c.health.say(what, err)
		if err == nil || !c.rest(ctx, wait) {
			return
		}
	}
}

// workAll does what requests wait for: their files are written down, dropped, or
// tried again.
func (c *Coordinator) workAll(ctx context.Context) {
	for ctx.Err() == nil {
		next := c.work.next()
		more := false
		c.again(ctx, "database", func(ctx context.Context) (err error) {
			more, err = c.queue.Work(ctx, workBatch)
			return err
		})
		if more {
			c.wake.give()
			c.eventsChanged.give()
			continue
		}
		await(ctx, next, second)
	}
}

// dispatchAll gives out what waits, as soon as somebody can take it.
func (c *Coordinator) dispatchAll(ctx context.Context) {
	for ctx.Err() == nil {
		next := c.wake.next()
		c.again(ctx, "database", c.dispatch)
		await(ctx, next, second)
	}
}

// await waits for a channel to be closed, for at most d.
func await(ctx context.Context, next <-chan struct{}, d time.Duration) {
	late := time.NewTimer(d)
	defer late.Stop()
	select {
	case <-next:
	case <-late.C:
	case <-ctx.Done():
	}
}

// tick does what the clock demands, every second.
func (c *Coordinator) tick(ctx context.Context) {
	var kept, pruned time.Time
	watched := c.now()
	for ctx.Err() == nil {
		now := c.now()
		if err := c.clockSet(ctx, &watched, now); err != nil {
			c.health.say("database", err) // nothing runs out by a clock that is another one
			c.rest(ctx, second)
			continue
		}
		c.registry.mu.Lock()
		c.registry.net.Tick(now)
		c.registry.mu.Unlock()
		if err := c.renew(ctx); err != nil {
			c.health.say("database", err) // nothing expires that could not be renewed
		} else {
			c.health.say("database", c.expire(ctx))
		}
		c.health.say("database", c.watchSites(ctx))
		if now.Sub(kept) >= keepEvery {
			kept = now
			c.health.say("database", c.keepLinks(ctx))
		}
		if now.Sub(pruned) >= pruneEvery {
			pruned = now
			c.health.say("database", c.pruneSamples(ctx))
		}
		c.rest(ctx, second)
	}
}

// clockSet notices that somebody has set this machine's clock since it was looked
// at: what is in the database goes along, what is in memory is told by the
// monotonic clock.
func (c *Coordinator) clockSet(ctx context.Context, watched *time.Time, now time.Time) error {
	by := now.Round(0).Sub(watched.Round(0)) - now.Sub(*watched)
	if by.Abs() > noticed {
		if err := c.sweepSoon(ctx); err != nil { // first: it may be done again, a shift may not
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

// expire has the queue do what its clock demands.
func (c *Coordinator) expire(ctx context.Context) error {
	missing, changes, err := c.queue.Expire(ctx)
	c.registry.mu.Lock()
	for _, ch := range changes {
		c.follow(ch, nil)
	}
	c.registry.mu.Unlock()
	c.changed(changes)
	c.missing(missing)
	return err
}

// probeAll asks endpoints without agents whether they are there, every now and
// then.
func (c *Coordinator) probeAll(ctx context.Context) {
	for ctx.Err() == nil {
		c.registry.mu.Lock()
		var names []string
		for _, s := range c.registry.sites {
			if s.Kind == httpKind {
				names = append(names, s.Name)
			}
		}
		c.registry.mu.Unlock()
		for _, n := range names {
			c.probe(ctx, n)
		}
		c.rest(ctx, probeEvery)
	}
}
