package db

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"time"
)

// A Tx is a transaction. It is used by one goroutine, and only while the function it was given to
// runs. After a statement has failed all later statements fail as well, and the transaction is
// rolled back regardless of the function's result: the same in both dialects. Statements that may
// fail because of an existing key need ON CONFLICT.
type Tx struct {
	ctx    context.Context
	conn   conn
	texts  *texts
	failed error
	open   *Rows // being read
}

// A conn runs the statements of a transaction.
type conn interface {
	exec(ctx context.Context, query string, args []any) (int64, error)
	query(ctx context.Context, query string, args []any) (rowSource, error)
	// bulk inserts rows; many runs one statement for each of rows.
	bulk(ctx context.Context, table string, columns []string, rows iter.Seq[[]any]) (int64, error)
	many(ctx context.Context, query string, rows iter.Seq[[]any]) (int64, error)
}

// Context returns the context that the transaction was begun with.
func (t *Tx) Context() context.Context { return t.ctx }

// Dialect returns the dialect of the database.
func (t *Tx) Dialect() Dialect { return t.texts.dialect }

// Exec runs a statement and returns the number of rows that it changed.
func (t *Tx) Exec(query string, args ...any) (int64, error) {
	if err := t.ready(query); err != nil {
		return 0, err
	}
	args, err := t.values(args)
	if err != nil {
		return 0, t.fail(query, err)
	}
	t.see(query, args)
	n, err := t.conn.exec(t.ctx, t.texts.of(query), args)
	return n, t.fail(query, err)
}

// Many runs a statement once for each of rows, and returns the number of changed rows. PostgreSQL
// gets many at a time. The caller may reuse a row after yielding it.
func (t *Tx) Many(query string, rows iter.Seq[[]any]) (int64, error) {
	if err := t.ready(query); err != nil {
		return 0, err
	}
	var bad error
	if t.texts.seen != nil {
		rows = t.seeing(query, rows)
	}
	n, err := t.conn.many(t.ctx, t.texts.of(query), t.prepared(rows, &bad))
	return n, t.fail(query, errors.Join(bad, err))
}

// Bulk inserts rows into a table and returns their number: with COPY in PostgreSQL, many a
// statement in SQLite. No row may be there already. The caller may reuse a row after yielding it.
func (t *Tx) Bulk(table string, columns []string, rows iter.Seq[[]any]) (int64, error) {
	if err := t.ready(table); err != nil {
		return 0, err
	}
	var bad error
	n, err := t.conn.bulk(t.ctx, table, columns, t.prepared(rows, &bad))
	return n, t.fail("insert into "+table, errors.Join(bad, err))
}

// Query runs a statement that returns rows. They are read to their end, or
// closed, before the transaction's next statement.
func (t *Tx) Query(query string, args ...any) (*Rows, error) {
	if err := t.ready(query); err != nil {
		return nil, err
	}
	args, err := t.values(args)
	if err != nil {
		return nil, t.fail(query, err)
	}
	t.see(query, args)
	source, err := t.conn.query(t.ctx, t.texts.of(query), args)
	if err != nil {
		return nil, t.fail(query, err)
	}
	t.open = &Rows{tx: t, source: source, query: query}
	return t.open, nil
}

// Row runs a statement that returns one row; its Scan returns ErrNone if there is no row, which
// does not end the transaction.
func (t *Tx) Row(query string, args ...any) Row {
	rows, err := t.Query(query, args...)
	return Row{rows, err}
}

// run runs f in the transaction and returns the reason if it must not be committed.
func (t *Tx) run(f func(*Tx) error) error {
	defer func() {
		if t.open != nil {
			_ = t.open.Close() // f did not want more of them
		}
	}()
	err := f(t)
	if t.failed != nil {
		return t.failed
	}
	return err
}

// see passes a statement to Options.Seen.
func (t *Tx) see(query string, args []any) {
	if t.texts.seen != nil {
		t.texts.seen(query, args)
	}
}

// seeing yields rows and passes each to Options.Seen.
func (t *Tx) seeing(query string, rows iter.Seq[[]any]) iter.Seq[[]any] {
	return func(yield func([]any) bool) {
		for row := range rows {
			t.see(query, row)
			if !yield(row) {
				return
			}
		}
	}
}

// ready reports whether a statement can be run now.
func (t *Tx) ready(query string) error {
	if t.failed != nil {
		return fmt.Errorf("an earlier statement of the transaction failed: %w", t.failed)
	}
	if t.open != nil {
		return t.fail(query, errors.New("the rows of the query before have not been read to their end"))
	}
	return t.ctx.Err()
}

// fail remembers why a statement failed.
func (t *Tx) fail(query string, err error) error {
	if err == nil {
		return nil
	}
	if t.ctx.Err() != nil {
		err = t.ctx.Err()
	}
	if t.failed == nil {
		t.failed = fmt.Errorf("%w (%s)", err, brief(query))
	}
	return t.failed
}

// brief returns the beginning of a query, for errors.
func brief(query string) string {
	var words []rune
	space := false
	for _, r := range query {
		if r == '\n' || r == '\t' || r == ' ' {
			space = len(words) > 0
			continue
		}
		if space {
			words = append(words, ' ')
			space = false
		}
		if words = append(words, r); len(words) > 60 {
			return string(words) + "..."
		}
	}
	return string(words)
}

// prepared yields rows whose values the drivers take.
func (t *Tx) prepared(rows iter.Seq[[]any], bad *error) iter.Seq[[]any] {
	return func(yield func([]any) bool) {
		for row := range rows {
			row, err := t.values(row)
			if err != nil {
				*bad = err
				return
			}
			if !yield(row) {
				return
			}
		}
	}
}

// values converts values that the drivers do not accept, or that they store differently.
func (t *Tx) values(args []any) ([]any, error) {
	made := args
	for i, a := range args {
		var v any
		switch a := a.(type) {
		case time.Time:
			v = Nanos(a)
		case []int64:
			v = t.list(a, len(a))
		case []string:
			v = t.list(a, len(a))
		default:
			continue
		}
		if err, bad := v.(error); bad {
			return nil, err
		}
		if &made[0] == &args[0] {
			made = append([]any(nil), args...)
		}
		made[i] = v
	}
	return made, nil
}

// list returns a list for {{in}}.
func (t *Tx) list(a any, n int) any {
	if t.texts.dialect == PostgreSQL {
		return a
	}
	if n == 0 {
		return "[]"
	}
	text, err := json.Marshal(a)
	if err != nil {
		return err
	}
	return string(text)
}
