package sites

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"sync"
	"time"

	"weir/internal/content"
	"weir/loadtest/challenge"
	"weir/loadtest/challenge/inject"
	"weir/storage"
)

const (
	mostWriters  = 32          // files that are made at once, at all sites together
	siteWriters  = 4           // at one site
	makeAttempts = 5           // pauses of 7.5 s together
	pastAttempts = 10          // pauses of 75 s together, when a challenge is resumed: its sites were usable before
	shortTime    = time.Minute // limit of operations without payload
)

// A file is one of the files that each source has. It has the same content at all of them.
type file struct {
	path string
	size int64
	seed uint64
	sum  func() string // "adler32:hex", computed once
}

// newFiles returns the files of a challenge, at the paths that pathOf returns for their names. The seed
// determines their sizes and content.
func newFiles(c *challenge.Challenge, pathOf func(name string) string) ([]*file, error) {
	draw, err := c.Files.Size.Sampler()
	if err != nil {
		return nil, fmt.Errorf("files.size: %w", err)
	}
	if c.Files.Sources < 1 {
		return nil, fmt.Errorf("files.sources: %d: use 1 or more", c.Files.Sources)
	}
	r := rand.New(rand.NewPCG(c.Seed, 0x736f75726365))
	files := make([]*file, c.Files.Sources)
	for i := range files {
		name := fmt.Sprintf("source%06d.dat", i)
		f := &file{path: pathOf(name), size: draw(r), seed: content.Seed(c.Seed, name)}
		f.sum = sync.OnceValue(func() string {
			sum, _ := content.Sum("adler32", f.seed, 0, f.size) // fails for no such arguments
			return sum
		})
		files[i] = f
	}
	return files, nil
}

func (f *file) file() inject.File { return inject.File{Path: f.path, Size: f.size, Sum: f.sum()} }

// Prepare makes the folders of the challenge at all sites, and the files at its sources. A file
// that is complete since an earlier preparation stays as it is. advance, which may be nil, receives
// the progress in files, by one goroutine at a time.
func (s *Sites) Prepare(ctx context.Context, advance func(done, total int)) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	p := &preparation{Sites: s, cancel: cancel, advance: advance, writers: make(chan struct{}, mostWriters)}
	for _, at := range s.places {
		if at.from {
			p.total += len(at.files)
		}
	}
	var all sync.WaitGroup
	for _, at := range s.places {
		if at.from || at.to {
			all.Go(func() { p.site(ctx, at) })
		}
	}
	all.Wait()
	return context.Cause(ctx)
}

// A preparation makes files.
type preparation struct {
	*Sites
	cancel  context.CancelCauseFunc // ends it with an error
	advance func(done, total int)
	writers chan struct{}
	total   int

	mu   sync.Mutex
	done int
}

// site prepares one site.
func (p *preparation) site(ctx context.Context, at *place) {
	fail := func(err error) { p.cancel(fmt.Errorf("site %s: %w", at.site.Name, err)) }
	folders := []string{p.folder}
	if at.from && p.c.Files.Keep {
		folders = append(folders, p.sourceFolder())
	}
	for _, folder := range folders {
		if err := p.mkdir(ctx, at, folder); err != nil {
			fail(err)
			return
		}
	}
	err := p.try(ctx, at)
	if err == nil && p.o.Path != nil && !p.begun {
		err = p.vacant(ctx, at)
	}
	if err != nil {
		fail(err)
		return
	}
	if !at.from {
		return
	}
	queue := make(chan *file, len(at.files))
	for _, f := range at.files {
		queue <- f
	}
	close(queue)
	var all sync.WaitGroup
	for range min(siteWriters, len(at.files)) {
		all.Go(func() {
			for f := range queue {
				if err := p.one(ctx, at, f); err != nil {
					fail(err)
					return
				}
			}
		})
	}
	all.Wait()
}

