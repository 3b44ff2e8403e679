package xrootd

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"sync"
	"time"

	"weir/internal/tcp"
)

// Stream ids of a session are assigned in blocks: each client has one id for each request that it may have in flight.
const (
	blockSize = 64
	maxBlocks = 1<<16/blockSize - 1
)

// A sessionPool keeps the sessions that all clients of a service share: one with each server, and one more for every
// thousand clients.
type sessionPool struct {
	s        *service
	mu       sync.Mutex
	sessions map[*server][]*sharedSession
	wg       sync.WaitGroup // readers
}

func newSessionPool(s *service) *sessionPool {
	return &sessionPool{s: s, sessions: map[*server][]*sharedSession{}}
}

// close ends all connections and waits for their readers.
func (h *sessionPool) close() {
	h.mu.Lock()
	var all []*sharedSession
	for _, ts := range h.sessions {
		all = append(all, ts...)
	}
	h.mu.Unlock()
	for _, t := range all {
		t.fail(net.ErrClosed)
	}
	h.wg.Wait()
}

// attach assigns to l a stream of a session with its server. It opens a session if no session has a
// free stream.
func (h *sessionPool) attach(x *exchange, l *link) error {
	t, b, fresh := h.room(l.server)
	if fresh {
		h.connect(x, l, t)
	}
	select {
	case <-t.ready:
	case <-x.call.Ctx.Done():
		_ = b.Close() // no request was sent
		return x.call.Ctx.Err()
	case <-x.until():
		_ = b.Close() // no request was sent
		return os.ErrDeadlineExceeded
	}
	if err := t.failed(); err != nil {
		return err
	}
	l.wire, l.flags, l.first, l.secure, l.opaque, l.demands = b, t.flags, b.first, t.secure, true, t.demands
	return b.Begin(x.call.Ctx, x.call.Deadline)
}

// room returns a stream of a session that has a free stream. fresh is true if the session is new,
// so that the caller has to connect it.
func (h *sessionPool) room(to *server) (t *sharedSession, b *clientStream, fresh bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, t = range h.sessions[to] {
		if b = t.newStream(); b != nil {
			return t, b, false
		}
	}
	t = &sharedSession{pool: h, server: to, ready: make(chan struct{}), writing: make(chan struct{}, 1), streams: map[uint16]*clientStream{}}
	h.sessions[to] = append(h.sessions[to], t)
	return t, t.newStream(), true
}

// forget removes a session from the pool.
func (h *sessionPool) forget(t *sharedSession) {
	h.mu.Lock()
	defer h.mu.Unlock()
	ts := h.sessions[t.server]
	for i := range ts {
		if ts[i] == t {
			h.sessions[t.server] = append(ts[:i:i], ts[i+1:]...)
			return
		}
	}
}

// connect connects a session and logs in, as part of the operation of x.
func (h *sessionPool) connect(x *exchange, l *link, t *sharedSession) {
	defer close(t.ready)
	login := h.s.link(l.server)
	w, err := dialLoose(x)
	if err == nil {
		login.wire = w
		if err = x.login(&login); err != nil {
			err = errors.Join(err, login.close())
		}
	}
	if err != nil {
		t.fail(err)
		return
	}
	login.Return()
	x.count(&login)
	t.conn, t.wire, t.flags, t.secure, t.signs, t.demands = w, login.wire, login.flags, login.secure, login.signs, login.demands
	err = t.wire.Begin(context.Background(), time.Time{})
	if err == nil {
		err = t.failed() // its only client may have gone meanwhile
	}
	if err != nil {
		t.fail(err)
		_ = t.wire.Close() // the first error is returned
		return
	}
	h.wg.Go(t.read)
}

// until returns a channel that receives at the deadline of the operation, nil without a deadline.
func (x *exchange) until() <-chan time.Time {
	if x.call.Deadline.IsZero() {
		return nil
	}
	return time.After(time.Until(x.call.Deadline))
}

// A loose is a connection that one goroutine may read while others write, one at a time.
type loose struct {
	net.Conn
	stop func() bool // of the context given to Begin
}

var _ wire = (*loose)(nil)

// dialLoose connects to the server that the operation is at.
func dialLoose(x *exchange) (*loose, error) {
	d := net.Dialer{Deadline: x.call.Deadline}
	c, err := d.DialContext(x.call.Ctx, "tcp", x.at.name)
	if err != nil {
		return nil, fmt.Errorf("connect to %s: %w", x.at.name, tcp.Unconnected(err))
	}
	w := &loose{Conn: c}
	return w, w.Begin(x.call.Ctx, x.call.Deadline)
}

// Begin sets the deadline of calls and the context that ends them.
func (c *loose) Begin(ctx context.Context, deadline time.Time) error {
	if c.stop != nil {
		c.stop()
	}
	c.stop = context.AfterFunc(ctx, func() { _ = c.SetDeadline(time.Unix(1, 0)) }) // fails only on a closed connection
	return c.SetDeadline(deadline)
}

func (c *loose) ReadLate(l tcp.Lender) (int, error)      { return c.Read(l.Lend()) }
func (c *loose) WriteMore(p []byte) (int, error)         { return c.Write(p) }
func (c *loose) Discard(int64, func(int)) (int64, error) { return 0, errors.ErrUnsupported }
func (c *loose) Send(p []byte, _ func(int)) (int, error) { return c.Write(p) }
func (c *loose) In() int64                               { return 0 }
func (c *loose) Out() int64                              { return 0 }

// Close closes the connection.
func (c *loose) Close() error {
	if c.stop != nil {
		c.stop()
	}
	return c.Conn.Close()
}
