package tcp

import (
	"context"
	"errors"
	"io"
	"net"
	"net/netip"
	"os"
	"sync/atomic"
	"time"
)

// A Conn is one connection. It is used by one goroutine at a time; only the end of the context given to Begin
// reaches into it from outside.
//
// It is a net.Conn, so that package crypto/tls can stand on it. SetDeadline, SetReadDeadline and
// SetWriteDeadline apply to the current operation.
type Conn struct {
	sock    socket
	clock   *clock
	watch   *watch
	peer    netip.AddrPort
	in, out int64

	armed int64 // time at which the poller wakes the connection, on the clock; 0 is never
	until int64 // when the operation must end, on the clock; 0 is never

	long   bulk    // the long call that runs
	frames *Frames // of DiscardFrames
	ask    asking  // of Ask

	interrupted atomic.Bool
	group       *group // who is interrupted together with this connection
	prev, next  *Conn  // in group; guarded by watch.mu
}

// Begin starts an operation: until the next Begin, calls fail with the context's error once ctx has
// ended, and with os.ErrDeadlineExceeded after deadline (zero means no deadline). It is cheap as
// long as the contexts of one connection share one Done channel, and allocates only when that
// changes.
func (c *Conn) Begin(ctx context.Context, deadline time.Time) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	c.sock.posed = nil
	if !c.watch.joined(ctx, c) {
		c.watch.join(ctx, c)
	}
	c.limit(c.clock.at(deadline))
	return c.stopped()
}

// limit sets the end of the operation. A timer of the poller that is due earlier is left alone: when it fires,
// again moves it. So most operations touch no timer at all.
func (c *Conn) limit(until int64) {
	c.until = until
	if until != 0 && (c.armed == 0 || c.armed > until) {
		c.arm(until)
	}
}

func (c *Conn) arm(at int64) {
	c.armed = at
	c.sock.setDeadline(c.clock.time(at))
}

// stopped reports whether the operation's context has ended.
func (c *Conn) stopped() error {
	if !c.interrupted.Load() {
		return nil
	}
	return c.watch.cause(c)
}

// again determines the cause of a wake-up by the poller's timer: the end of the operation, or only
// a timer that was due too early.
func (c *Conn) again(err error) error {
	if !errors.Is(err, os.ErrDeadlineExceeded) {
		return err
	}
	if err := c.stopped(); err != nil {
		return err
	}
	if c.until != 0 && c.clock.now() >= c.until {
		return os.ErrDeadlineExceeded
	}
	c.arm(c.until)
	return c.stopped() // an interruption may have come between
}

// Read reads up to len(p) bytes, waiting for the first.
func (c *Conn) Read(p []byte) (int, error) {
	if len(p) == 0 {
		return 0, nil
	}
	return c.read(p, nil)
}

// A Lender lends the buffer that ReadLate reads into. Lend may be followed by Return, when there was nothing to be
// read after all.
type Lender interface {
	Lend() []byte
	Return()
}

// ReadLate reads like Read, for thousands of connections that wait: it takes a buffer only when it
// looks for bytes, and returns it before it waits.
func (c *Conn) ReadLate(l Lender) (int, error) { return c.read(nil, l) }

// read reads into p, or into a buffer of l when bytes have arrived.
func (c *Conn) read(p []byte, l Lender) (int, error) {
	for {
		n, err := c.receive(p, l)
		c.in += int64(n)
		if err == nil && n == 0 {
			return 0, io.EOF
		}
		if err == nil {
			return n, nil
		}
		if err = c.again(err); err != nil {
			return 0, err
		}
	}
}

// Write sends all of p.
func (c *Conn) Write(p []byte) (int, error) { return c.write(p, false) }

// WriteMore sends all of p and promises the system that more follows at once, so that a head and its body share
// their packets.
func (c *Conn) WriteMore(p []byte) (int, error) { return c.write(p, true) }

func (c *Conn) write(p []byte, more bool) (int, error) {
	done := 0
	for done < len(p) {
		n, err := c.sock.send(p[done:], more)
		done += n
		c.out += int64(n)
		if err != nil {
			if err = c.again(err); err != nil {
				return done, err
			}
		}
	}
	return done, nil
}

