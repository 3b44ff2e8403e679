// Package tcp provides TCP connections for thousands of virtual clients: with little memory each, payload that the
// kernel discards instead of copying it, and bulk sending without allocations.
//
// A Dialer makes connections and owns their shared state: addresses of hosts, and the contexts that
// interrupt operations. A Conn belongs to one goroutine at a time. Begin starts an operation with
// its context and deadline; later calls of the operation allocate nothing.
//
// On Linux a connection is a non-blocking socket in the runtime's poller. Other systems get the same behavior from
// package net, at its cost.
package tcp

import (
	"context"
	"sync"
	"sync/atomic"
	"time"
)

// A clock turns points in time into nanoseconds since the dialer was made, which cost less to keep and to compare.
// They start at 1; 0 is never.
type clock struct{ base time.Time }

func newClock() *clock { return &clock{base: time.Now().Add(-1)} }

func (c *clock) now() int64 { return int64(time.Since(c.base)) }

func (c *clock) at(t time.Time) int64 {
	if t.IsZero() {
		return 0
	}
	return max(int64(t.Sub(c.base)), 1)
}

func (c *clock) time(at int64) time.Time {
	if at == 0 {
		return time.Time{}
	}
	return c.base.Add(time.Duration(at))
}

// A watch interrupts connections when the contexts of their operations end. Connections under the same context form
// a group with a single callback: that is one registration for a run's context, not one for each operation.
type watch struct {
	discarding atomic.Int64 // connections that discard just now
	mu         sync.Mutex
	groups     map[<-chan struct{}]*group
}

type group struct {
	ctx   context.Context
	done  <-chan struct{}
	stop  func() bool
	first *Conn
}

func newWatch() *watch { return &watch{groups: map[<-chan struct{}]*group{}} }

// joined reports whether c already belongs to ctx's group. It compares channels because contexts of any type may not
// be comparable.
func (w *watch) joined(ctx context.Context, c *Conn) bool {
	done := ctx.Done()
	if c.group == nil {
		return done == nil && !c.interrupted.Load()
	}
	return c.group.done == done
}

// join moves c from the group it is in to ctx's.
func (w *watch) join(ctx context.Context, c *Conn) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.unlink(c)
	if c.interrupted.Swap(false) {
		c.armed = 0 // overwrites the deadline that the interruption left in the poller
		c.arm(c.until)
	}
	done := ctx.Done()
	if done == nil {
		return
	}
	g := w.groups[done]
	if g == nil {
		g = &group{ctx: ctx, done: done}
		w.groups[done] = g
		g.stop = context.AfterFunc(ctx, func() { w.interrupt(g) })
	}
	c.group, c.next = g, g.first
	if g.first != nil {
		g.first.prev = c
	}
	g.first = c
	if ctx.Err() != nil { // the callback may have run before c was in the list
		c.interrupted.Store(true)
	}
}

// leave takes c out of its group: nothing reaches into c any more.
func (w *watch) leave(c *Conn) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.unlink(c)
}

func (w *watch) unlink(c *Conn) {
	g := c.group
	if g == nil {
		return
	}
	if c.prev != nil {
		c.prev.next = c.next
	} else {
		g.first = c.next
	}
	if c.next != nil {
		c.next.prev = c.prev
	}
	c.group, c.prev, c.next = nil, nil, nil
	if g.first == nil {
		g.stop()
		delete(w.groups, g.done)
	}
}

func (w *watch) interrupt(g *group) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for c := g.first; c != nil; c = c.next {
		c.interrupted.Store(true)
		c.sock.setDeadline(time.Unix(1, 0)) // long past: wakes all waiting calls
	}
}

func (w *watch) cause(c *Conn) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	if c.group == nil {
		return context.Canceled
	}
	return c.group.ctx.Err()
}
