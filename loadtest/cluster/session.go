package cluster

import (
	"context"
	"encoding/json"
	"net/netip"
	"slices"
	"sync"
	"time"

	"weir/internal/wire"
)

// A session is the Server's state of a worker that registered over the network.
type session struct {
	worker *remote
	turn   sync.Mutex // held while reports are passed on, to keep their order
	// pid is the worker's process id on this machine; 0: not looked up, -1: not found. The Server's
	// mutex guards it.
	pid int

	mu       sync.Mutex
	orders   []numbered // orders that may not have arrived
	last     int64      // number of the last order
	wake     chan struct{}
	taken    int64              // number of the last accepted report
	open     map[int64]struct{} // accepted reports that are not written yet
	done     int64              // number of the worker's last report; 0: not known
	polls    int                // requests for orders that await a response
	closed   bool               // given up
	absent   bool               // it was connected before the restart, and has not registered again yet
	overSent bool               // the worker was sent the notice that the run is over
	here     netip.Addr         // address of this machine at its last contact
	from     netip.Addr         // address of the worker at its last contact
}

// met records the connection of a request of the worker.
func (s *session) met(ctx context.Context) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.here, s.from = wire.Ends(ctx)
}

// ends returns the addresses of this machine and of the worker.
func (s *session) ends() (here, from netip.Addr) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.here, s.from
}

// over reports whether the worker is lost or done.
func (s *session) over() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.closed || s.done > 0
}

// newSession returns a session whose orders have numbers above first. The numbers grow from one
// controller to the next controller that replaces it: a request to the earlier controller may
// arrive at the later controller.
func newSession(first int64) *session {
	return &session{wake: make(chan struct{}), open: map[int64]struct{}{}, last: first}
}

// reconnect records a registration of a worker whose reports up to acked are finished. It returns
// false if the worker was connected already.
func (s *session) reconnect(acked int64, fresh bool) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !fresh && !s.absent {
		return false
	}
	s.absent, s.taken = false, acked
	return true
}

// isAbsent reports whether the worker has not registered again since the restart.
func (s *session) isAbsent() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.absent
}

var _ connection = (*session)(nil)

// say implements connection.
func (s *session) say(o order) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.last++
	s.orders = append(s.orders, numbered{s.last, o})
	s.ring()
	return nil
}

// ring wakes the caller that waits for orders. The caller holds the lock.
func (s *session) ring() {
	close(s.wake)
	s.wake = make(chan struct{})
}

// connected implements connection.
func (s *session) connected() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.polls > 0
}

// disconnect implements connection.
func (s *session) disconnect() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.closed = true
	s.orders, s.open = nil, nil
	s.ring()
}

// written implements connection.
func (s *session) written(no int64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.open, no)
}

// pending returns the orders after the order with the given number, and a channel that is closed
// when there may be more.
func (s *session) pending(after int64) ([]numbered, <-chan struct{}) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.orders = slices.DeleteFunc(s.orders, func(o numbered) bool { return o.No <= after })
	return slices.Clone(s.orders), s.wake
}

// poll counts the requests for orders that await a response.
func (s *session) poll(n int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.polls += n
}

// isClosed reports whether the session was given up.
func (s *session) isClosed() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.closed
}

// acked returns the number up to which all reports are finished.
func (s *session) acked() int64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	least := s.taken
	for no := range s.open {
		least = min(least, no-1)
	}
	return least
}

// runOver returns the response that the run is over.
func (s *session) runOver() *ordersResponse {
	s.mu.Lock()
	s.overSent = true
	s.mu.Unlock()
	return &ordersResponse{Over: true, Acked: s.acked()}
}

// receipt acknowledges reports. A worker whose last report is acknowledged leaves.
func (s *session) receipt() *ordersResponse {
	acked := s.acked()
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.done > 0 && acked >= s.done {
		s.overSent = true
	}
	return &ordersResponse{Acked: acked}
}

// notified reports whether the worker was sent the notice that the run is over, or cannot receive
// it.
func (s *session) notified() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.overSent || s.closed
}

// soon is the time that a worker's clock may run ahead of ours while a run continues.
const soon = time.Minute

// fresh returns the reports that were not accepted before, and accepts them. It ignores a repeated
// report. A report that arrives before an earlier report is not accepted, so the worker sends it
// again.
func (s *session) fresh(all []json.RawMessage, now time.Time) ([]report, error) {
	var out []report
	for _, text := range all {
		var r report
		if err := json.Unmarshal(text, &r); err != nil {
			return nil, wire.Refuse(400, "invalid report: %v", err)
		}
		if v := r.Interval; v != nil && v.Start.After(now.Add(soon)) {
			return nil, wire.Refuse(400, "a report of %v is in the future: the time is %v", v.Start, now)
		}
		out = append(out, r)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return nil, refuseGivenUp()
	}
	out = slices.DeleteFunc(out, func(r report) bool {
		if r.No != s.taken+1 {
			return true
		}
		s.taken++
		if r.Done {
			s.done = r.No
		}
		s.open[r.No] = struct{}{}
		return false
	})
	return out, nil
}
