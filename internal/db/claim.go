package db

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"

	"weir/internal/pause"
)

// A Claim keeps other processes from claiming the same name in a database.
type Claim struct {
	config *pgx.ConnConfig
	name   string
	every  time.Duration
	conn   *pgx.Conn // nil: it was lost
	last   session
}

// A session identifies one connection of a server. The server does not give its number to another
// connection that began at the same moment.
type session struct {
	pid   int32
	since time.Time
	who   string
	from  string
}

const (
	claimEvery   = 2 * time.Second  // a claim is looked after so often
	claimTime    = 5 * time.Second  // an answer takes this long at most
	claimPatient = time.Second      // for a process that was killed to be missed by the server
	claimRetry   = time.Second / 10 // meanwhile
	awaitRetry   = time.Second / 2  // between two attempts of AwaitClaim
)

// Claim claims a name in the database for this process until Close; who identifies the process to
// others, in at most 63 bytes. If another process has the name, the error is ErrTaken with the who
// of that process. In PostgreSQL it is an advisory lock of a connection of its own, which Keep
// looks after. A SQLite file is one process's anyway: there is nothing to claim.
func (d *DB) Claim(ctx context.Context, name, who string) (*Claim, error) {
	c := d.newClaim(name, who)
	for begin := time.Now(); c.config != nil; {
		err := c.take(ctx)
		if err == nil {
			break
		}
		may := errors.Is(err, ErrTaken) || errors.Is(err, ErrBusy)
		if !may || time.Since(begin) > claimPatient || !pause.For(ctx, claimRetry) {
			return nil, fmt.Errorf("database %s: %w", d.url, err)
		}
	}
	return c, nil
}

// AwaitClaim claims a name as Claim does, but waits until the name is free, and while PostgreSQL
// cannot be reached. It calls waiting with each reason, ErrTaken or ErrBusy, that is not the one
// before; an error that waiting returns ends the wait.
func (d *DB) AwaitClaim(ctx context.Context, name, who string, waiting func(reason error) error) (*Claim, error) {
	c := d.newClaim(name, who)
	for last := ""; c.config != nil; {
		err := c.take(ctx)
		if err == nil {
			break
		}
		if !errors.Is(err, ErrTaken) && !errors.Is(err, ErrBusy) || ctx.Err() != nil {
			return nil, fmt.Errorf("database %s: %w", d.url, err)
		}
		if text := err.Error(); text != last {
			last = text
			if err := waiting(err); err != nil {
				return nil, err
			}
		}
		if !pause.For(ctx, awaitRetry) {
			return nil, ctx.Err()
		}
	}
	return c, nil
}

// newClaim returns a claim that is not taken. Its config is nil in SQLite.
func (d *DB) newClaim(name, who string) *Claim {
	c := &Claim{name: name, every: claimEvery}
	p, ok := d.backend.(*postgres)
	if !ok {
		return c
	}
	c.config = p.pool.Config().ConnConfig.Copy()
	c.config.RuntimeParams["application_name"] = who
	// The loss of a machine is detected within a minute, and not after two hours.
	for key, value := range map[string]string{"tcp_keepalives_idle": "20", "tcp_keepalives_interval": "10", "tcp_keepalives_count": "3"} {
		c.config.RuntimeParams[key] = value
	}
	return c
}

// Keep renews the claim whenever its connection is lost, until ctx ends; then it returns nil. If
// another process has taken the name meanwhile, it returns ErrTaken with the who of that process:
// this process must then stop using the name.
func (c *Claim) Keep(ctx context.Context) error {
	for pause.For(ctx, c.every) {
		if c.config == nil || c.alive(ctx) {
			continue
		}
		if err := c.take(ctx); errors.Is(err, ErrTaken) && ctx.Err() == nil {
			return err
		}
	}
	return nil
}

// Close gives the claim back, after Keep has returned.
func (c *Claim) Close() error {
	if c.conn == nil {
		return nil
	}
	ctx, cancel := context.WithTimeout(context.Background(), claimTime)
	defer cancel()
	return c.conn.Close(ctx)
}

// alive reports whether the connection that holds the claim is there.
func (c *Claim) alive(ctx context.Context) bool {
	if c.conn == nil {
		return false
	}
	asking, cancel := context.WithTimeout(ctx, claimTime)
	defer cancel()
	if c.conn.Ping(asking) == nil || ctx.Err() != nil {
		return true
	}
	_ = c.conn.Close(asking) // the connection is unusable
	c.conn = nil
	return false
}

// key is a claim's lock: the claims of different schemas in one database differ.
const key = "hashtextextended($1 || ' ' || current_schema(), 0)"

// holder selects the process that has an advisory lock:
// https://www.postgresql.org/docs/15/view-pg-locks.html
const holder = `SELECT a.pid, COALESCE(a.backend_start, 'epoch'), COALESCE(NULLIF(a.application_name, ''), 'another program'),
	COALESCE(host(a.client_addr), 'the machine of the database')
	FROM pg_locks l JOIN pg_stat_activity a ON a.pid = l.pid
	WHERE l.locktype = 'advisory' AND l.granted AND l.objsubid = 1
	AND l.database = (SELECT oid FROM pg_database WHERE datname = current_database())
	AND l.classid::bigint = (` + key + ` >> 32) & 4294967295 AND l.objid::bigint = ` + key + ` & 4294967295`

// take connects and takes the claim.
func (c *Claim) take(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, claimTime)
	defer cancel()
	conn, err := pgx.ConnectConfig(ctx, c.config)
	if err != nil {
		return pgError(err)
	}
	mine := false
	if err = conn.QueryRow(ctx, "SELECT pg_try_advisory_lock("+key+")", c.name).Scan(&mine); err == nil && !mine {
		err = c.taken(ctx, conn)
	} else if err == nil {
		err = conn.QueryRow(ctx, "SELECT pid, backend_start FROM pg_stat_activity WHERE pid = pg_backend_pid()").Scan(&c.last.pid, &c.last.since)
	}
	if err != nil {
		_ = conn.Close(ctx) // the error before matters
		return pgError(err)
	}
	c.conn = conn
	return nil
}

// taken returns ErrTaken with the holder of the claim. If the holder is a connection of this
// process that the server still considers alive, taken ends that connection.
func (c *Claim) taken(ctx context.Context, conn *pgx.Conn) error {
	var s session
	err := conn.QueryRow(ctx, holder, c.name).Scan(&s.pid, &s.since, &s.who, &s.from)
	switch {
	case errors.Is(err, pgx.ErrNoRows):
		return fmt.Errorf("%w: another process had it a moment ago", ErrBusy)
	case err != nil:
		return err
	case s.pid == c.last.pid && s.since.Equal(c.last.since):
		_, err = conn.Exec(ctx, "SELECT pg_terminate_backend($1)", s.pid)
		return errors.Join(ErrBusy, err)
	}
	return fmt.Errorf("%w by %s, which came from %s at %s", ErrTaken, s.who, s.from, s.since.UTC().Format("2006-01-02 15:04:05 UTC"))
}
