package storage

import (
	"os"
	"slices"
	"sync"
	"sync/atomic"
	"time"
)

// lookEvery is the least time between two checks of a credential's files.
const lookEvery = time.Second

// A Renewable is a credential that is read again when its files change, for runs that outlive it. Content that cannot be used leaves the
// credential as it was: a file may be half written. Its methods may be called by several goroutines at once.
type Renewable[T any] struct {
	parse   func(contents []string) (T, error)
	files   []string // empty: the credential is never renewed
	current atomic.Pointer[T]
	made    time.Time
	next    atomic.Int64 // time of the next check of the files, in ns since made
	count   atomic.Int64 // renewals that Renewals has not returned yet

	mu       sync.Mutex
	seen     []os.FileInfo // of the files when they were read
	contents []string
}

// NewRenewable returns the credential that parse makes of the contents of files.
func NewRenewable[T any](parse func(contents []string) (T, error), files ...string) (*Renewable[T], error) {
	r := &Renewable[T]{parse: parse, files: files, made: time.Now()}
	r.next.Store(int64(lookEvery))
	if err := r.read(look(files)); err != nil {
		return nil, err
	}
	r.count.Store(0)
	return r, nil
}

// Current returns the credential. It checks the files if the last check was a second ago.
func (r *Renewable[T]) Current() T {
	if len(r.files) > 0 && int64(time.Since(r.made)) >= r.next.Load() && r.mu.TryLock() {
		r.next.Store(int64(time.Since(r.made) + lookEvery))
		if seen := look(r.files); !slices.EqualFunc(seen, r.seen, sameFile) {
			_ = r.read(seen) // the credential stays as it was
		}
		r.mu.Unlock()
	}
	return *r.current.Load()
}

// Reread returns the credential that the files hold now, for a caller whose credential was refused.
func (r *Renewable[T]) Reread() T {
	if len(r.files) > 0 {
		r.mu.Lock()
		_ = r.read(look(r.files)) // the credential stays as it was
		r.mu.Unlock()
	}
	return *r.current.Load()
}

// read reads the files, which looked like seen before. The caller holds the lock.
func (r *Renewable[T]) read(seen []os.FileInfo) error {
	contents := make([]string, len(r.files))
	for i, file := range r.files {
		b, err := os.ReadFile(file)
		if err != nil {
			return err
		}
		contents[i] = string(b)
	}
	if r.current.Load() == nil || !slices.Equal(contents, r.contents) {
		v, err := r.parse(contents)
		if err != nil {
			return err
		}
		r.current.Store(&v)
		r.count.Add(1)
	}
	r.seen, r.contents = seen, contents
	return nil
}

// Renewals returns the number of renewals since the last call.
func (r *Renewable[T]) Renewals() int {
	if r.count.Load() == 0 {
		return 0
	}
	return int(r.count.Swap(0))
}

// look returns the state of files, nil for a missing file.
func look(files []string) []os.FileInfo {
	all := make([]os.FileInfo, len(files))
	for i, file := range files {
		if info, err := os.Stat(file); err == nil {
			all[i] = info
		}
	}
	return all
}

// sameFile reports whether a file is still the same and has not changed.
func sameFile(a, b os.FileInfo) bool {
	if a == nil || b == nil {
		return a == nil && b == nil
	}
	return os.SameFile(a, b) && a.ModTime().Equal(b.ModTime()) && a.Size() == b.Size()
}
