// Package store keeps the catalog in a database: sites, and datasets of blocks
// of files with their replicas. Package catalog/importer brings what is
// registered.
//
// Sums of datasets and blocks, and how many files of a dataset a site has, are
// kept in the same transaction as what they sum up. Who writes replicas in a
// transaction of his own does that with Place and Spoil.
package store

import (
	"context"
	"embed"
	"errors"
	"fmt"
	"io/fs"

	"weir/internal/db"
)

//go:embed schema/*.sql
var schema embed.FS

var (
	// ErrNotFound tells that there is no such site, dataset or file.
	ErrNotFound = errors.New("not found")
	// ErrExists tells that there is one already.
	ErrExists = errors.New("it exists already")
)

// A Store is the catalog. Its methods may be used by many goroutines at once.
// Their errors are ErrNotFound, ErrExists, catalog.ErrBad, a
// *ConflictError, or those of
// the database, such as db.ErrBusy.
type Store struct{ db *db.DB }

// Open brings the catalog's tables in d up to date. The caller keeps d open for
// as long as the store is used, and closes it.
func Open(ctx context.Context, d *db.DB) (*Store, error) {
	files, err := fs.Sub(schema, "schema")
	if err == nil {
		err = d.Migrate(ctx, "catalog", files)
	}
	if err != nil {
		return nil, err
	}
	return &Store{d}, nil
}

// page is how many rows are changed in one transaction: others write between.
const page = 5000

// one returns an error around ErrNotFound if a statement changed no site.
func one(n int64, err error, name string) error {
	if err == nil && n == 0 {
		return missing("site", name)
	}
	return err
}

func missing(what, name string) error {
	return fmt.Errorf("there is no %s %q: %w", what, name, ErrNotFound)
}

// limit is how many rows of a list are returned for an n that was asked for.
func limit(n int) int {
	if n <= 0 {
		return 1000
	}
	return min(n, 10_000)
}
