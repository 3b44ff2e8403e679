package serve

import (
	"context"
	"hash"
	"io"
	"maps"
	"runtime"
	"strings"
	"sync"
	"time"

	"weir/internal/content"
)

// sums remembers checksums as long as size and time of a file stay, and
// computes each once, however many ask at the same time.
type sums struct {
	turns chan struct{} // one for each that may compute at a time
	mu    sync.Mutex
	known map[sumKey]*sum
}

type sumKey struct{ name, alg string }

// A sum is a checksum, or one that is being computed until done is closed.
type sum struct {
	size     int64
	step     int64 // bytes of a chunk; 0 if it is of the whole file
	modified time.Time
	done     chan struct{}
	text     string
	err      error
}

const (
	maxSums = 100_000
	// young is how old a file must be for its time to tell of later changes:
	// clocks of file systems have ticks.
	young = 100 * time.Millisecond
)

func newSums() *sums {
	return &sums{turns: make(chan struct{}, runtime.NumCPU()), known: map[sumKey]*sum{}}
}

// of returns the checksum alg of f, whose content it leaves at its start.
func (s *sums) of(ctx context.Context, name string, f *file, alg string) (string, error) {
	return s.get(ctx, sumKey{name, alg}, 0, f)
}

// get returns what is known for key, or computes it: of chunks of step bytes, if
// step is not 0.
func (s *sums) get(ctx context.Context, key sumKey, step int64, f *file) (string, error) {
	for {
		mine := &sum{size: f.size, step: step, modified: f.modified, done: make(chan struct{})}
		e := s.enter(key, mine)
		if e == mine {
			s.compute(ctx, key, mine, f)
			return mine.text, mine.err
		}
		select {
		case <-e.done:
		case <-ctx.Done():
			return "", context.Cause(ctx)
		}
		if e.err == nil {
			return e.text, nil
		} // else who computed it gave up: try ourselves
	}
}

// enter returns the entry for key, which is mine if none fits.
func (s *sums) enter(key sumKey, mine *sum) *sum {
	s.mu.Lock()
	defer s.mu.Unlock()
	if e := s.known[key]; e != nil && e.size == mine.size && e.step == mine.step && e.modified.Equal(mine.modified) {
		return e
	}
	for k := range s.known { // any one: what is asked for again is computed again
		if len(s.known) < maxSums {
			break
		}
		delete(s.known, k)
	}
	s.known[key] = mine
	return mine
}

func (s *sums) compute(ctx context.Context, key sumKey, e *sum, f *file) {
	defer close(e.done)
	fresh := time.Since(f.modified) < young
	if e.step > 0 {
		e.text, e.err = s.readChunks(ctx, f, e.step)
	} else {
		e.text, e.err = s.read(ctx, f, key.alg)
	}
	if e.err == nil && !fresh {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.known[key] == e {
		delete(s.known, key)
	}
}

func (s *sums) read(ctx context.Context, f *file, alg string) (string, error) {
	select {
	case s.turns <- struct{}{}:
		defer func() { <-s.turns }()
	case <-ctx.Done():
		return "", context.Cause(ctx)
	}
	h, err := content.NewHash(alg)
	if err != nil {
		return "", err
	}
	if _, err := io.CopyBuffer(untilDone{ctx, h}, f.content, make([]byte, copyBytes)); err != nil {
		return "", err
	}
	if _, err := f.content.Seek(0, io.SeekStart); err != nil {
		return "", err
	}
	return content.Text(alg, h), nil
}

// remember notes a checksum that was computed on the way.
func (s *sums) remember(name, alg, text string, e entry) {
	mine := &sum{size: e.size, modified: e.modified, done: make(chan struct{}), text: text}
	close(mine.done)
	s.enter(sumKey{name, alg}, mine)
}

// forget drops what is known about name and, if it is a folder, about all
// that is in it.
func (s *sums) forget(name string, folder bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if folder {
		maps.DeleteFunc(s.known, func(k sumKey, _ *sum) bool { return strings.HasPrefix(k.name, name+"/") })
		return
	}
	for _, alg := range append(content.Algorithms(), chunkAlg) {
		delete(s.known, sumKey{name, alg})
	}
}

// untilDone stops writing when its context ends.
type untilDone struct {
	ctx context.Context
	h   hash.Hash
}

// Write implements io.Writer.
func (w untilDone) Write(p []byte) (int, error) {
	if w.ctx.Err() != nil {
		return 0, context.Cause(w.ctx)
	}
	return w.h.Write(p)
}

// addDigests answers Want-Digest and Want-Repr-Digest about f.
func (s *Server) addDigests(r *request, f *file) error {
	instance, repr := wants(r.Header)
	return setDigests(r.w.Header(), instance, repr, func(alg string) (string, error) {
		return s.sums.of(r.Context(), r.name, f, alg)
	})
}
