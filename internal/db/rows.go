package db

import (
	"context"
	"fmt"
	"iter"
	"time"
)

// A rowSource is the common part of the rows of all drivers.
type rowSource interface {
	Next() bool
	Scan(dest ...any) error
	done() error // closes, and returns why the rows ended
}

// Rows are the rows of a query.
type Rows struct {
	tx     *Tx
	source rowSource
	query  string
	err    error
	closed bool
}

// Next goes to the next row. At the end, or after an error, it closes the rows
// and returns false.
func (r *Rows) Next() bool {
	if r.closed {
		return false
	}
	if r.source.Next() {
		return true
	}
	_ = r.Close() // Err has it
	return false
}

// Scan reads the columns of the row into the variables that dest points to: int64 and other
// integers, string, bool, float64, []byte, pointers to these for columns that may be NULL, and
// times through When.
func (r *Rows) Scan(dest ...any) error {
	if err := r.source.Scan(dest...); err != nil {
		return r.tx.fail(r.query, err)
	}
	return nil
}

// Close ends the rows, so that the transaction can continue. It returns the result of Err; closing
// twice does nothing.
func (r *Rows) Close() error {
	if !r.closed {
		r.closed = true
		r.tx.open = nil
		r.err = r.tx.fail(r.query, r.source.done())
	}
	return r.err
}

// Err returns why the rows ended early, nil at their true end.
func (r *Rows) Err() error { return r.err }

// A Row is the answer to a query of one row.
type Row struct {
	rows *Rows
	err  error
}

// Scan calls Rows.Scan for the first row. It returns ErrNone if there is no row.
func (r Row) Scan(dest ...any) error {
	if r.err != nil {
		return r.err
	}
	if !r.rows.Next() {
		if err := r.rows.Err(); err != nil {
			return err
		}
		return ErrNone
	}
	err := r.rows.Scan(dest...)
	if closeErr := r.rows.Close(); err == nil {
		err = closeErr
	}
	return err
}

// All runs a query and returns the results of scan for its rows, one at a time.
func All[T any](t *Tx, scan func(*Rows) (T, error), query string, args ...any) ([]T, error) {
	rows, err := t.Query(query, args...)
	if err != nil {
		return nil, err
	}
	var all []T
	for rows.Next() {
		one, err := scan(rows)
		if err != nil {
			_ = rows.Close() // the first error counts
			return nil, err
		}
		all = append(all, one)
	}
	return all, rows.Err()
}

// Value scans rows of one column.
func Value[T any](r *Rows) (v T, err error) {
	err = r.Scan(&v)
	return v, err
}

// Column works like All for queries of one column.
func Column[T any](t *Tx, query string, args ...any) ([]T, error) {
	return All(t, Value[T], query, args...)
}

// Each yields the row of each element of a list, for Many and Bulk.
func Each[T any](list []T, row func(T) []any) iter.Seq[[]any] {
	return func(yield func([]any) bool) {
		for _, one := range list {
			if !yield(row(one)) {
				return
			}
		}
	}
}

// Nanos returns the stored form of a time: nanoseconds since 1970, and 0 for the zero time. Values
// of type time.Time are stored so.
func Nanos(t time.Time) int64 {
	if t.IsZero() {
		return 0
	}
	return t.UnixNano()
}

// When returns a destination for Scan that reads a stored time into t, in UTC.
func When(t *time.Time) *Stamp { return (*Stamp)(t) }

// A Stamp reads a stored time.
type Stamp time.Time

// Scan takes the number of nanoseconds; 0 and NULL are the zero time.
func (s *Stamp) Scan(v any) error {
	switch n := v.(type) {
	case nil:
		*s = Stamp{}
	case int64:
		*s = Stamp{}
		if n != 0 {
			*s = Stamp(time.Unix(0, n).UTC())
		}
	default:
		return fmt.Errorf("a time is a number of nanoseconds, not %T", v)
	}
	return nil
}

// Get runs f in a transaction that reads, see DB.Read, and returns its result.
func Get[T any](ctx context.Context, d *DB, f func(*Tx) (T, error)) (v T, err error) {
	err = d.Read(ctx, func(t *Tx) (err error) {
		v, err = f(t)
		return err
	})
	return v, err
}
