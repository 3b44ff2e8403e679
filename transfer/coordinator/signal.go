package coordinator

import "sync"

// A signal wakes all who wait for the next time that something happens.
type signal struct {
	mu *sync.Mutex
	c  *chan struct{}
}

func newSignal() signal {
	c := make(chan struct{})
	return signal{&sync.Mutex{}, &c}
}

// next returns a channel that is closed when it is given the next time. Who is to
// miss nothing takes it before looking.
func (s signal) next() <-chan struct{} {
	s.mu.Lock()
	defer s.mu.Unlock()
	return *s.c
}

// give wakes all.
func (s signal) give() {
	s.mu.Lock()
	defer s.mu.Unlock()
	close(*s.c)
	*s.c = make(chan struct{})
}
