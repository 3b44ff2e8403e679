package storagetest

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"sync"
	"testing"
	"time"

	"weir/internal/require"
	"weir/storage"
)

// testCopy tests third-party copies from the target's origin.
func (s *suite) testCopy(t *testing.T) {
	s.need(t, storage.Copy)
	t.Run("no origin", func(t *testing.T) { testNoOrigin(t, s) })
	if s.target.Origin == nil {
		return
	}
	t.Run("sizes", func(t *testing.T) { testCopySizes(t, s) })
	t.Run("refused", func(t *testing.T) { testCopyRefused(t, s) })
	t.Run("ended", func(t *testing.T) { testCopyEnded(t, s) })
	t.Run("dead origin", func(t *testing.T) { testDeadOrigin(t, s) })
	t.Run("together", func(t *testing.T) { testCopiesTogether(t, s) })
}

// atOrigin returns a suite whose target is the origin.
func atOrigin(s *suite) *suite {
	o := s.target.Origin
	return &suite{driver: s.driver, target: storage.Target{URL: o.URL, Cred: o.Cred}, o: s.o}
}

// mustCopy copies a file to a new name, removes the copy after the test, and checks its progress.
func mustCopy(t *testing.T, s *suite, c storage.Client, op storage.Op) {
	t.Helper()
	s.removeAfter(t, op.Path)
	out := s.must(t, c, op)
	switch {
	case !out.heard.reached(storage.Opened):
		t.Errorf("copy %q: it reached %v, but was never accepted", op.Path, out.heard.phases)
	case op.Size >= 0 && out.heard.moved != op.Size:
		t.Errorf("copy %q: %d bytes moved of %d", op.Path, out.heard.moved, op.Size)
	}
}

func testNoOrigin(t *testing.T, s *suite) {
	target := s.target
	target.Origin = nil
	out := s.do(t, s.of(t, s.service(t, target)), storage.Op{Kind: storage.Copy, Path: s.path(t, "copy"), Source: "f", Size: -1})
	if !errors.Is(out.err, errors.ErrUnsupported) {
		t.Errorf("a copy without an origin: %v, want errors.ErrUnsupported", out.err)
	}
}

func testCopySizes(t *testing.T, s *suite) {
	c, origin := s.client(t), atOrigin(s)
	at := origin.client(t)
	for _, size := range []int64{0, 1, 10_000, s.o.Largest} {
		if size == 0 && s.lacks(EmptyCopies) {
			continue
		}
		seed := uint64(size) + 70
		from := origin.file(t, at, fmt.Sprint("f", size), seed, size)
		to := s.path(t, fmt.Sprint("copy", size))
		mustCopy(t, s, c, storage.Op{Kind: storage.Copy, Path: to, Source: from, Size: size})
		s.holds(t, c, to, seed, size)
		to += "-unknown"
		mustCopy(t, s, c, storage.Op{Kind: storage.Copy, Path: to, Source: from, Size: -1})
		s.holds(t, c, to, seed, size)
	}
	if s.lacks(SpecialNames) {
		return
	}
	from := origin.file(t, at, "f with 100% + ü", 7, 1000)
	to := s.path(t, "copy & ü #1")
	mustCopy(t, s, c, storage.Op{Kind: storage.Copy, Path: to, Source: from, Size: 1000})
	s.holds(t, c, to, 7, 1000)
}

