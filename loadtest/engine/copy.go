package engine

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"sync"

	"weir/loadtest/workload"
	"weir/storage"
)

// Copies are removed by so many clients of their own, so that the copying clients need not wait for
// that. If so many copies wait for their removal, the copying clients wait as well.
const (
	removers       = 8
	mostUnremoved  = 64
	triedCopyTimes = 3
)

// root returns the path of the folder with the plan's files: the target itself, or the origin.
func (p *preparer) root() string {
	if p.Plan.Origin == nil {
		return ""
	}
	return storage.OriginPath("")
}

// source returns the folder in which the plan's files are made.
func (p *preparer) source() string { return p.root() + p.Folder }

// belowOrigin returns the files with their paths below the origin, if they are there.
func belowOrigin(files []workload.File) []workload.File {
	for i := range files {
		files[i].Path, _ = storage.OnOrigin(files[i].Path)
	}
	return files
}

// atOrigin returns the files with the paths that they have for clients of a plan with an origin.
func (p *preparer) atOrigin(files []workload.File) []workload.File {
	if p.Plan.Origin == nil || p.Plan.Files.Make != nil {
		return files
	}
	files = slices.Clone(files)
	for i := range files {
		files[i].Path = storage.OriginPath(files[i].Path)
	}
	return files
}

// tryCopy copies the smallest file and removes the copy. It returns an error if the services refuse
// that, and each repetition under another name. Other failures are left to the load.
func (p *preparer) tryCopy(ctx context.Context, files []workload.File) (err error) {
	s := p.Service.Client()
	defer func() { _ = s.Close() }() // its operations have ended
	f := slices.MinFunc(files, func(a, b workload.File) int { return int(max(-1, min(1, a.Size-b.Size))) })
	for i := range triedCopyTimes {
		path := fmt.Sprintf("%s/copy%d.dat", p.Folder, i)
		if err := p.Manifest.Created(path, f.Size, f.Seed); err != nil {
			return err
		}
		_, err = p.ask(ctx, s, &storage.Op{Kind: storage.Copy, Path: path, Source: f.Path, Size: f.Size})
		_, removed := p.ask(ctx, s, &storage.Op{Kind: storage.Remove, Path: path})
		if removed == nil || errors.Is(removed, fs.ErrNotExist) { // otherwise it is removed with all others
			if err := p.Manifest.Removed(path); err != nil {
				return err
			}
		}
		if ctx.Err() != nil || !refusesWrite(err) && !errors.Is(err, errors.ErrUnsupported) && !errors.Is(err, storage.ErrServer) {
			return ctx.Err()
		}
	}
	return fmt.Errorf("the service cannot fetch files from the origin, or the origin cannot send them: %w", err)
}

// copied hands a copy over to the remover, unless it is to be verified first. A copy that failed
// leaves a part of the file at some services: it is removed as well, unless the service may still
// be writing it.
func (l *clientRunner) copied(c *client, op *storage.Op, class storage.Class) {
	switch class {
	case storage.Timeout, storage.Reset, storage.Short, storage.Canceled:
	case storage.None:
		if !c.task.Verify {
			l.remover.remove(op.Path)
		}
	default:
		l.remover.remove(op.Path)
	}
}

// A remover removes copies during the load, so that they take no more space than necessary. Its
// operations are not counted. Copies that it cannot remove stay in the manifest, as do those that
// are left when its context ends.
type remover struct {
	Config
	ctx     context.Context
	paths   chan string
	clients sync.WaitGroup
}

func startRemover(ctx context.Context, c Config) *remover {
	r := &remover{Config: c, ctx: ctx, paths: make(chan string, mostUnremoved)}
	for range removers {
		r.clients.Go(r.work)
	}
	return r
}

// remove has the file removed. It waits while too many files are to be removed. A nil r leaves the
// file where it is.
func (r *remover) remove(path string) {
	if r == nil {
		return
	}
	select {
	case r.paths <- path:
	case <-r.ctx.Done():
	}
}

func (r *remover) work() {
	s := r.Service.Client()
	for path := range r.paths {
		if r.ctx.Err() != nil {
			continue
		}
		_, err := s.Do(r.ctx, &storage.Op{Kind: storage.Remove, Path: path, Timeout: removeTime}, storage.NoProgress{})
		if (err == nil || errors.Is(err, fs.ErrNotExist)) && r.Manifest != nil {
			_ = r.Manifest.Removed(path) // it is removed once more after the run
		}
	}
	_ = s.Close() // its operations have ended
}

// close waits until all files are removed, or the context has ended.
func (r *remover) close() {
	if r == nil {
		return
	}
	close(r.paths)
	r.clients.Wait()
}
