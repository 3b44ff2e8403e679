package db

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"
)

// A postgres is a database on a server.
type postgres struct {
	pool     *pgxpool.Pool
	texts    *texts
	readOnly bool
}

func openPG(ctx context.Context, url string, o Options) (*postgres, error) {
	c, err := pgxpool.ParseConfig(url)
	if err != nil {
		return nil, errors.New("the address cannot be read: write postgres://USER@HOST:PORT/NAME") // err may hold a password
	}
	if o.Conns > 0 {
		c.MaxConns = int32(min(o.Conns, 10_000))
	} else if !strings.Contains(url, "pool_max_conns") {
		c.MaxConns = 16
	}
	if c.ConnConfig.RuntimeParams["application_name"] == "" {
		c.ConnConfig.RuntimeParams["application_name"] = "weir"
	}
	c.ConnConfig.ConnectTimeout = cmp.Or(c.ConnConfig.ConnectTimeout, 10*time.Second)
	// If an administrator has turned durability off for speed, it is turned on for this connection.
	c.AfterConnect = func(ctx context.Context, conn *pgx.Conn) error {
		_, err := conn.Exec(ctx, "SELECT set_config('synchronous_commit', 'on', false) WHERE current_setting('synchronous_commit') = 'off'")
		return err
	}
	p := &postgres{texts: newTexts(PostgreSQL, o.Seen), readOnly: o.ReadOnly}
	if p.pool, err = pgxpool.NewWithConfig(ctx, c); err != nil {
		return nil, pgError(err)
	}
	var encoding string
	if err = p.pool.QueryRow(ctx, "SHOW server_encoding").Scan(&encoding); err == nil && encoding != "UTF8" {
		err = fmt.Errorf("its encoding is %s: make one with ENCODING 'UTF8'", encoding)
	}
	if err != nil {
		p.pool.Close()
		return nil, pgError(err)
	}
	return p, nil
}

// A write is tried so often before the database is called busy: within about a second if it
// responds at all.
const tries = 6

func (p *postgres) write(ctx context.Context, f func(*Tx) error) error {
	if p.readOnly {
		return errors.New("the database was opened for reading only")
	}
	return p.again(ctx, pgx.TxOptions{}, f)
}

func (p *postgres) read(ctx context.Context, f func(*Tx) error) error {
	return p.again(ctx, pgx.TxOptions{IsoLevel: pgx.RepeatableRead, AccessMode: pgx.ReadOnly}, f)
}

// again runs f in a transaction until that has ended one way or the other.
func (p *postgres) again(ctx context.Context, o pgx.TxOptions, f func(*Tx) error) error {
	for try := 1; ; try++ {
		err := p.transact(ctx, o, f)
		if err == nil || try == tries || !errors.Is(err, ErrBusy) || errors.Is(err, ErrUnsure) || !passes(err) {
			return err
		}
		wait := time.NewTimer(time.Duration(rand.Int64N(int64(10*time.Millisecond) << try)))
		select {
		case <-wait.C:
		case <-ctx.Done():
			wait.Stop()
			return ctx.Err()
		}
	}
}

func (p *postgres) transact(ctx context.Context, o pgx.TxOptions, f func(*Tx) error) error {
	tx, err := p.pool.BeginTx(ctx, o)
	if err != nil {
		return pgError(err)
	}
	defer func() { _ = tx.Rollback(context.WithoutCancel(ctx)) }() // does nothing after a commit
	if err := (&Tx{ctx: ctx, conn: pgConn{tx}, texts: p.texts}).run(f); err != nil {
		return err
	}
	// Not ended by ctx: it would be unknown to its caller whether it was.
	if err := tx.Commit(context.WithoutCancel(ctx)); err != nil {
		if err = pgError(err); lostConn(err) {
			err = fmt.Errorf("%w: %w", ErrUnsure, err)
		}
		return err
	}
	return nil
}

func (p *postgres) close() error {
	p.pool.Close()
	return nil
}

// pgError converts PostgreSQL's errors into the errors of this package. The codes:
// https://www.postgresql.org/docs/15/errcodes-appendix.html
func pgError(err error) error {
	if err == nil || errors.Is(err, ErrBusy) {
		return err
	}
	if e, ok := errors.AsType[*pgconn.PgError](err); ok {
		switch {
		case e.Code == "23505":
			return fmt.Errorf("%w: %w", ErrExists, err)
		case e.Code == "22021", e.Code == "22P05":
			return fmt.Errorf("%w: %w", ErrText, err)
		case serial(e), e.Code == "55P03", strings.HasPrefix(e.Code, "08"), strings.HasPrefix(e.Code, "53"), strings.HasPrefix(e.Code, "57P"),
			e.Code == "58030":
			return fmt.Errorf("%w: %w", ErrBusy, err)
		}
		return err
	}
	if errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded) && !isConnect(err) {
		return err
	}
	if strings.Contains(err.Error(), "closed pool") {
		return ErrClosed
	}
	if lostConn(err) {
		return fmt.Errorf("%w: %w", ErrBusy, err)
	}
	return err
}

// serial reports on transactions that stood in each other's way.
func serial(e *pgconn.PgError) bool { return e.Code == "40001" || e.Code == "40P01" }

func isConnect(err error) bool {
	var e *pgconn.ConnectError
	return errors.As(err, &e)
}

// lostConn reports an unreachable server.
func lostConn(err error) bool {
	if e, ok := errors.AsType[*pgconn.PgError](err); ok {
		return strings.HasPrefix(e.Code, "57P") || strings.HasPrefix(e.Code, "08")
	}
	var n net.Error
	return isConnect(err) || errors.As(err, &n) || errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) ||
		errors.Is(err, net.ErrClosed) ||
		strings.Contains(err.Error(), "conn closed")
}

// passes reports whether a busy database is worth asking again at once.
func passes(err error) bool {
	var e *pgconn.PgError
	return errors.As(err, &e) && serial(e) || lostConn(err)
}
