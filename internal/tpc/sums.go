package tpc

import (
	"context"
	"errors"
	"slices"
	"sync"
	"time"
)

// Sums limits the number of concurrent requests for checksums to a server. XRootD computes as many
// as xrootd.chksum max allows, four by default, and delays the other requests by 30 s each time,
// even if it has finished earlier; before 5.8.4 it may crash over them (its issue 2534). The limit
// begins at firstSums. It doubles while the server responds in time, and falls when the server does
// not. The zero value is ready, for many goroutines.
type Sums struct {
	mu      sync.Mutex
	servers map[string]*sums
}

const (
	firstSums = 4
	mostSums  = 256

	provenSums = 100              // responses in time, while requests wait for their turn, before the limit doubles
	heldSums   = 2                // questions held, less one for each provenSums in time, before a limit that was not raised falls
	raiseSums  = 10 * time.Minute // after a fall, before the limit rises again

	heldAfter = 3 * time.Second // and for each byte a second by slowest: no server computes longer
	slowest   = 10 << 20
)

// sums is the limit of one server.
type sums struct {
	limit, out int
	waiting    []chan struct{} // closed when their turn comes
	proven     int             // responses in time since the limit changed, while others waited
	held       float64
	raised     bool // the limit was doubled, and is on trial
	changes    int  // of the limit
	rise       time.Time
}

// errHeld is the cause of a cancelled request for a checksum.
var errHeld = errors.New("the server does not answer the question for a checksum in time")

// inTime returns the time that a server needs for a checksum if it does not delay the request.
func inTime(size int64) time.Duration {
	return heldAfter + time.Duration(max(size, 0)/slowest)*time.Second
}

// Ask waits for its turn and calls ask, which requests the checksum of a file of size bytes from
// server (HOST:PORT). If ask takes too long, its context is cancelled, and it is called again with
// twice the time: XRootD has mostly computed the checksum by then and sends it at once. Ask returns
// the result of the last call of ask, or ctx's error.
func (s *Sums) Ask(ctx context.Context, server string, size int64, ask func(context.Context) error) error {
	for wait := inTime(size); ; wait *= 2 {
		done, err := s.Turn(ctx, server, size)
		if err != nil {
			return err
		}
		one, stop := context.WithTimeoutCause(ctx, wait, errHeld)
		err = ask(one)
		late := err != nil && errors.Is(context.Cause(one), errHeld)
		stop()
		done()
		if !late || ctx.Err() != nil {
			return err
		}
	}
}

// Turn waits until the checksum of a file of size bytes may be requested from a server. The caller
// sends the request, and calls done when it has the response. The error is ctx's error.
func (s *Sums) Turn(ctx context.Context, server string, size int64) (done func(), err error) {
	k, turn := s.wait(server)
	select {
	case <-turn:
	case <-ctx.Done():
		s.leave(k, turn)
		return nil, context.Cause(ctx)
	}
	began := time.Now()
	s.mu.Lock()
	defer s.mu.Unlock()
	changes := k.changes
	return func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		now := time.Now()
		if held := now.Sub(began) >= inTime(size); !held || changes == k.changes { // one change for all that were held at once
			k.answered(held, now)
		}
		k.out--
		k.next()
	}, nil
}

// wait joins the queue for a server.
func (s *Sums) wait(server string) (*sums, chan struct{}) {
	s.mu.Lock()
	defer s.mu.Unlock()
	k := s.servers[server]
	if k == nil {
		if s.servers == nil || len(s.servers) == mostWays { // callers with a turn keep it
			s.servers = map[string]*sums{}
		}
		k = &sums{limit: firstSums}
		s.servers[server] = k
	}
	turn := make(chan struct{})
	k.waiting = append(k.waiting, turn)
	k.next()
	return k, turn
}

// leave gives up a place, or the turn that has come meanwhile.
func (s *Sums) leave(k *sums, turn chan struct{}) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if i := slices.Index(k.waiting, turn); i >= 0 {
		k.waiting = slices.Delete(k.waiting, i, i+1)
		return
	}
	k.out--
	k.next()
}

// next lets in as many as may be.
func (k *sums) next() {
	for k.out < k.limit && len(k.waiting) > 0 {
		close(k.waiting[0])
		k.waiting = k.waiting[1:]
		k.out++
	}
}

// answered adapts the limit to the time of a response.
func (k *sums) answered(held bool, now time.Time) {
	if !held {
		k.held = max(0, k.held-1./provenSums)
		if len(k.waiting) > 0 {
			k.proven++
		}
		if k.proven >= provenSums && k.limit < mostSums && now.After(k.rise) {
			k.limit, k.proven, k.raised = 2*k.limit, 0, true
			k.changes++
			k.rise = now.Add(2 * heldAfter) // questions held by then show
		}
		return
	}
	k.held++
	if (k.raised || k.held >= heldSums) && k.limit > 1 {
		k.limit, k.proven, k.held, k.raised = k.limit/2, 0, 0, false
		k.changes++
		k.rise = now.Add(raiseSums)
	}
}
