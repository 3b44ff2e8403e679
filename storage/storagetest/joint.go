package storagetest

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"

	"weir/internal/content"
	"weir/storage"
)

// jointClients is how many clients share a session at least.
const jointClients = 50

// testJoint lets many clients share one session: none of them may get what is
// another's, or suffer from what another does.
func (s *suite) testJoint(t *testing.T) {
	if !s.o.Shared {
		t.Skip("declared: clients do not share sessions")
	}
	s.need(t, storage.Read)
	target := s.target
	target.Shared = true
	svc := s.service(t, target)
	n := max(s.o.Clients, jointClients)
	all := make([]reader, n)
	maker := s.client(t)
	for i := range all {
		r := reader{client: s.of(t, svc), seed: uint64(i), size: 1000 + 997*int64(i)}
		r.path = s.file(t, maker, fmt.Sprintf("f%d", i), r.seed, r.size)
		all[i] = r
	}
	one, others := all[0], all[1:]
	large := s.file(t, maker, "large", 7, s.o.Largest)
	t.Run("different files", func(t *testing.T) { s.readAll(t, all, nil) })
	t.Run("cancel of one", func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		s.readAll(t, others, func() {
			out := s.doIn(ctx, t, one.client, storage.Op{Kind: storage.Read, Path: large, Size: s.o.Largest, Chunk: 65_536}, &listener{onMoved: cancel})
			if out.err != nil && storage.Classify(out.err) != storage.Canceled {
				t.Errorf("%v, want context.Canceled", out.err)
			}
		})
		s.holds(t, one.client, one.path, one.seed, one.size)
	})
	t.Run("close of one", func(t *testing.T) {
		s.readAll(t, others, func() {
			s.holds(t, one.client, one.path, one.seed, one.size)
			if err := one.client.Close(); err != nil {
				t.Errorf("Close: %v", err)
			}
		})
		s.holds(t, one.client, one.path, one.seed, one.size) // it comes back
	})
	t.Run("close of all", func(t *testing.T) {
		for _, r := range all {
			if err := r.client.Close(); err != nil {
				t.Errorf("Close: %v", err)
			}
		}
		s.readAll(t, all, nil)
	})
}

// A reader is a client with a file of its own.
type reader struct {
	client storage.Client
	path   string
	seed   uint64
	size   int64
}

// readAll has all read their files several times at once; meanwhile, if there
// is one, runs when each has read for the first time.
func (s *suite) readAll(t *testing.T, readers []reader, meanwhile func()) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 4*s.o.Bound)
	defer cancel()
	errs := make([]error, len(readers))
	var once, all sync.WaitGroup
	once.Add(len(readers))
	for i, r := range readers {
		all.Go(func() {
			want, err := content.Sum(s.o.Sum, r.seed, 0, r.size)
			err = errors.Join(err, s.shared(ctx, r.client, r.path, r.size, want))
			once.Done()
			for range 3 {
				err = errors.Join(err, s.shared(ctx, r.client, r.path, r.size, want))
			}
			errs[i] = err
		})
	}
	if meanwhile != nil {
		once.Wait()
		meanwhile()
	}
	all.Wait()
	if err := errors.Join(errs...); err != nil {
		t.Error(err)
	}
}
