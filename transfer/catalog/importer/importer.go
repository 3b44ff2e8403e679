// Package importer finds the files that will be added to the catalog: below a folder of this
// machine, in a table, or at a storage service.
//
// Importers return sequences, so that any number of files can be imported without holding them in
// memory. A sequence ends after the first error that it yields.
package importer

import (
	"context"
	"iter"
	"path"
	"strings"
	"sync"

	"weir/transfer/catalog"
)

// Options control the search for files and the names that they get.
type Options struct {
	// Dataset is the prefix of the files' paths below the folder in their names: with /store/run1,
	// the file a/f1.root gets the name /store/run1/a/f1.root. The block of a file is the first
	// folder of that path, "a", or "" if the path has no folder.
	Dataset string
	// Wrong is called with each file or folder that had to be left out, in the goroutine that reads
	// the sequence. If it is nil, the first of them ends the sequence.
	Wrong func(path string, err error)
	// Match reports whether a file is used, by its path below the folder; nil selects all files.
	Match func(path string) bool
	// Workers is the number of files that are processed at once; 0 selects a suitable number.
	Workers int
}

// ours is the prefix of the folders that contain incomplete copies at a site.
const ours = ".weir"

// matches reports whether a file is used.
func (o Options) matches(below string) bool { return o.Match == nil || o.Match(below) }

// entry returns an entry with the name of a file, from its path below the folder, and with its path
// in the site.
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

// parallel runs find in one goroutine and look in several workers, each of which processes one file
// at a time. The two functions may leave out a file by reporting it with an error. An error that
// find returns ends the sequence.
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

// emit yields results until the first error that ends the sequence. It reports whether it reached
// the end of the results or of ctx.
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