// Quiet reports whether the connection is open and has nothing to be read: a kept connection that is not quiet was
// closed by the other side, or is out of step, and must not carry another request.
func (c *Conn) Quiet() bool { return c.sock.quiet() }

// In returns the number of bytes received since the connection was made.
func (c *Conn) In() int64 { return c.in }

// Out returns the number of bytes sent since the connection was made.
func (c *Conn) Out() int64 { return c.out }

// Close closes the connection.
func (c *Conn) Close() error {
	c.watch.leave(c)
	return c.sock.close()
}

// Peer returns the address of the other side.
func (c *Conn) Peer() netip.AddrPort { return c.peer }

// RemoteAddr returns the address of the other side.
func (c *Conn) RemoteAddr() net.Addr { return net.TCPAddrFromAddrPort(c.peer) }

// LocalAddr returns an empty address; Local returns the actual address.
func (c *Conn) LocalAddr() net.Addr { return &net.TCPAddr{} }

// SetDeadline sets the end of the current operation.
func (c *Conn) SetDeadline(t time.Time) error {
	c.limit(c.clock.at(t))
	return nil
}

// SetReadDeadline works like SetDeadline: reading and writing end together.
func (c *Conn) SetReadDeadline(t time.Time) error { return c.SetDeadline(t) }

// SetWriteDeadline works like SetDeadline: reading and writing end together.
func (c *Conn) SetWriteDeadline(t time.Time) error { return c.SetDeadline(t) }

// ErrAnswered means that the other side has sent something before it received the whole request.
var ErrAnswered = errors.New("answered before everything was sent")

const (
	// gulp is the largest number of bytes that the kernel gathers before it wakes a client that
	// discards: 4 MiB cost half the CPU of 1 MiB. gathered is the limit for all clients together,
	// since the bytes take memory.
	gulp     = 4 << 20
	gathered = 256 << 20
	// small is a body that is not worth two settings of the socket.
	small = 128 << 10
	// tick limits the delay with which bytes that gather in the kernel are reported, and the time
	// between two checks of a sender for an early response.
	tick = 250 * time.Millisecond
	// slice is the number of bytes that are sent between two reports.
	slice = 256 << 10
)

// bulk is the state of a long call.
type bulk struct {
	left  int64
	moved func(int)
	bytes []byte // to be sent; the last left of them still are
}

// Discard takes the next n bytes from the connection without bringing them into memory, if the
// system supports that. It reports them as they come and returns their number; fewer than n only
// with an error (io.ErrUnexpectedEOF when the other side has closed).
func (c *Conn) Discard(n int64, moved func(int)) (int64, error) {
	c.long = bulk{left: n, moved: moved}
	c.watch.discarding.Add(1)
	err := c.discard()
	c.watch.discarding.Add(-1)
	done := n - c.long.left
	c.long = bulk{}
	return done, err
}

// Send sends all of p, as Write does, and reports the bytes as they go. It returns the number of
// sent bytes; fewer than all only with an error. If the other side has responded before it took
// everything, Send stops with ErrAnswered.
func (c *Conn) Send(p []byte, moved func(int)) (int, error) {
	c.long = bulk{left: int64(len(p)), moved: moved, bytes: p}
	err := c.sendBulk()
	done := len(p) - int(c.long.left)
	c.long = bulk{}
	return done, err
}

// share returns the number of bytes that may gather for one of the discarding clients.
func (w *watch) share() int64 {
	return min(gulp, max(small, gathered/max(w.discarding.Load(), 1)))
}

// progress counts bytes of a long call, incoming or outgoing.
func (c *Conn) progress(n int, counter *int64) {
	*counter += int64(n)
	c.long.left -= int64(n)
	if c.long.moved != nil {
		c.long.moved(n)
	}
}

// wakeWithin makes sure that the poller wakes the connection within d.
func (c *Conn) wakeWithin(d time.Duration) {
	at := c.clock.now() + int64(d)
	if c.armed == 0 || c.armed > at {
		c.arm(at)
	}
}
