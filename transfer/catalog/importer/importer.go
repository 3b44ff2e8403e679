// Package importer finds files that are to become part of the catalog: below a
// folder of this machine, in a table, or at a storage service.
//
// Importers are sequences, so that any number of files is brought without being
// held in memory. A sequence ends after the first error that it yields.
package importer

import (
	"context"
	"iter"
	"path"
	"strings"
	"sync"

	"weir/transfer/catalog"
)

// Options say how files are looked for and what becomes of their names.
type Options struct {
	// Dataset is put before the files' paths below the folder to make their
	// names: /store/run1 makes /store/run1/a/f1.root of a/f1.root. A file's
	// block is the first folder on that path, "a", or "" if there is none.
	Dataset string
	// Wrong is called with each file or folder that had to be left out; nil ends the
	// sequence with the first of them. It is called by who reads the sequence.
	Wrong func(path string, err error)
	// Match reports whether a file is used, by its path below the folder; nil: all are.
	Match func(path string) bool
	// Workers is how many files are looked at at once; 0 is a good number.
	Workers int
}

// ours is where files lie at a site that are still being copied.
const ours = ".weir"

// matches reports whether a file is used.
func (o Options) matches(below string) bool { return o.Match == nil || o.Match(below) }

// entry names a file from its path below the folder, and in the site.
func (o Options) entry(below, inSite string) catalog.Entry {
	e := catalog.Entry{Path: inSite}
	e.Name = strings.TrimSuffix(o.Dataset, "/") + "/" + below
	if block, _, nested := strings.Cut(below, "/"); nested {
		e.Block = block
	}
	return e
}

// A result is the outcome of one file or folder.
type result struct {
	path  string
	entry catalog.Entry
	err   error
}

// parallel has find find files and several workers look at them, each at one at
// a time. Both may leave out what they tell with an error; find's own error ends
// the sequence.
func parallel[T any](ctx context.Context, o Options,
	find func(ctx context.Context, found func(T) bool, wrong func(string, error) bool) error,
	look func(ctx context.Context, worker int, one T) result) iter.Seq2[catalog.Entry, error] {
	return func(yield func(catalog.Entry, error) bool) {
		asked := ctx
		ctx, cancel := context.WithCancel(asked)
		defer cancel()
		todo, results := make(chan T), make(chan result, o.Workers)
		var workers sync.WaitGroup
		give := func(r result) bool {
			select {
			case results <- r:
				return true
			case <-ctx.Done():
				return false
			}
		}
		workers.Go(func() {
			defer close(todo)
			err := find(ctx, func(one T) bool {
				select {
				case todo <- one:
					return true
				case <-ctx.Done():
					return false
				}
			}, func(path string, err error) bool { return give(result{path: path, err: err}) })
			if err != nil {
				give(result{err: err})
			}
		})
		for i := range o.Workers {
			workers.Go(func() {
				for one := range todo {
					give(look(ctx, i, one))
				}
			})
		}
		go func() { workers.Wait(); close(results) }()
		if o.emit(asked, results, yield) && asked.Err() != nil {
			yield(catalog.Entry{}, asked.Err())
		}
		cancel()
		for range results { // until all have ended
		}
	}
}

// emit yields results until the first error that is not left out. It returns
// whether it came to the end of all, or of ctx.
func (o Options) emit(ctx context.Context, results <-chan result, yield func(catalog.Entry, error) bool) bool {
	for r := range results {
		if ctx.Err() != nil {
			return true
		}
		if r.err == nil {
			r.entry, r.err = catalog.CheckEntry(r.entry)
		}
		switch {
		case r.err == nil:
			if !yield(r.entry, nil) {
				return false
			}
		case r.path == "" || o.Wrong == nil:
			yield(catalog.Entry{}, r.err)
			return false
		default:
			o.Wrong(r.path, r.err)
		}
	}
	return true
}

// below returns the path of a file in a folder; "" is the top.
func below(folder, name string) string {
	if folder == "" {
		return name
	}
	return path.Join(folder, name)
}
