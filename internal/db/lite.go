package db

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"modernc.org/sqlite"
	lib "modernc.org/sqlite/lib"

	"weir/internal/lock"
)

// A lite is a database in a file.
type lite struct {
	pool    *sql.DB
	texts   *texts
	held    *os.File // locked: excludes other writers; nil: read only
	writer  *writer  // nil: read only
	readers chan *liteConn
	conns   int // readers that were opened
}

// Pragmas of all connections, of readers and of the writer. Keys are checked as PostgreSQL always
// does. The log is folded into the file every 4000 pages, and cut to 64 MiB. A cache of n KiB takes
// twice that, since the allocator of modernc.org/sqlite rounds a page and its header up to 8 KiB;
// the cache of a reader is emptied whenever another connection has written since the reader's last
// transaction.
const (
	pragmas = "PRAGMA busy_timeout=10000; PRAGMA foreign_keys=ON; PRAGMA temp_store=MEMORY; PRAGMA trusted_schema=OFF;"
	reading = "PRAGMA query_only=ON; PRAGMA cache_size=-4096;"
	writing = "PRAGMA journal_mode=WAL; PRAGMA synchronous=FULL; PRAGMA wal_autocheckpoint=4000; PRAGMA journal_size_limit=67108864; " +
		"PRAGMA cache_size=-32768;"
)

func openLite(ctx context.Context, path string, o Options) (_ *lite, err error) {
	if path == "" || strings.HasPrefix(path, ":") {
		return nil, errors.New("name a file, such as sqlite:weir.db")
	}
	if path, err = filepath.Abs(path); err != nil {
		return nil, err
	}
	conns := o.Conns
	if conns <= 0 {
		conns = 4
	}
	l := &lite{texts: newTexts(SQLite, o.Seen), readers: make(chan *liteConn, conns)}
	defer func() {
		if err != nil {
			err = errors.Join(liteError(err), l.close())
		}
	}()
	if o.ReadOnly {
		_, err = os.Stat(path)
	} else {
		err = l.hold(path)
	}
	if err != nil {
		return nil, err
	}
	if l.pool, err = sql.Open("sqlite", (&url.URL{Scheme: "file", Path: path}).String()); err != nil {
		return nil, err
	}
	if !o.ReadOnly {
		c, err := l.connect(ctx, writing)
		if err != nil {
			return nil, err
		}
		l.writer = newWriter(c, func(ctx context.Context, c *liteConn) error { return l.begin(ctx, c, "BEGIN IMMEDIATE", writing) },
			l.fold(path+"-wal"))
	}
	for range conns {
		c, err := l.connect(ctx, reading)
		if err != nil {
			return nil, err
		}
		l.readers <- c
		l.conns++
	}
	return l, nil
}

// hold locks a file beside the database's for this process. (Not the database's
// own: the locks that SQLite has on it end when any descriptor of it is closed.)
func (l *lite) hold(path string) error {
	f, err := os.OpenFile(path+".lock", os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return err
	}
	if err = lock.Alone(f); errors.Is(err, lock.ErrTaken) {
		who, _ := os.ReadFile(f.Name())
		_ = f.Close()
		if pid := strings.TrimSpace(string(who)); pid != "" {
			return fmt.Errorf("%w: process %s writes to it", ErrTaken, pid)
		}
		return ErrTaken
	}
	l.held = f // a file system without locks: unknown
	if err := errors.Join(f.Truncate(0), second(f.WriteAt([]byte(strconv.Itoa(os.Getpid())+"\n"), 0))); err != nil {
		return err
	}
	// Secrets may stand in it, and in the files that SQLite makes after its example.
	f, err = os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return err
	}
	return f.Close()
}

func second(_ int, err error) error { return err }

// connect makes a connection of its own.
func (l *lite) connect(ctx context.Context, more string) (*liteConn, error) {
	c, err := l.pool.Conn(ctx)
	if err != nil {
		return nil, err
	}
	if _, err := c.ExecContext(ctx, pragmas+more); err != nil {
		return nil, errors.Join(err, c.Close())
	}
	return &liteConn{conn: c, texts: l.texts, kept: map[string]*sql.Stmt{}}, nil
}

