// Package store stores the catalog in a database: sites, and datasets of blocks of files with their
// replicas. Package catalog/importer finds the files to register.
//
// The sums of datasets and blocks, and the number of files of a dataset at a site, are updated in
// the same transaction as the rows that they sum up. Callers that write replicas in their own
// transaction use UpsertReplicas and MarkBad.
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
	// ErrNotFound is the error for a site, dataset or file that does not exist.
	ErrNotFound = errors.New("not found")
	// ErrExists is the error for a name that is taken.
	ErrExists = errors.New("it exists already")
)

// A Store is the catalog. Its methods may be used by many goroutines at once. Their errors are
// ErrNotFound, ErrExists, catalog.ErrBad, a *ConflictError, or errors of the database, such as
// db.ErrBusy.
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

// page is the maximum number of rows that are changed in one transaction: other transactions write
// between them.
const page = 5000

// one returns an error that wraps ErrNotFound if a statement changed no site.
func one(n int64, err error, name string) error {
	if err == nil && n == 0 {
		return missing("site", name)
	}
	return err
}

func missing(what, name string) error {
	return fmt.Errorf("there is no %s %q: %w", what, name, ErrNotFound)
}

// limit returns the maximum number of rows of a list for a requested number n.
func limit(n int) int {
	if n <= 0 {
		return 1000
	}
	return min(n, 10_000)
}
