package storagetest

import (
	"context"
	"errors"
	"net"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"weir/internal/require"
	"weir/storage"
)

// testDriver checks the driver's own description.
func (s *suite) testDriver(t *testing.T) {
	d := s.driver
	if d.Name == "" || d.Open == nil || len(d.Kinds) == 0 {
		t.Fatalf("driver %+v is incomplete", d)
	}
	if s.target.URL != nil && !slices.Contains(d.Schemes, s.target.URL.Scheme) && len(d.Schemes) > 0 {
		t.Errorf("scheme %q of the target is none of the driver's: %v", s.target.URL.Scheme, d.Schemes)
	}
	for i, k := range d.Kinds {
		if k >= storage.Kinds || slices.Contains(d.Kinds[:i], k) {
			t.Errorf("kind %v is odd or listed twice", k)
		}
	}
	svc := s.service(t, s.target)
	for range 3 { // never used: closing must succeed nevertheless
		if err := svc.Client().Close(); err != nil {
			t.Errorf("closing an unused client: %v", err)
		}
	}
}

// testUnsupported requests operations that the driver does not support.
func (s *suite) testUnsupported(t *testing.T) {
	c := s.client(t)
	for k := range storage.Kinds + 1 { // one too far: no such kind
		if s.offers(k) {
			continue
		}
		out := s.do(t, c, storage.Op{Kind: k, Path: s.path(t, "x"), Source: "https://localhost/x", Sum: s.o.Sum})
		if !errors.Is(out.err, errors.ErrUnsupported) {
			t.Errorf("%s is not offered and gives %v, want errors.ErrUnsupported", k, out.err)
		}
	}
}

func (s *suite) testLogin(t *testing.T) {
	s.need(t, storage.Login)
	c := s.client(t)
	for range 3 {
		out := s.must(t, c, storage.Op{Kind: storage.Login})
		if !s.lacks(KeptSessions) && s.o.Network && !out.heard.reached(storage.Connected) {
			t.Errorf("a login reached %v, but never connected", out.heard.phases)
		}
		if err := c.Close(); err != nil {
			t.Fatalf("Close: %v", err)
		}
	}
}

// testSession keeps a session, closes it, and continues.
func (s *suite) testSession(t *testing.T) {
	s.need(t, storage.Read)
	c := s.client(t)
	const seed, size = 8, 10_000
	p := s.file(t, c, "f", seed, size)
	op := storage.Op{Kind: storage.Read, Path: p, Size: size}
	s.must(t, c, op)
	if out := s.must(t, c, op); !s.lacks(KeptSessions) && out.heard.reached(storage.Connected) {
		t.Error("a second read connected again, although the session was kept")
	}
	for range 3 {
		if err := c.Close(); err != nil {
			t.Fatalf("Close: %v", err)
		}
		out := s.must(t, c, op)
		if !s.lacks(KeptSessions) && s.o.Network && !out.heard.reached(storage.Connected) {
			t.Errorf("a read after Close reached %v, but never connected", out.heard.phases)
		}
		s.holds(t, c, p, seed, size)
	}
	if err := errors.Join(c.Close(), c.Close()); err != nil {
		t.Errorf("closing twice: %v", err)
	}
}

// testCancel ends contexts before and within operations. The session must be good afterwards: the
// rest of the old response must not become part of the next.
func (s *suite) testCancel(t *testing.T) {
	s.need(t, storage.Read)
	c := s.client(t)
	small, size := s.file(t, c, "small", 4, 10_000), s.o.Largest
	p := s.file(t, c, "large", 5, size)
	t.Run("before", func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		out := s.doIn(ctx, t, c, storage.Op{Kind: storage.Read, Path: p, Size: size}, &listener{})
		if storage.Classify(out.err) != storage.Canceled {
			t.Errorf("%v, want context.Canceled", out.err)
		}
		s.holds(t, c, small, 4, 10_000)
	})
	for _, sum := range s.sums() {
		t.Run(strings.TrimSpace("within read "+sum), func(t *testing.T) {
			s.cancelWithin(t, c, storage.Op{Kind: storage.Read, Path: p, Size: size, Sum: sum, Chunk: 65_536})
			s.holds(t, c, small, 4, 10_000)
			s.holds(t, c, p, 5, size)
		})
	}
	if !s.offers(storage.Write) {
		return
	}
	t.Run("within write", func(t *testing.T) {
		half := s.path(t, "half")
		s.removeAfter(t, half)
		s.cancelWithin(t, c, storage.Op{Kind: storage.Write, Path: half, Size: size, Seed: 6, Chunk: 65_536})
		s.holds(t, c, small, 4, 10_000)
	})
}

