package sites

import (
	"context"
	"errors"
	"syscall"
	"time"

	"weir/internal/pause"
	"weir/storage"
)

// mostClients is the number of clients of a site, and so of its operations at once.
const mostClients = 16

// A store is the storage of a site by one protocol. It is safe for concurrent use.
type store struct {
	service storage.Service
	server  string              // host:port
	idle    chan storage.Client // clients without an operation; nil has not been made yet
}

func newStore(service storage.Service, server string) *store {
	s := &store{service: service, server: server, idle: make(chan storage.Client, mostClients)}
	for range mostClients {
		s.idle <- nil
	}
	return s
}

// do carries out op with one of the clients.
func (s *store) do(ctx context.Context, op storage.Op) (storage.Result, error) {
	var c storage.Client
	select {
	case c = <-s.idle:
	case <-ctx.Done():
		return storage.Result{}, context.Cause(ctx)
	}
	if c == nil {
		c = s.service.Client()
	}
	defer func() { s.idle <- c }()
	return c.Do(ctx, &op, storage.NoProgress{})
}

// The pause between two attempts doubles from the first to the last length.
const (
	firstPause = 500 * time.Millisecond
	lastPause  = 15 * time.Second
)

// ask carries out op, several times if failures may pass.
func (s *store) ask(ctx context.Context, op storage.Op, attempts int) (res storage.Result, err error) {
	wait := firstPause
	for try := 1; ; try++ {
		res, err = s.do(ctx, op)
		if try == attempts || !MayPass(err) || !pause.For(ctx, max(wait, min(storage.RetryAfter(err), lastPause))) {
			return res, err
		}
		wait = min(2*wait, lastPause)
	}
}

// MayPass reports whether an operation that failed with err may succeed later.
func MayPass(err error) bool {
	switch storage.Classify(err) {
	case storage.Reset, storage.Busy, storage.Timeout, storage.Refused:
		return true
	case storage.ServerFailed:
		return !errors.Is(err, syscall.ENOSPC) && !errors.Is(err, syscall.EDQUOT)
	}
	return false
}

// close ends all clients, which have no operations, and the service.
func (s *store) close() error {
	var errs []error
	for range mostClients {
		if c := <-s.idle; c != nil {
			errs = append(errs, c.Close())
		}
	}
	return errors.Join(append(errs, s.service.Close())...)
}
