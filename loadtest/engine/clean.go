package engine

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"weir/internal/say"
	"weir/storage"
)

// A removal without a response within removeTime is requested again, once: if the first request
// removed the file, it is gone. After mostSilence without any response nothing is removed any more.
const (
	removeTime  = 30 * time.Second
	tellSilence = 5 * time.Second
	mostSilence = 90 * time.Second
	mostServers = 64 // that may each have a copy of a folder
)

// Clean removes the files and folders that a run has left, by the manifest's own paths: files
// first, then folders (paths that end in a slash), the deepest first; nothing that is not in left.
// A path that no longer exists is no error, nor is a folder that holds files of others. Clean
// returns the number of paths that it could not remove, and the first reason. It gives up if the
// service has not responded for 90 s, and reports the duration of the silence to adv before that.
func Clean(ctx context.Context, c Config, left []string, adv Advance) (failed int, first error) {
	k := &cleaner{preparer: preparer{Config: c, advance: adv}, total: len(left), ours: map[string]bool{}, began: time.Now()}
	var files, folders []string
	for _, path := range left {
		k.ours[strings.TrimSuffix(path, "/")] = true
		if dir, ok := strings.CutSuffix(path, "/"); ok {
			folders = append(folders, dir)
		} else {
			files = append(files, path)
		}
	}
	ctx, stop := context.WithCancelCause(ctx)
	var watch sync.WaitGroup
	watch.Go(func() { k.watch(ctx, stop) })
	err := k.all(ctx, files, "")
	for _, level := range byDepth(folders) {
		if err == nil {
			err = k.all(ctx, level, "/")
		}
	}
	stop(nil)
	watch.Wait()
	if err != nil {
		k.fail(err)
	}
	return len(left) - int(k.gone.Load()), k.first
}

// A cleaner removes.
type cleaner struct {
	preparer
	total      int
	ours       map[string]bool // paths to be removed
	gone       atomic.Int64
	began      time.Time
	lastAnswer atomic.Int64 // when the service responded last, in nanoseconds since began

	mu    sync.Mutex
	first error
}

func (k *cleaner) fail(err error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.first == nil {
		k.first = err
	}
}

// watch reports a service that does not respond, and ends the removal after mostSilence.
func (k *cleaner) watch(ctx context.Context, stop context.CancelCauseFunc) {
	tick := time.NewTicker(time.Second)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
			silent := time.Since(k.began) - time.Duration(k.lastAnswer.Load())
			if silent >= mostSilence {
				stop(fmt.Errorf("the service has not answered for %v: %w", mostSilence, context.DeadlineExceeded))
			} else if silent >= tellSilence && k.advance != nil {
				k.advance(fmt.Sprintf("no answer for %v; removed", silent.Round(time.Second)), int(k.gone.Load()), k.total)
			}
		}
	}
}

// all removes files, or with the suffix "/" folders, until the context ends.
func (k *cleaner) all(ctx context.Context, paths []string, suffix string) error {
	return k.each(ctx, len(paths), "removed", func(ctx context.Context, s storage.Client, i int) error {
		err := k.remove(ctx, s, paths[i], suffix != "")
		switch {
		case ctx.Err() != nil:
			return context.Cause(ctx)
		case err != nil:
			k.fail(err)
			return nil
		}
		k.gone.Add(1)
		return k.Manifest.Removed(paths[i] + suffix)
	})
}

// remove removes one file or empty folder. A folder is listed first: WebDAV's DELETE would remove
// the files of others with it. Entries that belong to this run are removed again: a redirector
// removes a folder from one of its servers at a time.
func (k *cleaner) remove(ctx context.Context, s storage.Client, path string, folder bool) error {
	for round := 0; folder; round++ {
		res, err := k.ask(ctx, s, &storage.Op{Kind: storage.List, Path: path})
		switch {
		case errors.Is(err, fs.ErrNotExist): // an object store may list no empty folder
		case err != nil:
			return fmt.Errorf("is the folder empty? %w", err)
		case res.Incomplete:
			return fmt.Errorf("%s: left alone: the listing may lack files, so the folder may not be empty: %w", path, errors.ErrUnsupported)
		}
		if res.Omitted > 0 {
			return fmt.Errorf("%s: left alone: it holds %s that cannot be named: %w", path, say.Plural(res.Omitted, "entry"), res.Omission)
		}
		if len(res.Entries) == 0 {
			break
		}
		for _, e := range res.Entries {
			inner := path + "/" + e.Name
			if !k.ours[inner] {
				return fmt.Errorf("%s: left alone: it holds %q, which this run did not make", path, e.Name)
			}
			if round == mostServers {
				return fmt.Errorf("%s: it holds %q, which is there again after each removal", path, e.Name)
			}
			if err := k.remove(ctx, s, inner, e.Dir); err != nil {
				return err
			}
		}
	}
	_, err := k.ask(ctx, s, &storage.Op{Kind: storage.Remove, Path: path, Folder: folder})
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return err
}

func (k *cleaner) noteAnswer() { k.lastAnswer.Store(int64(time.Since(k.began))) }

// ask does op. It repeats op once if no response came in time, and as repeated does if the
// connection broke, the service was busy or the client's program crashed.
func (k *cleaner) ask(ctx context.Context, s storage.Client, op *storage.Op) (storage.Result, error) {
	op.Timeout = removeTime
	lost := func(class storage.Class, err error) bool {
		return class == storage.Timeout || class == storage.Reset || errors.Is(err, storage.ErrCrashed)
	}
	return repeated(ctx, func(error) (storage.Result, error) {
		res, err := s.Do(ctx, op, storage.NoProgress{})
		class := storage.Classify(err)
		if res.Waits > 0 || !lost(class, err) && class != storage.Refused && class != storage.Canceled {
			k.noteAnswer()
		}
		return res, err
	}, func(attempt int, class storage.Class, err error) bool {
		return (lost(class, err) || class == storage.Busy) && (class != storage.Timeout || attempt == 0)
	})
}

// byDepth groups folders by their depth, the deepest first.
func byDepth(folders []string) [][]string {
	deep := map[int][]string{}
	most := 0
	for _, f := range folders {
		n := strings.Count(f, "/")
		deep[n] = append(deep[n], f)
		most = max(most, n)
	}
	var levels [][]string
	for n := most; n >= 0; n-- {
		if len(deep[n]) > 0 {
			levels = append(levels, deep[n])
		}
	}
	return levels
}
