package pause

import (
	"context"
	"sync"
	"time"
)

// A Signal wakes all goroutines that wait for it.
type Signal struct {
	mu sync.Mutex
	c  chan struct{}
}

// Next returns a channel that the next broadcast closes. Callers take it before they look at
// the state that the signal announces.
func (s *Signal) Next() <-chan struct{} {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.c == nil {
		s.c = make(chan struct{})
	}
	return s.c
}

// Broadcast closes the channel that Next returned.
func (s *Signal) Broadcast() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.c != nil {
		close(s.c)
		s.c = nil
	}
}

// Await waits until a channel is closed, for at most a second.
func Await(ctx context.Context, next <-chan struct{}) {
	timeout := time.NewTimer(time.Second)
	defer timeout.Stop()
	select {
	case <-next:
	case <-timeout.C:
	case <-ctx.Done():
	}
}
