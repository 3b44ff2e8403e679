// Package state keeps the state of a coordinator: a folder with keys and tokens, and the database.
// It opens the folder and the database for one coordinator at a time, backs them up, restores them
// and moves the database.
package state

import (
	"context"
	"embed"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"

	"weir/internal/db"
	"weir/internal/lock"
	"weir/transfer/access"
	"weir/transfer/catalog/store"
	"weir/transfer/queue"
)

// Files in the state folder, readable by this user only.
const (
	lockFile  = "lock"    // held by the coordinator that uses the folder
	TableFile = "weir.db" // the database, unless another is configured
)

// A Config describes the state of a coordinator.
type Config struct {
	Dir     string                         // the state folder, created if it does not exist
	DB      string                         // postgres://..., or a file; "": in Dir
	Standby bool                           // Open waits while another coordinator has the database, which is PostgreSQL's
	Seen    func(query string, args []any) // see db.Options; nil: queries are not observed
	Log     *slog.Logger
}

// A State is the open state of a coordinator. No other process uses it. The caller closes it.
type State struct {
	DB      *db.DB
	Claim   *db.Claim   // of the database
	Box     *access.Box // encrypts the secrets in the database
	Catalog *store.Store
	Queue   *queue.Queue

	conf   Config
	locked *os.File
}

// Open opens the state, and creates missing files and tables.
func Open(ctx context.Context, conf Config, o queue.Options) (_ *State, err error) {
	s := &State{conf: conf}
	if err = s.openFolder(); err == nil {
		err = s.openDB(ctx, o)
	}
	if err != nil {
		return nil, errors.Join(err, s.Close())
	}
	return s, nil
}

// openFolder locks the state folder and reads its key.
func (s *State) openFolder() (err error) {
	dir := s.conf.Dir
	if dir == "" {
		return errors.New("the state folder is required")
	}
	if err = os.MkdirAll(dir, 0o700); err != nil {
		return err
	}
	_, err = os.Stat(filepath.Join(dir, access.SecretsFile))
	_, missing := os.Stat(filepath.Join(dir, TableFile))
	if err == nil && errors.Is(missing, fs.ErrNotExist) && s.conf.DB == "" {
		s.conf.Log.Warn("the state folder has keys but no database: creating an empty one", "file", filepath.Join(dir, TableFile))
	}
	if s.locked, err = os.OpenFile(filepath.Join(dir, lockFile), os.O_CREATE|os.O_RDWR, 0o600); err != nil {
		return err
	}
	if err = lock.Alone(s.locked); errors.Is(err, lock.ErrTaken) {
		return fmt.Errorf("%s is in use by another coordinator", dir)
	}
	s.Box, err = access.NewBox(filepath.Join(dir, access.SecretsFile))
	return err
}

// openDB opens and claims the database, and brings its tables up to date.
func (s *State) openDB(ctx context.Context, o queue.Options) (err error) {
	if s.DB, err = db.Open(ctx, address(s.conf.Dir, s.conf.DB), db.Options{Seen: s.conf.Seen}); err != nil {
		return err
	}
	if err = s.claim(ctx); err != nil {
		return err
	}
	s.Catalog, s.Queue, err = migrate(ctx, s.DB, o)
	return err
}

// address returns the address of a database; "" selects the database in the state folder.
func address(dir, configured string) string {
	if configured == "" {
		return "sqlite:" + filepath.Join(dir, TableFile)
	}
	return configured
}

// Close releases the database and the folder.
func (s *State) Close() error {
	var errs []error
	if s.Claim != nil {
		errs = append(errs, s.Claim.Close())
	}
	if s.DB != nil {
		errs = append(errs, s.DB.Close())
	}
	if s.locked != nil {
		errs = append(errs, lock.Close(s.locked))
	}
	return errors.Join(errs...)
}

//go:embed schema/*.sql
var tables embed.FS

// migrate creates the tables of a coordinator or brings them up to date.
func migrate(ctx context.Context, d *db.DB, o queue.Options) (s *store.Store, q *queue.Queue, err error) {
	files, err := fs.Sub(tables, "schema")
	if err != nil {
		return nil, nil, err
	}
	if s, err = store.Open(ctx, d); err != nil {
		return nil, nil, err
	}
	if q, err = queue.Open(ctx, d, o); err != nil {
		return nil, nil, err
	}
	return s, q, d.Migrate(ctx, "coordinator", files)
}

// processName describes this process to other processes that try to claim its database.
func processName() string {
	host, err := os.Hostname()
	if err != nil {
		host = "an unknown host"
	}
	return fmt.Sprintf("the weir coordinator of %.24s, process %d", host, os.Getpid())
}
