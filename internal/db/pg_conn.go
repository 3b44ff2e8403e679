package db

import (
	"context"
	"iter"
	"slices"

	"github.com/jackc/pgx/v5"
)

// A pgConn is a transaction's connection.
type pgConn struct{ tx pgx.Tx }

func (c pgConn) exec(ctx context.Context, query string, args []any) (int64, error) {
	tag, err := c.tx.Exec(ctx, query, args...)
	return tag.RowsAffected(), pgError(err)
}

func (c pgConn) query(ctx context.Context, query string, args []any) (rowSource, error) {
	rows, err := c.tx.Query(ctx, query, args...)
	if err != nil {
		return nil, pgError(err)
	}
	return pgRows{rows}, nil
}

type pgRows struct{ pgx.Rows }

func (r pgRows) done() error {
	r.Close()
	return pgError(r.Err())
}

// batch is the number of statements that are sent before their responses are read.
const batch = 500

func (c pgConn) many(ctx context.Context, query string, rows iter.Seq[[]any]) (n int64, err error) {
	var b pgx.Batch
	for row := range rows {
		b.Queue(query, slices.Clone(row)...)
		if b.Len() < batch {
			continue
		}
		one, err := c.send(ctx, &b)
		if err != nil {
			return n, err
		}
		n += one
		b = pgx.Batch{}
	}
	if b.Len() == 0 {
		return n, nil
	}
	one, err := c.send(ctx, &b)
	return n + one, err
}

func (c pgConn) send(ctx context.Context, b *pgx.Batch) (n int64, err error) {
	answers := c.tx.SendBatch(ctx, b)
	for range b.Len() {
		tag, execErr := answers.Exec()
		if execErr != nil {
			err = execErr
			break
		}
		n += tag.RowsAffected()
	}
	if closeErr := answers.Close(); err == nil {
		err = closeErr
	}
	return n, pgError(err)
}

func (c pgConn) bulk(ctx context.Context, table string, columns []string, rows iter.Seq[[]any]) (int64, error) {
	next, stop := iter.Pull(rows)
	defer stop()
	n, err := c.tx.CopyFrom(ctx, pgx.Identifier{table}, columns, pgx.CopyFromFunc(func() ([]any, error) {
		row, ok := next()
		if !ok {
			return nil, nil
		}
		return row, nil
	}))
	return n, pgError(err)
}
