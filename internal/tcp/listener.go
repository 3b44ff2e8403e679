package tcp

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"os"
	"sync/atomic"
	"time"
)

// ErrWoken is the error of a wait for a connection that Wake has ended.
var ErrWoken = errors.New("the wait for a connection was ended")

// A Listener takes the connections that servers make to a client.
type Listener struct {
	dialer *Dialer
	socket listening
	woken  atomic.Bool
}

// Listen listens on a port of its own choice. The caller closes the Listener.
func (d *Dialer) Listen(on netip.Addr) (*Listener, error) {
	l := &Listener{dialer: d}
	if err := l.socket.open(on); err != nil {
		return nil, fmt.Errorf("listen on %s: %w", on, err)
	}
	return l, nil
}

// Port returns the port that connections are made to.
func (l *Listener) Port() uint16 { return l.socket.port() }

// Accept waits for the next connection and begins its first operation, as Dialer.Dial does. It is called by one
// goroutine at a time.
func (l *Listener) Accept(ctx context.Context, deadline time.Time) (*Conn, error) {
	l.socket.setDeadline(deadline)
	stop := context.AfterFunc(ctx, l.wake)
	defer stop()
	if l.woken.Load() { // before the deadline was set
		return nil, ErrWoken
	}
	c := &Conn{clock: l.dialer.clock, watch: l.dialer.watch}
	if err := l.socket.accept(c); err != nil {
		switch {
		case ctx.Err() != nil:
			err = ctx.Err()
		case l.woken.Load():
			err = ErrWoken
		case errors.Is(err, os.ErrDeadlineExceeded):
			err = os.ErrDeadlineExceeded
		}
		return nil, fmt.Errorf("wait for a connection: %w", err)
	}
	return c, c.Begin(ctx, deadline)
}

// Wake ends the waiting of Accept, now or when it begins, with ErrWoken, until Rest. It may be called by any
// goroutine.
func (l *Listener) Wake() {
	l.woken.Store(true)
	l.wake()
}

// Rest makes Accept wait again.
func (l *Listener) Rest() { l.woken.Store(false) }

func (l *Listener) wake() { l.socket.setDeadline(time.Unix(1, 0)) } // long past

// Close ends listening.
func (l *Listener) Close() error { return l.socket.close() }
