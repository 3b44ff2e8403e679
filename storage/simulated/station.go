package simulated

import (
	"context"
	"sync"
	"time"
)

// A station is a number of equal servers with one queue, first come first
// served. Times are since the world's begin.
type station struct {
	mu    sync.Mutex
	fresh int             // servers that were never used
	free  []time.Duration // since when each idle server has been
	head  *waiter
	tail  *waiter
}

func newStation(servers int) *station { return &station{fresh: servers} }

// A waiter is a client's place in a queue.
type waiter struct {
	start   chan time.Duration // room for one: when its service begins; at a contended station, when it ended
	arrival time.Duration
	queued  bool
	place   int // at a contended station
	before  *waiter
	after   *waiter
}

// enter takes a server for an operation that arrived at the given time, and
// returns when its service begins or began: that may lie in the past if this
// goroutine runs late. The server is held until leave. If ctx ends first there
// is no server.
func (s *station) enter(ctx context.Context, w *waiter, arrival time.Duration) (time.Duration, error) {
	s.mu.Lock()
	if start, ok := s.idle(arrival); ok {
		s.mu.Unlock()
		return start, nil
	}
	s.push(w, arrival)
	s.mu.Unlock()
	select {
	case start := <-w.start:
		return start, nil
	case <-ctx.Done():
	}
	s.mu.Lock()
	queued := w.queued
	if queued {
		s.unlink(w)
	}
	s.mu.Unlock()
	if !queued { // its turn came at this very moment: the next one's, then
		s.leave(<-w.start)
	}
	return 0, ctx.Err()
}

// idle takes a server that has nothing to do. Nobody waits while there is one.
func (s *station) idle(arrival time.Duration) (time.Duration, bool) {
	if s.fresh > 0 {
		s.fresh--
		return arrival, true
	}
	if len(s.free) == 0 {
		return 0, false
	}
	since := s.free[len(s.free)-1]
	s.free = s.free[:len(s.free)-1]
	return max(since, arrival), true
}

// leave gives the server back that was busy until the given time, to the one
// who waits longest.
func (s *station) leave(until time.Duration) {
	s.mu.Lock()
	defer s.mu.Unlock()
	w := s.head
	if w == nil {
		s.free = append(s.free, until)
		return
	}
	s.unlink(w)
	w.start <- max(until, w.arrival)
}

func (s *station) push(w *waiter, arrival time.Duration) {
	w.arrival, w.queued, w.before, w.after = arrival, true, s.tail, nil
	if s.tail == nil {
		s.head = w
	} else {
		s.tail.after = w
	}
	s.tail = w
}

func (s *station) unlink(w *waiter) {
	if w.before == nil {
		s.head = w.after
	} else {
		w.before.after = w.after
	}
	if w.after == nil {
		s.tail = w.before
	} else {
		w.after.before = w.before
	}
	w.before, w.after, w.queued = nil, nil, false
}
