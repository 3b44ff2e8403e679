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
	"weir/storage"
)

// testTogether runs many clients of one service at once; with the race
// detector it shows whether the service is safe for that.
func (s *suite) testTogether(t *testing.T) {
	s.need(t, storage.Read)
	const seed, size = 21, 70_000
	svc := s.service(t, s.target)
	p := s.file(t, s.of(t, svc), "shared", seed, size)
	want, err := content.Sum(s.o.Sum, seed, 0, size)
	if err != nil {
		t.Fatal(err)
	}
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

// free reads a file that has just been written: on a busy machine XRootD lets go
// of it a moment after it has answered the close, and until then denies it as busy.
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

// testLeaks looks for what outlives operations and services: goroutines of the
// driver, and calls of Progress by those. It runs last.
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
