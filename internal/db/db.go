// Package db stores tables in SQLite or PostgreSQL, with one SQL text for the two databases.
//
// # Writing
//
// Write runs a function in a transaction and returns when it is committed. In SQLite there is one
// writer: the writes of many goroutines are run one after the other and committed together, so that
// a hundred of them wait for one fsync and "database is locked" never occurs. In PostgreSQL each
// Write is a transaction of its own at READ COMMITTED, tried again after a deadlock, a failed
// serialization or a lost connection as long as it cannot have been committed: so f must be
// repeatable, and must lock the rows it decides upon ({{lock}}, below).
//
// # Durability
//
// When Write has returned nil, its changes survive a kill -9 of this process at any moment: they
// have been handed to the operating system. They survive the loss of power as well, as far as disks
// keep the data that they have confirmed: SQLite runs with synchronous=FULL, which syncs its log at
// each commit. NORMAL would be faster and never damage the file, but a loss of power would take
// back the last commits: a user might hold the number of a request that does not exist. Commits are
// shared by all waiting writers, so that FULL costs little under load. PostgreSQL keeps committed
// data as well, as long as its fsync is on; synchronous_commit=off is overruled.
//
// # One SQL text
//
// Values stand as ? in both dialects. Text in double braces is replaced:
//
//	{{id}}     type of a column that counts itself: BIGINT and primary key, never given twice
//	{{key}}    type of a BIGINT that is a primary key, and whose numbers the program gives:
//	           in SQLite the row itself, where BIGINT PRIMARY KEY would be an index beside it
//	{{text}}   type of a text that compares byte by byte in both
//	{{blob}}   type of bytes
//	{{keyed}}  behind a table's definition: kept in the order of its key (SQLite)
//	{{lock}}   FOR UPDATE, nothing in SQLite
//	{{share}}  FOR KEY SHARE, nothing in SQLite: the rows stay, though others may change them
//	{{skip}}   FOR UPDATE SKIP LOCKED, nothing in SQLite
//	{{in}}     a condition on a list: "id {{in}}" has one value, a []int64 or []string
//
// Other types: BIGINT, BOOLEAN, DOUBLE PRECISION. Times are BIGINT: a time.Time
// among the values is stored as nanoseconds since 1970 (the zero time as 0),
// and When reads it back. CAST(sum(n) AS BIGINT) makes PostgreSQL's sums
// integers. Columns are best NOT NULL. Upserts are INSERT ... ON CONFLICT.
// Queries should be constants: each is prepared once and kept.
package db

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"slices"
	"strings"
)

var (
	// ErrText means that PostgreSQL does not accept a text: it has a NUL character, or is not
	// UTF-8.
	ErrText = errors.New("text with a NUL character, or that is not UTF-8")
	// ErrBusy means that the database cannot serve now, though it may later: it is locked, full,
	// restarting or cannot be reached. Nothing was written.
	ErrBusy = errors.New("the database cannot serve now")
	// ErrUnsure means, in addition to ErrBusy, that the connection was lost during a commit: the
	// transaction may have been committed or not.
	ErrUnsure = errors.New("the connection was lost while it committed")
	// ErrTaken means that another process has the database's file open for writing.
	ErrTaken = errors.New("the database is in use")
	// ErrDamaged means that the file cannot be read as a database.
	ErrDamaged = errors.New("its file is damaged, or is no database of SQLite: put a backup of it in its place, " +
		"or move it away to begin with an empty one")
	// ErrExists means that a row with this key exists already.
	ErrExists = errors.New("it exists already")
	// ErrNone means that Row found no row.
	ErrNone = errors.New("no such row")
	// ErrClosed means that the database was closed.
	ErrClosed = errors.New("the database is closed")
)

