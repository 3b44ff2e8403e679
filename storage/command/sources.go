package command

import (
	"context"
	"fmt"
	"os"
	"slices"
	"sync"

	"weir/internal/content"
)

// sources are the files with content that programs send. Each is made when it is first needed and
// kept for later operations; unused files are removed when all together are larger than most.
type sources struct {
	base string
	most int64 // bytes

	mu     sync.Mutex
	files  map[key]*source
	idle   []key // not in use, the longest unused first
	total  int64
	number int
}

type key struct {
	seed uint64
	size int64
}

type source struct {
	name  string
	users int
	ready chan struct{} // closed when the file is made, or err is set
	err   error
}

func newSources(base string, most int64) *sources {
	return &sources{base: base, most: most, files: map[key]*source{}}
}

// get returns the file of a seed and a size, which stays until release.
func (s *sources) get(ctx context.Context, seed uint64, size int64) (name string, release func(), err error) {
	k := key{seed, size}
	for {
		f, maker := s.use(k)
		if maker {
			s.made(k, f, makeFile(ctx, f.name, seed, size))
		}
		select {
		case <-f.ready:
		case <-ctx.Done():
		}
		switch {
		case ctx.Err() != nil:
			s.release(k, f)
			return "", nil, ctx.Err()
		case f.err == nil:
			return f.name, func() { s.release(k, f) }, nil
		case maker:
			return "", nil, fmt.Errorf("content to send: %w", unclassed{f.err})
		}
		// Its maker gave up or failed; see for ourselves.
	}
}

// use enters a user; maker is true if the caller has to make the file.
func (s *sources) use(k key) (f *source, maker bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	f = s.files[k]
	if f == nil {
		s.number++
		f = &source{name: fmt.Sprintf("%s%d", s.base, s.number), ready: make(chan struct{})}
		s.files[k], maker = f, true
		s.total += k.size
	} else if i := slices.Index(s.idle, k); i >= 0 {
		s.idle = slices.Delete(s.idle, i, i+1)
	}
	f.users++
	return f, maker
}

// made notifies the other users that the file was made, or could not be made.
func (s *sources) made(k key, f *source, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	f.err = err
	if err != nil {
		s.drop(k)
	}
	close(f.ready)
}

func (s *sources) drop(k key) {
	_ = os.Remove(s.files[k].name)
	delete(s.files, k)
	s.total -= k.size
}

// release removes a user of the file.
func (s *sources) release(k key, f *source) {
	s.mu.Lock()
	defer s.mu.Unlock()
	f.users--
	if f.users > 0 || s.files[k] != f {
		return
	}
	s.idle = append(s.idle, k)
	for len(s.idle) > 0 && s.total > s.most {
		s.drop(s.idle[0])
		s.idle = s.idle[1:]
	}
}

// makeFile writes a file of package content.
func makeFile(ctx context.Context, name string, seed uint64, size int64) error {
	w, err := os.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_TRUNC, 0o600)
	if err != nil {
		return err
	}
	_, err = content.NewReader(seed, size).WriteTo(&until{ctx, w})
	if e := w.Close(); err == nil {
		err = e
	}
	return err
}

// until writes until its context ends.
type until struct {
	ctx context.Context
	w   *os.File
}

func (u *until) Write(b []byte) (int, error) {
	if err := u.ctx.Err(); err != nil {
		return 0, err
	}
	return u.w.Write(b)
}