func testCopyRefused(t *testing.T, s *suite) {
	c, origin := s.client(t), atOrigin(s)
	to := s.path(t, "copy")
	s.removeAfter(t, to)
	out := s.do(t, c, storage.Op{Kind: storage.Copy, Path: to, Source: s.path(t, "missing"), Size: -1})
	if !s.notThere(out.err) {
		t.Errorf("a copy of a missing file: %v, want fs.ErrNotExist", out.err)
	}
	for _, op := range []storage.Op{{Path: to, Source: "a/../../b"}, {Path: "../x", Source: "f"}} {
		op.Kind, op.Size = storage.Copy, -1
		if out := s.do(t, c, op); !errors.Is(out.err, fs.ErrInvalid) {
			t.Errorf("a copy of %q to %q: %v, want fs.ErrInvalid", op.Source, op.Path, out.err)
		}
	}
	if s.lacks(SafeCopy) {
		return
	}
	taken := s.file(t, c, "taken", 8, 1000)
	from := origin.file(t, origin.client(t), "f", 9, 2000)
	if out := s.do(t, c, storage.Op{Kind: storage.Copy, Path: taken, Source: from, Size: 2000}); out.err == nil {
		t.Error("a copy replaced a file")
	}
	s.holds(t, c, taken, 8, 1000)
}

// testCopyEnded ends copies before they begin.
func testCopyEnded(t *testing.T, s *suite) {
	c, origin := s.client(t), atOrigin(s)
	op := storage.Op{Kind: storage.Copy, Path: s.path(t, "copy"), Source: origin.file(t, origin.client(t), "f", 9, 2000), Size: 2000}
	s.removeAfter(t, op.Path)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if out := s.doIn(ctx, t, c, op, &listener{}); storage.Classify(out.err) != storage.Canceled {
		t.Errorf("%v, want context.Canceled", out.err)
	}
	op.Timeout = time.Nanosecond
	if out := s.do(t, c, op); storage.Classify(out.err) != storage.Timeout {
		t.Errorf("a copy within a nanosecond: %v, want a timeout", out.err)
	}
	op.Timeout, op.Path = s.o.Bound, op.Path+"-2"
	mustCopy(t, s, c, op)
	s.holds(t, c, op.Path, 9, 2000)
}

// testDeadOrigin copies from an origin at which nothing listens, and from a silent one.
func testDeadOrigin(t *testing.T, s *suite) {
	silent := listen(t, func(c net.Conn, end <-chan struct{}) { <-end })
	for name, host := range map[string]string{"no listener": listen(t, nil), "silent": silent} {
		t.Run(name, func(t *testing.T) {
			target, origin := s.target, *s.target.Origin
			url := *origin.URL
			url.Host = host
			origin.URL, target.Origin = &url, &origin
			c := s.of(t, s.service(t, target))
			to := s.path(t, "copy")
			s.removeAfter(t, to)
			begin := time.Now()
			out := s.do(t, c, storage.Op{Kind: storage.Copy, Path: to, Source: "f", Size: 1000, Timeout: 2 * time.Second})
			class := storage.Classify(out.err)
			if out.err == nil || out.heard.moved > 0 || name == "silent" && class != storage.Timeout {
				t.Errorf("class %q, %d bytes moved: %v", class, out.heard.moved, out.err)
			}
			if took := time.Since(begin); took > s.o.Bound {
				t.Errorf("a timeout of 2 s took %v", took)
			}
		})
	}
}

// testCopiesTogether copies files of many clients at once.
func testCopiesTogether(t *testing.T, s *suite) {
	origin := atOrigin(s)
	const size = 50_000
	from := origin.file(t, origin.client(t), "f", 11, size)
	svc := s.service(t, s.target)
	var all sync.WaitGroup
	errs := make(chan error, s.o.Clients)
	for i := range min(s.o.Clients, 20) {
		to := s.path(t, fmt.Sprint("copy", i))
		s.removeAfter(t, to)
		c := s.of(t, svc)
		all.Go(func() {
			heard := &listener{}
			_, err := c.Do(t.Context(), &storage.Op{Kind: storage.Copy, Path: to, Source: from, Size: size, Timeout: s.o.Bound}, heard)
			heard.end()
			if err == nil && heard.moved != size {
				err = fmt.Errorf("%d bytes moved of %d", heard.moved, size)
			}
			errs <- err
		})
	}
	all.Wait()
	close(errs)
	for err := range errs {
		require.NoError(t, err)
	}
	s.holds(t, s.of(t, svc), s.path(t, "copy0"), 11, size)
}
