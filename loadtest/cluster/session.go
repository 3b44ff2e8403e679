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
	turn   sync.Mutex // held while reports are handed on: they stay in order
	pid    int        // of the worker's process on this machine; 0: not looked for, -1: there is none. The Server's mutex guards it

	mu       sync.Mutex
	orders   []numbered // not known to have arrived
	last     int64      // number of the last order
	wake     chan struct{}
	taken    int64              // number of the last report that was taken
	open     map[int64]struct{} // reports that were taken and are not written yet
	done     int64              // number of the worker's last report; 0: not yet
	polls    int                // questions for orders that are being answered
	closed   bool               // given up
	absent   bool               // it was connected before the restart, and has not registered again yet
	overSent bool               // the worker was sent that the run is over
	here     netip.Addr         // of this machine, at which the worker reached it last
	from     netip.Addr         // of the worker then
}

// met notes on which connection a request of the worker came.
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

// newSession returns a session whose orders have numbers above first. They grow from one controller to the next that
// is started in its place: a question that was meant for the one may come to the other.
func newSession(first int64) *session {
	return &session{wake: make(chan struct{}), open: map[int64]struct{}{}, last: first}
}

// reconnect records a registration of a worker whose reports up to acked are done with. It returns false if the worker
// was connected already.
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

// pending returns the orders after the one with the given number, and what is closed when there may be more.
func (s *session) pending(after int64) ([]numbered, <-chan struct{}) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.orders = slices.DeleteFunc(s.orders, func(o numbered) bool { return o.No <= after })
	return slices.Clone(s.orders), s.wake
}

// poll counts the questions for orders that are being answered.
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

// acked returns the number up to which all reports are done with.
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

// notified reports whether the worker was sent that the run is over, or cannot be.
func (s *session) notified() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.overSent || s.closed
}

// soon is how far a worker's clock may run ahead of ours while a run goes on.
const soon = time.Minute

// fresh returns those reports that were not taken before, and takes them: what comes twice is known, and what comes
// before its turn is asked for again.
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