// Options configure how a database is opened; the zero value is a good default.
type Options struct {
	// Conns is the number of transactions that run at once: of readers in SQLite, of all in
	// PostgreSQL. 0 means 4 in SQLite, and in PostgreSQL pool_max_conns of the address, or else 16.
	Conns int
	// ReadOnly opens for reading: Write fails, and in SQLite another process
	// may be writing.
	ReadOnly bool
	// Seen is called before each statement with its text, in the SQL of this package, and its values, from the goroutine that runs
	// the statement; it may be nil. Tests examine the plans of these statements.
	Seen func(query string, args []any)
}

// A DB is an open database. Its methods may be used by many goroutines at once.
type DB struct {
	backend
	dialect Dialect
	url     string
}

// A backend runs transactions.
type backend interface {
	write(ctx context.Context, f func(*Tx) error) error
	read(ctx context.Context, f func(*Tx) error) error
	close() error
}

// Open opens the database at url: postgres://..., sqlite:PATH, or a path, whose
// file is made if it is missing. Its error is ErrTaken if another process
// writes to the file, ErrBusy if PostgreSQL cannot be reached now. No error
// names a password. The caller closes the database.
func Open(ctx context.Context, url string, o Options) (*DB, error) {
	d := &DB{url: Public(url)}
	var err error
	switch scheme, rest, found := strings.Cut(url, ":"); {
	case found && (scheme == "postgres" || scheme == "postgresql"):
		d.dialect = PostgreSQL
		d.backend, err = openPG(ctx, url, o)
	case found && scheme == "sqlite":
		d.dialect = SQLite
		d.backend, err = openLite(ctx, rest, o)
	default:
		if err := CheckAddress(url); err != nil {
			return nil, fmt.Errorf("database %s: %w", d.url, err)
		}
		d.dialect = SQLite
		d.backend, err = openLite(ctx, url, o)
	}
	if err != nil {
		return nil, fmt.Errorf("database %s: %w", d.url, err)
	}
	return d, nil
}

// CheckAddress returns an error if Open does not know the kind of database of an address.
func CheckAddress(address string) error {
	scheme, _, found := strings.Cut(address, "://")
	if found && !slices.Contains([]string{"postgres", "postgresql", "sqlite"}, scheme) {
		return errors.New("no such kind of database: use sqlite:PATH, or postgres://USER@HOST/NAME")
	}
	return nil
}

// Close waits for running transactions and closes the database. A second Close
// does nothing.
func (d *DB) Close() error { return d.close() }

// Dialect returns the dialect of the database.
func (d *DB) Dialect() Dialect { return d.dialect }

// String returns the database's address without its password.
func (d *DB) String() string { return d.url }

// Write runs f in a transaction that writes, and returns when it is committed.
// If f returns an error nothing of it is written, and Write returns it. f must
// be repeatable, must not call Write or Read, and should be short: in SQLite all
// other writers wait for it. The end of ctx ends f's next statement, but not a
// commit that has begun.
func (d *DB) Write(ctx context.Context, f func(*Tx) error) error { return d.write(ctx, f) }

// Read runs f in a transaction that reads one state of the database from its first statement to its
// last, and waits for no writer. f must be repeatable.
func (d *DB) Read(ctx context.Context, f func(*Tx) error) error { return d.read(ctx, f) }

// Exec runs a statement in a transaction of its own.
func (d *DB) Exec(ctx context.Context, query string, args ...any) error {
	return d.write(ctx, func(t *Tx) error {
		_, err := t.Exec(query, args...)
		return err
	})
}

// Many runs a statement once for each of rows, in a transaction of its own.
func (d *DB) Many(ctx context.Context, query string, rows iter.Seq[[]any]) error {
	return d.write(ctx, func(t *Tx) error {
		_, err := t.Many(query, rows)
		return err
	})
}

// Select calls All in a transaction of its own.
func Select[T any](ctx context.Context, d *DB, scan func(*Rows) (T, error), query string, args ...any) (all []T, err error) {
	err = d.read(ctx, func(t *Tx) error {
		all, err = All(t, scan, query, args...)
		return err
	})
	return all, err
}