func (l *lite) write(ctx context.Context, f func(*Tx) error) error {
	if l.writer == nil {
		return errors.New("the database was opened for reading only")
	}
	return l.writer.write(ctx, f)
}

func (l *lite) read(ctx context.Context, f func(*Tx) error) error {
	var c *liteConn
	var open bool
	select {
	case c, open = <-l.readers:
	case <-ctx.Done():
		return ctx.Err()
	}
	if !open {
		return ErrClosed
	}
	defer func() { l.readers <- c }()
	if err := l.begin(ctx, c, "BEGIN", reading); err != nil {
		return err
	}
	// A COMMIT that only read cannot fail; a transaction without a COMMIT is rolled back.
	defer func() { _, _ = c.exec(context.WithoutCancel(ctx), "ROLLBACK", nil) }()
	return (&Tx{ctx: ctx, conn: c, texts: l.texts}).run(f)
}

// begin begins a transaction. The end of ctx does not break it off: the driver would report it
// although the transaction had begun, which would then stay open. A connection that cannot begin a
// transaction is replaced.
func (l *lite) begin(ctx context.Context, c *liteConn, how, pragmas string) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	ctx = context.WithoutCancel(ctx)
	_, err := c.exec(ctx, how, nil)
	if err == nil || errors.Is(err, ErrBusy) {
		return err
	}
	fresh, lost := l.connect(ctx, pragmas)
	if lost != nil {
		return liteError(errors.Join(err, lost))
	}
	_ = c.close() // nothing depends on it any more
	*c = *fresh
	_, err = c.exec(ctx, how, nil)
	return err
}

// The log is as long as this before readers are made to wait for it, and they
// wait no longer than that.
const (
	longLog  = 64 << 20
	foldTime = 250 * time.Millisecond
)

// fold returns the function that the writer calls after a commit. SQLite folds the log into the
// file by itself, but restarts it only at a moment without readers: if there is always a reader,
// the log would grow without limit. So when it is long, readers wait for a moment.
func (l *lite) fold(log string) func(*liteConn) {
	long := int64(longLog)
	return func(c *liteConn) {
		info, err := os.Stat(log)
		if err != nil || info.Size() < long {
			return
		}
		long = info.Size() + longLog // if it cannot be done now
		var held []*liteConn
		defer func() {
			for _, c := range held {
				l.readers <- c
			}
		}()
		patience := time.NewTimer(foldTime)
		defer patience.Stop()
		for len(held) < cap(l.readers) {
			select {
			case c := <-l.readers:
				held = append(held, c)
			case <-patience.C:
				return
			}
		}
		if _, err := c.exec(context.Background(), "PRAGMA wal_checkpoint(PASSIVE)", nil); err == nil {
			long = longLog
		}
	}
}

func (l *lite) close() error {
	var errs []error
	if l.writer != nil {
		errs = append(errs, l.writer.close())
	}
	if l.pool != nil {
		for range l.conns {
			if c, open := <-l.readers; open {
				errs = append(errs, c.close())
			}
		}
		close(l.readers)
		errs = append(errs, l.pool.Close())
		l.pool = nil
	}
	if l.held != nil {
		errs = append(errs, lock.Close(l.held))
		l.held = nil
	}
	return errors.Join(errs...)
}

// liteError converts SQLite's errors into the errors of this package.
func liteError(err error) error {
	var e *sqlite.Error
	if !errors.As(err, &e) {
		return err
	}
	switch e.Code() & 0xff {
	case lib.SQLITE_BUSY, lib.SQLITE_LOCKED, lib.SQLITE_FULL, lib.SQLITE_IOERR, lib.SQLITE_NOMEM, lib.SQLITE_CANTOPEN, lib.SQLITE_PROTOCOL:
		return fmt.Errorf("%w: %w", ErrBusy, err)
	case lib.SQLITE_CORRUPT, lib.SQLITE_NOTADB:
		return fmt.Errorf("%w: %w", ErrDamaged, err)
	case lib.SQLITE_CONSTRAINT:
		if e.Code() == lib.SQLITE_CONSTRAINT_UNIQUE || e.Code() == lib.SQLITE_CONSTRAINT_PRIMARYKEY || e.Code() == lib.SQLITE_CONSTRAINT_ROWID {
			return fmt.Errorf("%w: %w", ErrExists, err)
		}
	}
	return err
}
