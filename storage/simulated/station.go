package simulated

import (
	"context"
	"math/rand/v2"
	"sync"
	"time"
)

// A station is a number of equal servers with one queue, first come first served. Times are since the simulation's
// begin.
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

// enter assigns a server to an operation that arrived at the given time, and returns the time at
// which its service begins or began: that may be in the past if this goroutine runs late. The
// server is held until leave. If ctx ends first, no server is assigned.
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

// idle takes an idle server. While a server is idle, no operation waits.
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

// leave passes a server that was busy until the given time to the caller that has waited longest,
// or marks it as idle.
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

// A contended station serves all present operations at once, at a rate that depends on their
// number. It has no memory: with n operations present, the time to the next end is exponential with
// mean 1/rate(n), and so it is drawn again whenever n changes, which is exact. The operation that
// ends is drawn as well: any of the front operations that have been there longest, or any of all.
//
// Times are since the simulation's begin. Ends are planned: when a timer or a client is late,
// earlier events are processed first.
type contended struct {
	rate  func(n int) float64 // per second; positive for n > 0
	front int                 // 0: any operation may be next
	now   func() time.Duration

	mu    sync.Mutex
	rand  *rand.Rand
	in    []*waiter
	past  time.Duration // all that was to happen until then has
	next  time.Duration // when the next of in is done
	timer *time.Timer
}

func newContended(c Config, now func() time.Duration, rate func(n int) float64) *contended {
	s := &contended{rate: rate, now: now, rand: rand.New(rand.NewPCG(c.Seed, 0))}
	if !c.shares() {
		s.front = c.Servers
	}
	return s
}

// pass lets an operation that arrived at the given time be served, and returns when it ended by plan. If ctx ends
// first the operation leaves at once.
func (s *contended) pass(ctx context.Context, w *waiter, arrival time.Duration) (time.Duration, error) {
	s.mu.Lock()
	s.settle(arrival)
	w.queued, w.place = true, len(s.in)
	s.in = append(s.in, w)
	s.draw()
	s.wake()
	s.mu.Unlock()
	select {
	case end := <-w.start:
		return end, nil
	case <-ctx.Done():
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.settle(s.now()); !w.queued {
		return <-w.start, nil // it was done at this very moment
	}
	s.remove(w.place)
	s.draw()
	s.wake()
	return 0, ctx.Err()
}

// settle ends the operations whose end is at most t.
func (s *contended) settle(t time.Duration) {
	for len(s.in) > 0 && s.next <= t {
		n := len(s.in)
		if s.front > 0 {
			n = min(n, s.front)
		}
		w := s.remove(s.rand.IntN(n))
		w.start <- s.next
		s.past = s.next
		s.draw()
	}
	s.past = max(s.past, t)
}

// remove removes the operation at a position. The others keep their order if it matters.
func (s *contended) remove(i int) *waiter {
	w, last := s.in[i], len(s.in)-1
	w.queued = false
	if s.front == 0 {
		s.in[i] = s.in[last]
		s.in[i].place = i
	} else {
		copy(s.in[i:], s.in[i+1:])
		for ; i < last; i++ {
			s.in[i].place = i
		}
	}
	s.in[last] = nil
	s.in = s.in[:last]
	return w
}

// longest limits the time of an operation, so that times stay in their range.
const longest = float64(100 * 365 * 24 * time.Hour)

// draw sets when the next operation is done.
func (s *contended) draw() {
	if n := len(s.in); n > 0 {
		s.next = s.past + time.Duration(min(s.rand.ExpFloat64()/s.rate(n)*float64(time.Second), longest))
	}
}

// wake sets the timer for the next end.
func (s *contended) wake() {
	if len(s.in) == 0 {
		if s.timer != nil {
			s.timer.Stop()
		}
		return
	}
	wait := max(s.next-s.now(), 0)
	if s.timer == nil {
		s.timer = time.AfterFunc(wait, s.tick)
		return
	}
	s.timer.Reset(wait)
}

// tick ends the operations that are due. A timer that was reset while it went off finds nothing to
// do.
func (s *contended) tick() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.settle(s.now())
	s.wake()
}