// one makes a file in its turn.
func (p *preparation) one(ctx context.Context, at *place, f *file) error {
	select {
	case p.writers <- struct{}{}:
		defer func() { <-p.writers }()
	case <-ctx.Done():
		return context.Cause(ctx)
	}
	if err := p.makeFile(ctx, at, f); err != nil {
		return err
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.done++; p.advance != nil {
		p.advance(p.done, p.total)
	}
	return nil
}

// mkdir makes a folder, which may be there.
func (s *Sites) mkdir(ctx context.Context, at *place, folder string) error {
	if err := s.create(Made{Site: at.site.Name, Path: folder + "/"}); err != nil {
		return err
	}
	_, err := at.store.ask(ctx, storage.Op{Kind: storage.Mkdir, Path: folder, Timeout: shortTime}, s.attempts)
	switch {
	case err == nil, errors.Is(err, fs.ErrExist), errors.Is(err, errors.ErrUnsupported): // then writes make folders
		return nil
	case errors.Is(err, fs.ErrNotExist):
		return errors.Join(fmt.Errorf("its folder does not exist: make it, or correct the URL: %w", err), s.removed(at, folder+"/"))
	case errors.Is(err, fs.ErrPermission):
		return errors.Join(fmt.Errorf("the credentials do not allow to write: %w", err), s.removed(at, folder+"/"))
	}
	return err
}

// vacant returns an error if foreign files are at paths at which the service of the challenge is to make
// copies: the service may replace or remove them. Copies of an earlier challenge are the service's.
func (s *Sites) vacant(ctx context.Context, at *place) error {
	var all sync.WaitGroup
	errs, slots := make([]error, len(s.c.Links)), make(chan struct{}, mostClients)
	for i := range s.c.Links {
		if s.c.Links[i].To != at.site.Name {
			continue
		}
		for _, f := range s.places[s.c.Links[i].From].files {
			slots <- struct{}{}
			all.Go(func() {
				defer func() { <-slots }()
				ours, err := s.begins(ctx, at, f.path, f)
				if err == nil && !ours {
					err = fmt.Errorf("%s is at a path of a copy, and this challenge did not make it: move it", f.path)
				}
				if err != nil && !errors.Is(err, fs.ErrNotExist) {
					s.mu.Lock()
					errs[i] = cmp.Or(errs[i], err)
					s.mu.Unlock()
				}
			})
		}
	}
	all.Wait()
	return errors.Join(errs...)
}

// try writes a small file and removes it, so that a site that cannot be written or cleaned is
// reported before the load.
func (s *Sites) try(ctx context.Context, at *place) error {
	f := &file{path: s.folder + "/try-" + at.site.Name + ".dat", size: 1 << 10, seed: content.Seed(s.c.Seed, "try")}
	if err := s.create(Made{Site: at.site.Name, Path: f.path, Size: f.size, Seed: f.seed}); err != nil {
		return err
	}
	if err := s.write(ctx, at, f); err != nil {
		return fmt.Errorf("it does not take files: %w", err)
	}
	if err := s.Remove(ctx, at.site.Name, f.path); err != nil {
		return fmt.Errorf("files cannot be removed there: %w", err)
	}
	return nil
}

// makeFile makes a file at a source, unless it is there.
func (s *Sites) makeFile(ctx context.Context, at *place, f *file) error {
	ours := s.isRecorded(at, f.path)
	if ours || s.c.Files.Keep {
		_, err := s.verify(ctx, at, f.file())
		wrong := errors.Is(err, storage.ErrSize) || errors.Is(err, storage.ErrChecksum)
		switch {
		case err == nil:
			return nil
		case wrong && !ours:
			return fmt.Errorf("%s is not a file of this challenge, and is not replaced: remove it, or change seed: %w", f.path, err)
		case !wrong && !errors.Is(err, fs.ErrNotExist):
			return err
		case wrong:
			if _, err := at.store.ask(ctx, storage.Op{Kind: storage.Remove, Path: f.path, Timeout: shortTime}, s.attempts); err != nil {
				return err
			}
		}
	}
	if err := s.create(Made{Site: at.site.Name, Path: f.path, Size: f.size, Seed: f.seed}); err != nil {
		return err
	}
	if s.o.Path != nil {
		s.makeParents(ctx, at, f.path)
	}
	if err := s.write(ctx, at, f); err != nil {
		return err
	}
	_, err := s.verify(ctx, at, f.file())
	return err
}

// makeParents makes the folders of a path that the service of the challenge has chosen. They stay, like
// the folders that the service makes itself. Errors are ignored: the write of the file reports them.
func (s *Sites) makeParents(ctx context.Context, at *place, path string) {
	for i := range path {
		if path[i] == '/' {
			_, _ = at.store.ask(ctx, storage.Op{Kind: storage.Mkdir, Path: path[:i], Timeout: shortTime}, s.attempts)
		}
	}
}

// write writes a file. The rest of an attempt that failed is removed: some services do not replace files.
func (s *Sites) write(ctx context.Context, at *place, f *file) (err error) {
	op := storage.Op{Kind: storage.Write, Path: f.path, Size: f.size, Seed: f.seed, Timeout: time.Duration(s.c.Timeout)}
	for try := 1; ; try++ {
		_, err = at.store.do(ctx, op)
		switch {
		case storage.Classify(err) == storage.Denied:
			return errors.Join(err, s.removed(at, f.path)) // it was not made
		case err == nil, try >= s.attempts, !MayPass(err), ctx.Err() != nil:
			return err
		}
		_, _ = at.store.ask(ctx, storage.Op{Kind: storage.Remove, Path: f.path, Timeout: shortTime}, 2) // often there is nothing
	}
}

// create records m, which is about to be created.
func (s *Sites) create(m Made) error {
	if err := s.o.Manifest.Created(m); err != nil {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.recorded[[2]string{m.Site, m.Path}] = true
	return nil
}

// removed records that a path was removed, or was not made.
func (s *Sites) removed(at *place, path string) error {
	if err := s.o.Manifest.Removed(at.site.Name, path); err != nil {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.recorded, [2]string{at.site.Name, path})
	return nil
}

func (s *Sites) isRecorded(at *place, path string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.recorded[[2]string{at.site.Name, path}]
}
