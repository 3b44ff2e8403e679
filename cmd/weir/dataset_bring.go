package main

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"net/url"
	"os"
	"slices"

	"weir/catalog"
	"weir/catalog/importer"
	"weir/storage"
	"weir/storage/all"
	"weir/transfer"
)

// bring adds the files that this command has found itself.
func (f *addFlags) bring(ctx context.Context, d *desk, note func(found)) (n found, err error) {
	wrong := func(path string, err error) {
		if len(n.problems) < mostProblems {
			n.problems = append(n.problems, fmt.Sprintf("%s: %v", path, err))
		}
	}
	entries, release, err := f.entries(ctx, importer.Options{Dataset: f.name, Wrong: wrong})
	if err != nil {
		return n, err
	}
	defer release()
	batch := transfer.NewFiles{Dataset: f.name, Site: f.site}
	if f.local != "" {
		host, _ := os.Hostname() // without a name it is said without one
		batch.By = "weir dataset add on " + host
	}
	send := func() error {
		if len(batch.Files) == 0 {
			return nil
		}
		if _, err := again(ctx, true, func() (catalog.Dataset, error) { return d.AddFiles(ctx, batch) }); err != nil {
			return err
		}
		for _, one := range batch.Files {
			n.files, n.bytes = n.files+1, n.bytes+one.Size
		}
		batch.Files = nil
		note(n)
		return nil
	}
	for e, err := range entries {
		if err != nil {
			return n, err
		}
		batch.Files = append(batch.Files, transfer.NewFile{File: e.File, Path: e.Path})
		if len(batch.Files) == transfer.MaxNewFiles {
			if err := send(); err != nil {
				return n, err
			}
		}
	}
	return n, send()
}

// mostProblems is how many files that were left out are told of.
const mostProblems = 100

// entries opens what tells the files. The caller releases it.
func (f *addFlags) entries(ctx context.Context, o importer.Options) (all iter.Seq2[catalog.Entry, error], release func(), err error) {
	switch {
	case f.local != "":
		root, err := os.OpenRoot(f.local)
		if err != nil {
			return nil, nil, fmt.Errorf("--local: %w", err)
		}
		return importer.Folder(ctx, root, f.path, o), func() { _ = root.Close() }, nil // only read
	case f.csv != "":
		table, err := os.Open(f.csv)
		if err != nil {
			return nil, nil, fmt.Errorf("--csv: %w", err)
		}
		return named(f.csv, importer.CSV(table)), func() { _ = table.Close() }, nil // only read
	}
	service, err := f.service(ctx)
	if err != nil {
		return nil, nil, fmt.Errorf("--list: %w", err)
	}
	return importer.Listing(ctx, importer.Remote{Service: service, Folder: f.path, Sums: f.sums}, o), func() { _ = service.Close() }, nil // nothing was written
}

// named puts the name of a file before its errors.
func named(path string, of iter.Seq2[catalog.Entry, error]) iter.Seq2[catalog.Entry, error] {
	return func(yield func(catalog.Entry, error) bool) {
		for e, err := range of {
			if err != nil {
				err = fmt.Errorf("%s: %w", path, err)
			}
			if !yield(e, err) {
				return
			}
		}
	}
}

// service opens the storage service that lists the files.
func (f *addFlags) service(ctx context.Context) (storage.Service, error) {
	u, err := url.Parse(f.list)
	if err != nil {
		return nil, err
	}
	drivers := all.Drivers()
	i := slices.IndexFunc(drivers, func(d storage.Driver) bool { return slices.Contains(d.Schemes, u.Scheme) })
	if i < 0 || u.Host == "" && u.Path == "" {
		return nil, errors.New("name a storage service, such as davs://se.example.org/data or root://se.example.org//data")
	}
	auth := storage.Auth{}
	if f.secret != "" {
		auth = storage.Auth{Method: "token", TokenFile: f.secret}
	}
	return open(ctx, drivers[i], u, auth)
}
