package storagetest

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"weir/internal/content"
	"weir/internal/require"
	"weir/storage"
)

// testTogether runs many clients of one service at once; with the race detector it shows whether the service is
// safe for that.
func (s *suite) testTogether(t *testing.T) {
	s.need(t, storage.Read)
	const seed, size = 21, 70_000
	svc := s.service(t, s.target)
	p := s.file(t, s.of(t, svc), "shared", seed, size)
	want, err := content.Sum(s.o.Sum, seed, 0, size)
	require.NoError(t, err)
	errs := make([]error, s.o.Clients)
	var all sync.WaitGroup
	ctx, cancel := context.WithTimeout(t.Context(), 4*s.o.Bound)
	defer cancel()
	for i := range errs {
		own := s.path(t, fmt.Sprintf("own-%d", i))
		if s.offers(storage.Write) {
			s.removeAfter(t, own)
		}
		all.Go(func() {
			c := svc.Client()
			errs[i] = errors.Join(s.shared(ctx, c, p, size, want), s.own(ctx, c, own, uint64(i)), c.Close())
		})
	}
	all.Wait()
	if err := errors.Join(errs...); err != nil {
		t.Error(err)
	}
}

// shared reads the file that all clients read, several times.
func (s *suite) shared(ctx context.Context, c storage.Client, p string, size int64, want string) error {
	for i := range 3 {
		op := storage.Op{Kind: storage.Read, Path: p, Size: size}
		if i > 0 && !s.lacks(ReadSums) {
			op.Sum = s.o.Sum
		}
		res, heard, err := s.free(ctx, c, op)
		switch {
		case err != nil:
			return err
		case heard.moved != size:
			return fmt.Errorf("read %s: %d bytes moved, want %d", p, heard.moved, size)
		case op.Sum != "" && res.Sum != want:
			return fmt.Errorf("read %s: checksum %s, want %s", p, res.Sum, want)
		}
	}
	return nil
}

// free reads a file that has just been written: on a busy machine XRootD releases it a moment after
// its response to the close, and until then denies it as busy.
func (s *suite) free(ctx context.Context, c storage.Client, op storage.Op) (res storage.Result, heard *listener, err error) {
	for try := time.Duration(1); ; try++ {
		heard = &listener{}
		res, err = c.Do(ctx, &op, heard)
		heard.end()
		if !errors.Is(err, storage.ErrBusy) || try > 20 {
			return res, heard, err
		}
		select {
		case <-time.After(try * 10 * time.Millisecond):
		case <-ctx.Done():
			return res, heard, err
		}
	}
}

// own writes a file and reads it back.
func (s *suite) own(ctx context.Context, c storage.Client, p string, seed uint64) error {
	if !s.offers(storage.Write) {
		return nil
	}
	size := 5000 + int64(seed)
	if _, err := c.Do(ctx, &storage.Op{Kind: storage.Write, Path: p, Size: size, Seed: seed}, &listener{}); err != nil {
		return err
	}
	want, err := content.Sum(s.o.Sum, seed, 0, size)
	if err != nil {
		return err
	}
	return s.shared(ctx, c, p, size, want)
}

// testLeaks searches for leaks of operations and services: goroutines of the driver, and their
// calls of Progress. It runs last.
func (s *suite) testLeaks(t *testing.T) {
	defer func() {
		for _, heard := range s.all {
			if n := heard.late.Load(); n > 0 {
				t.Errorf("%d calls of Progress after Do had returned", n)
			}
		}
	}()
	ticker := time.NewTicker(10 * time.Millisecond)
	defer ticker.Stop()
	end := time.NewTimer(5 * time.Second)
	defer end.Stop()
	for {
		left := ours()
		if len(left) == 0 {
			return
		}
		select {
		case <-ticker.C:
		case <-end.C:
			t.Fatalf("%d goroutines are left after all services were closed, the first:\n%s", len(left), left[0])
		}
	}
}

// ours returns the goroutines that run or were started in a driver.
func ours() []string {
	buf := make([]byte, 1<<20)
	for n := runtime.Stack(buf, true); n == len(buf); n = runtime.Stack(buf, true) {
		buf = make([]byte, 2*len(buf))
	}
	var left []string
	text := strings.TrimRight(string(buf), "\x00")
	for g := range strings.SplitSeq(text, "\n\n") {
		if strings.Contains(g, "weir/storage/") && !strings.Contains(g, "weir/storage/storagetest.") && !strings.Contains(g, "testing.tRunner") {
			left = append(left, g)
		}
	}
	return left
}

// jointClients is the least number of clients that share a session.
const jointClients = 50

// testJoint lets many clients share one session: a client must neither receive another client's
// data, nor suffer from its actions.
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
			out := s.doIn(ctx, t, one.client, storage.Op{Kind: storage.Read, Path: large, Size: s.o.Largest, Chunk: 65_536},
				&listener{onMoved: cancel})
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

// readAll makes all readers read their files several times at once; meanwhile, if there is one,
// runs when each has read for the first time.
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
