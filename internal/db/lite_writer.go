package db

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"
)

// A writer serializes the writes to the file. Its goroutine opens and commits transactions, and
// passes the connection to one waiting caller at a time: functions run in their callers'
// goroutines, so that the end of a caller's goroutine does not end the writer.
type writer struct {
	conn  *liteConn
	asked chan *asking
	quit  chan struct{}
	gone  chan struct{}
	once  sync.Once
	begin func(context.Context, *liteConn) error // a transaction that writes
	after func(*liteConn)                        // each commit
}

// An asking is a waiting request to write.
type asking struct {
	ctx  context.Context
	turn chan *Tx   // the connection is yours
	over chan error // and is given back: the outcome of the function
	done chan error // buffered: committed, or not
}

// A group is committed when no caller waits any more, or after the limit of its number or time: the
// first of it waits for the last.
const (
	groupSize = 256
	groupTime = 20 * time.Millisecond
)

func newWriter(c *liteConn, begin func(context.Context, *liteConn) error, after func(*liteConn)) *writer {
	w := &writer{conn: c, asked: make(chan *asking), quit: make(chan struct{}), gone: make(chan struct{}), begin: begin, after: after}
	go w.run()
	return w
}

func (w *writer) write(ctx context.Context, f func(*Tx) error) error {
	a := &asking{ctx: ctx, turn: make(chan *Tx), over: make(chan error), done: make(chan error, 1)}
	select {
	case w.asked <- a:
	case <-w.quit:
		return ErrClosed
	case <-ctx.Done():
		return ctx.Err()
	}
	select {
	case t := <-a.turn:
		a.call(t, f)
		return <-a.done
	case err := <-a.done: // no transaction could be begun
		return err
	case <-ctx.Done():
		return ctx.Err()
	}
}

// call runs f, and gives the connection back also when it panics.
func (a *asking) call(t *Tx, f func(*Tx) error) {
	err := errors.New("the function did not come to its end")
	defer func() { a.over <- err }()
	err = t.run(f)
}

// run serves until the writer is closed.
func (w *writer) run() {
	defer close(w.gone)
	for {
		select {
		case a := <-w.asked:
			w.group(a)
		case <-w.quit:
			return
		}
	}
}

// group runs and commits a transaction of many.
func (w *writer) group(a *asking) {
	ctx := context.Background() // a transaction that serves one caller is not interrupted for another caller
	if err := w.begin(ctx, w.conn); err != nil {
		a.done <- err
		return
	}
	var members []*asking
	var lost error
	for until := time.Now().Add(groupTime); a != nil && lost == nil; a = w.next(len(members), until) {
		var in bool
		if in, lost = w.serve(ctx, a); in {
			members = append(members, a)
		}
	}
	if lost == nil {
		_, lost = w.conn.exec(ctx, "COMMIT", nil)
	}
	if lost != nil {
		_, _ = w.conn.exec(ctx, "ROLLBACK", nil) // fails where SQLite has done so
		lost = fmt.Errorf("nothing was written: %w", lost)
	}
	for _, m := range members {
		m.done <- lost
	}
	w.after(w.conn)
}

// next returns the next of the group, or nil: it must be committed.
func (w *writer) next(n int, until time.Time) *asking {
	if n >= groupSize || !time.Now().Before(until) {
		return nil
	}
	select {
	case a := <-w.asked:
		return a
	default:
		return nil
	}
}

// serve runs one function in the group's transaction and reports whether it must be committed. Its
// error means that SQLite has taken back the whole transaction, as it does when the disk is full.
func (w *writer) serve(ctx context.Context, a *asking) (in bool, lost error) {
	if _, err := w.conn.exec(ctx, "SAVEPOINT one", nil); err != nil {
		a.done <- err
		return false, err
	}
	var said error
	select {
	case a.turn <- &Tx{ctx: a.ctx, conn: uninterrupted{w.conn}, texts: w.conn.texts}:
		said = <-a.over
	case <-a.ctx.Done():
		said = a.ctx.Err()
	}
	if said == nil {
		if _, said = w.conn.exec(ctx, "RELEASE one", nil); said == nil {
			return true, nil
		}
	} else if _, err := w.conn.exec(ctx, "ROLLBACK TO one", nil); err != nil {
		lost = said
	} else if _, err := w.conn.exec(ctx, "RELEASE one", nil); err != nil {
		lost = said
	}
	a.done <- said
	return false, lost
}

// close waits for the running writes.
func (w *writer) close() (err error) {
	w.once.Do(func() {
		close(w.quit)
		<-w.gone
		err = w.conn.close()
	})
	return err
}
