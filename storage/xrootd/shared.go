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

// Streams of one connection are dealt out in blocks: each client that uses it has one for each request that it may
// have under way.
const (
	blockSize = 64
	maxBlocks = 1<<16/blockSize - 1
)

// A shared keeps the connections that all clients of a service use: one to each server, and one more for every
// thousand clients.
type shared struct {
	s      *service
	mu     sync.Mutex
	trunks map[*server][]*trunk
	wg     sync.WaitGroup // readers
}

func newShared(s *service) *shared { return &shared{s: s, trunks: map[*server][]*trunk{}} }

// close ends all connections and waits for their readers.
func (h *shared) close() {
	h.mu.Lock()
	var all []*trunk
	for _, ts := range h.trunks {
		all = append(all, ts...)
	}
	h.mu.Unlock()
	for _, t := range all {
		t.fail(net.ErrClosed)
	}
	h.wg.Wait()
}

// attach gives l a branch of a connection to its server, which is made if there is none with room.
func (h *shared) attach(x *call, l *link) error {
	t, b, fresh := h.room(l.server)
	if fresh {
		h.plant(x, l, t)
	}
	select {
	case <-t.ready:
	case <-x.Ctx.Done():
		_ = b.Close() // nothing was asked
		return x.Ctx.Err()
	case <-x.until():
		_ = b.Close() // nothing was asked
		return os.ErrDeadlineExceeded
	}
	if err := t.failed(); err != nil {
		return err
	}
	l.wire, l.flags, l.first, l.secure, l.opaque, l.demands = b, t.flags, b.first, t.secure, true, t.demands
	return b.Begin(x.Ctx, x.Deadline)
}

// room returns a branch of a trunk that has room for it; fresh says that the trunk is new, and that the caller has
// to connect it.
func (h *shared) room(to *server) (t *trunk, b *branch, fresh bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, t = range h.trunks[to] {
		if b = t.branch(); b != nil {
			return t, b, false
		}
	}
	t = &trunk{h: h, server: to, ready: make(chan struct{}), writing: make(chan struct{}, 1), branches: map[uint16]*branch{}}
	h.trunks[to] = append(h.trunks[to], t)
	return t, t.branch(), true
}

// forget takes a trunk out of those that clients get branches of.
func (h *shared) forget(t *trunk) {
	h.mu.Lock()
	defer h.mu.Unlock()
	ts := h.trunks[t.server]
	for i := range ts {
		if ts[i] == t {
			h.trunks[t.server] = append(ts[:i:i], ts[i+1:]...)
			return
		}
	}
}

// plant connects a trunk and logs in, as part of the call x.
func (h *shared) plant(x *call, l *link, t *trunk) {
	defer close(t.ready)
	sapling := h.s.link(l.server)
	w, err := dialLoose(x)
	if err == nil {
		sapling.wire = w
		if err = x.login(&sapling); err != nil {
			err = errors.Join(err, sapling.close())
		}
	}
	if err != nil {
		t.fail(err)
		return
	}
	sapling.Return()
	x.count(&sapling)
	t.conn, t.wire, t.flags, t.secure, t.signs, t.demands = w, sapling.wire, sapling.flags, sapling.secure, sapling.signs, sapling.demands
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

// until returns a channel that tells when the operation's time is over, nil if it has no end.
func (x *call) until() <-chan time.Time {
	if x.Deadline.IsZero() {
		return nil
	}
	return time.After(time.Until(x.Deadline))
}

// A loose is a connection that one goroutine may read while others write, one at a time.
type loose struct {
	net.Conn
	stop func() bool // of the context given to Begin
}

var _ wire = (*loose)(nil)

// dialLoose connects to the server that the call is at.
func dialLoose(x *call) (*loose, error) {
	d := net.Dialer{Deadline: x.Deadline}
	c, err := d.DialContext(x.Ctx, "tcp", x.at.name)
	if err != nil {
		return nil, fmt.Errorf("connect to %s: %w", x.at.name, err)
	}
	w := &loose{Conn: c}
	return w, w.Begin(x.Ctx, x.Deadline)
}

// Begin sets until when calls may last.
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