// cancelWithin runs op and ends its context at its first payload bytes.
func (s *suite) cancelWithin(t *testing.T, c storage.Client, op storage.Op) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	out := s.doIn(ctx, t, c, op, &listener{onMoved: cancel})
	switch {
	case storage.Classify(out.err) == storage.Canceled:
	case out.err == nil && out.heard.moved == op.Size: // all was there before it could notice
	default:
		t.Errorf("%s canceled after the first of %d moves (%d of %d bytes): %v, want context.Canceled", op.Kind, out.heard.calls, out.heard.moved,
			op.Size, out.err)
	}
}

// testTimeout runs operations with a timeout of a nanosecond.
func (s *suite) testTimeout(t *testing.T) {
	s.need(t, storage.Read)
	c := s.client(t)
	p := s.file(t, c, "f", 4, 10_000)
	t.Run("of the operation", func(t *testing.T) {
		out := s.do(t, c, storage.Op{Kind: storage.Read, Path: p, Size: -1, Timeout: time.Nanosecond})
		if storage.Classify(out.err) != storage.Timeout {
			t.Errorf("a read within a nanosecond: %v, want a timeout", out.err)
		}
		s.holds(t, c, p, 4, 10_000)
	})
	t.Run("of the context", func(t *testing.T) {
		ctx, cancel := context.WithTimeout(t.Context(), time.Nanosecond)
		defer cancel()
		out := s.doIn(ctx, t, c, storage.Op{Kind: storage.Read, Path: p, Size: -1}, &listener{})
		if storage.Classify(out.err) != storage.Timeout {
			t.Errorf("a read within a nanosecond: %v, want a timeout", out.err)
		}
		s.holds(t, c, p, 4, 10_000)
	})
	t.Run("long enough", func(t *testing.T) {
		s.must(t, c, storage.Op{Kind: storage.Read, Path: p, Size: -1, Timeout: s.o.Bound})
		s.holds(t, c, p, 4, 10_000)
	})
}

// testNetwork replaces the target's host by hosts that misbehave.
func (s *suite) testNetwork(t *testing.T) {
	if !s.o.Network {
		t.Skip("declared: the target is not reached over TCP")
	}
	t.Run("no listener", func(t *testing.T) {
		host := listen(t, nil)
		// A program that is started for each operation may report it late.
		s.failsAs(t, host, s.o.Bound*2/3, storage.Refused)
	})
	t.Run("silent", func(t *testing.T) {
		host := listen(t, func(c net.Conn, end <-chan struct{}) { <-end })
		s.failsAs(t, host, time.Second, storage.Timeout)
	})
	t.Run("hangs up", func(t *testing.T) {
		host := listen(t, func(net.Conn, <-chan struct{}) {})
		s.failsAs(t, host, time.Second, storage.Reset, storage.Short, storage.Refused)
	})
	t.Run("talks nonsense", func(t *testing.T) {
		host := listen(t, func(c net.Conn, end <-chan struct{}) {
			for range 64 {
				if _, err := c.Write(slices.Repeat([]byte("blah\x00\xff\n"), 100)); err != nil {
					return
				}
			}
			<-end
		})
		s.failsAs(t, host, time.Second, storage.Other, storage.Timeout, storage.Reset, storage.Short)
	})
}

// failsAs reads from host with a timeout and expects one of classes.
func (s *suite) failsAs(t *testing.T, host string, timeout time.Duration, classes ...storage.Class) {
	t.Helper()
	url := *s.target.URL
	url.Host = host
	target := s.target
	target.URL = &url
	c := s.of(t, s.service(t, target))
	start := time.Now()
	out := s.do(t, c, storage.Op{Kind: s.driver.Kinds[0], Path: "x", Size: -1, Sum: "", Timeout: timeout})
	if took := time.Since(start); took > s.o.Bound {
		t.Errorf("a timeout of %v took %v", timeout, took)
	}
	if out.heard.moved > 0 && s.driver.Kinds[0] == storage.Read {
		t.Errorf("%d bytes of payload from a host that has none", out.heard.moved)
	}
	switch class := storage.Classify(out.err); {
	case out.err == nil:
		t.Error("no error")
	case s.lacks(NetworkFailure):
	case !slices.Contains(classes, class):
		t.Errorf("class %q, want one of %q: %v", class, classes, out.err)
	}
}

// listen returns the address of a listener that serves its connections with treat until the test ends. If treat is
// nil, no process listens at the address.
func listen(t *testing.T, treat func(c net.Conn, end <-chan struct{})) string {
	t.Helper()
	var conf net.ListenConfig
	l, err := conf.Listen(t.Context(), "tcp", "127.0.0.1:0")
	require.NoError(t, err)
	if treat == nil {
		require.NoError(t, l.Close())
		return l.Addr().String()
	}
	end := make(chan struct{})
	var all sync.WaitGroup
	all.Go(func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return // closed below
			}
			all.Go(func() {
				defer func() { _ = c.Close() }() // it does not behave anyway
				treat(c, end)
			})
		}
	})
	t.Cleanup(func() {
		close(end)
		if err := l.Close(); err != nil {
			t.Error(err)
		}
		all.Wait()
	})
	return l.Addr().String()
}
