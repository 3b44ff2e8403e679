package db

import (
	"context"
	"database/sql"
	"errors"
	"iter"
	"strings"
)

// A liteConn is a connection with the statements that were prepared on it.
type liteConn struct {
	conn  *sql.Conn
	texts *texts
	kept  map[string]*sql.Stmt
}

func (c *liteConn) statement(ctx context.Context, query string) (*sql.Stmt, error) {
	if s := c.kept[query]; s != nil {
		return s, nil
	}
	if len(c.kept) >= manyTexts {
		for _, s := range c.kept {
			_ = s.Close() // it is not in use
		}
		clear(c.kept)
	}
	s, err := c.conn.PrepareContext(ctx, query)
	if err == nil {
		c.kept[query] = s
	}
	return s, err
}

func (c *liteConn) exec(ctx context.Context, query string, args []any) (int64, error) {
	s, err := c.statement(ctx, query)
	if err != nil {
		return 0, liteError(err)
	}
	r, err := s.ExecContext(ctx, args...)
	if err != nil {
		return 0, liteError(err)
	}
	return r.RowsAffected()
}

func (c *liteConn) query(ctx context.Context, query string, args []any) (rowSource, error) {
	s, err := c.statement(ctx, query)
	if err != nil {
		return nil, liteError(err)
	}
	rows, err := s.QueryContext(ctx, args...)
	if err != nil {
		return nil, liteError(err)
	}
	return liteRows{rows}, nil
}

type liteRows struct{ *sql.Rows }

func (r liteRows) done() error { return liteError(errors.Join(r.Err(), r.Close())) }

func (c *liteConn) many(ctx context.Context, query string, rows iter.Seq[[]any]) (n int64, err error) {
	for row := range rows {
		one, err := c.exec(ctx, query, row)
		if err != nil {
			return n, err
		}
		n += one
	}
	return n, nil
}

// together is the number of rows that one statement inserts.
const together = 50

func (c *liteConn) bulk(ctx context.Context, table string, columns []string, rows iter.Seq[[]any]) (n int64, err error) {
	into := "INSERT INTO " + table + " (" + strings.Join(columns, ", ") + ") VALUES "
	values := "(?" + strings.Repeat(", ?", len(columns)-1) + ")"
	full := into + values + strings.Repeat(", "+values, together-1)
	args := make([]any, 0, together*len(columns))
	for row := range rows {
		if args = append(args, row...); len(args) < cap(args) {
			continue
		}
		if _, err := c.exec(ctx, full, args); err != nil {
			return n, err
		}
		n += together
		args = args[:0]
	}
	for ; len(args) > 0; args = args[len(columns):] {
		if _, err := c.exec(ctx, into+values, args[:len(columns)]); err != nil {
			return n, err
		}
		n++
	}
	return n, nil
}

func (c *liteConn) close() error {
	var errs []error
	for _, s := range c.kept {
		errs = append(errs, s.Close())
	}
	return errors.Join(append(errs, c.conn.Close())...)
}

// An uninterrupted is the writer's connection. SQLite rolls back the whole transaction when a
// statement that writes is interrupted, including the parts of other callers: so the end of a
// context is only detected between statements.
type uninterrupted struct{ *liteConn }

func (u uninterrupted) exec(ctx context.Context, query string, args []any) (int64, error) {
	return u.liteConn.exec(context.WithoutCancel(ctx), query, args)
}

func (u uninterrupted) query(ctx context.Context, query string, args []any) (rowSource, error) {
	return u.liteConn.query(context.WithoutCancel(ctx), query, args)
}

func (u uninterrupted) many(ctx context.Context, query string, rows iter.Seq[[]any]) (int64, error) {
	return u.liteConn.many(context.WithoutCancel(ctx), query, rows)
}

func (u uninterrupted) bulk(ctx context.Context, table string, columns []string, rows iter.Seq[[]any]) (int64, error) {
	return u.liteConn.bulk(context.WithoutCancel(ctx), table, columns, rows)
}
