// Package tcp provides TCP connections for thousands of virtual clients: with
// little memory each, payload that the kernel discards instead of copying it, and
// bulk sending without allocations.
//
// A Dialer makes connections and owns what they share: addresses of hosts, and
// the contexts that interrupt operations. A Conn belongs to one goroutine at a
// time. Begin starts an operation with its context and deadline; later calls of
// the operation allocate nothing.
//
// On Linux a connection is a non-blocking socket in the runtime's poller. Other
// systems get the same behavior from package net, at its cost.
package tcp

import (
	"time"
)

// A clock turns points in time into nanoseconds since the dialer was made,
// which cost less to keep and to compare. They start at 1; 0 is never.
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
