package serve

import (
	"context"
	"crypto/tls"
	"net"
	"sync"
	"syscall"
	"time"

	"weir/internal/preauth"
)

// A listener counts connections and wraps them in the connections of this package.
type listener struct {
	net.Listener
	s *Server
}

// Accept implements net.Listener.
func (l *listener) Accept() (net.Conn, error) {
	nc, err := l.Listener.Accept()
	if err != nil {
		return nil, err
	}
	c := &conn{Conn: nc, s: l.s, up: newPacer(l.s.conf.Rate), down: newPacer(l.s.conf.Rate)}
	if sc, ok := nc.(syscall.Conn); ok {
		c.raw, _ = sc.SyscallConn() // without it, bytes are copied
	}
	l.s.metrics.opened.Add(1)
	l.s.metrics.open.Add(1)
	l.s.silent.add(c)
	return c, nil
}

// A silence is the set of connections that have not sent anything yet.
// net/http waits for them when it ends; nothing is lost if they are closed.
type silence struct {
	mu    sync.Mutex
	conns map[*conn]struct{}
}

func (q *silence) add(c *conn) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.conns == nil {
		q.conns = map[*conn]struct{}{}
	}
	q.conns[c] = struct{}{}
}

func (q *silence) remove(c *conn) {
	q.mu.Lock()
	defer q.mu.Unlock()
	delete(q.conns, c)
}

func (q *silence) end() {
	q.mu.Lock()
	defer q.mu.Unlock()
	for c := range q.conns {
		_ = c.Conn.Close() // its reader notices and closes it once more
	}
}

// A conn counts the bytes of a connection as they move, keeps its pace, ends
// it when it stalls, and has the kernel send files (see send.go). One
// goroutine writes, one reads.
type conn struct {
	net.Conn
	s        *Server
	raw      syscall.RawConn // nil if the kernel cannot be called directly
	up, down *pacer          // to the server, to the client
	wrote    time.Time       // when the write deadline was last set
	holding  bool            // the next Write waits for the data after it
	held     []byte          // the waiting data
	heard    bool            // it has sent something

	looked, certified bool // the client's certificate was checked; it is accepted
	closing           sync.Once
}

type connKey struct{}

// withConn puts c where handlers find it, with or without TLS around it.
func withConn(ctx context.Context, c net.Conn) context.Context {
	if t, ok := c.(*tls.Conn); ok {
		c = t.NetConn()
	}
	return context.WithValue(ctx, connKey{}, c)
}

// Read implements net.Conn.
func (c *conn) Read(p []byte) (int, error) {
	if c.up != nil || c.s.total.up != nil {
		p = p[:c.s.total.up.quantum(c.up.quantum(len(p)))]
	}
	n, err := c.Conn.Read(p)
	if n > 0 {
		if !c.heard {
			c.heard = true
			c.s.silent.remove(c)
		}
		c.s.metrics.wireIn.Add(int64(n))
		c.wait(c.up, c.s.total.up, n)
	}
	return n, err
}

// Write implements net.Conn.
func (c *conn) Write(p []byte) (int, error) {
	if c.holding {
		c.held = append(c.held, p...)
		return len(p), nil
	}
	done := 0
	for {
		n := c.quantum(len(p) - done)
		c.wait(c.down, c.s.total.down, n)
		c.touch()
		m, err := c.Conn.Write(p[done : done+n])
		c.s.metrics.wireOut.Add(int64(m))
		done += m
		if err != nil || done == len(p) {
			return done, err
		}
	}
}

// hold delays the next written data until the body, so that both leave in one packet and one system
// call. release undoes it.
func (c *conn) hold() { c.holding = true }

func (c *conn) release() error {
	c.holding = false
	if len(c.held) == 0 {
		return nil
	}
	_, err := c.Write(c.held)
	c.held = c.held[:0]
	return err
}

func (c *conn) quantum(n int) int { return c.s.total.down.quantum(c.down.quantum(n)) }

// wait keeps the pace of the connection and of all together.
func (c *conn) wait(own, all *pacer, n int) {
	if own == nil && all == nil {
		return
	}
	now := time.Now()
	pause(max(own.take(now, n), all.take(now, n)), c.s.stop)
}

// touch moves the write deadline ahead, if it was not moved just now.
func (c *conn) touch() {
	if now := time.Now(); now.Sub(c.wrote) > c.s.conf.StallTimeout/8 {
		_ = c.Conn.SetWriteDeadline(now.Add(c.s.conf.StallTimeout))
		c.wrote = now
	}
}

// SetDeadline implements net.Conn.
func (c *conn) SetDeadline(t time.Time) error {
	c.wrote = time.Time{}
	return c.Conn.SetDeadline(t)
}

// SetWriteDeadline implements net.Conn.
func (c *conn) SetWriteDeadline(t time.Time) error {
	c.wrote = time.Time{}
	return c.Conn.SetWriteDeadline(t)
}

// Close implements net.Conn.
func (c *conn) Close() error {
	c.closing.Do(func() {
		c.s.metrics.open.Add(-1)
		c.s.silent.remove(c)
	})
	return c.Conn.Close()
}

// authenticated releases the connection's place among the connections without credentials. c may be
// nil.
func (c *conn) authenticated() {
	if c == nil {
		return
	}
	if limited, ok := c.Conn.(*preauth.Conn); ok {
		limited.Authenticated()
	}
}

// CloseWrite lets net/http end an answer before it closes the connection, so
// that the client can read it although its request was not read to its end.
func (c *conn) CloseWrite() error {
	if t, ok := c.Conn.(interface{ CloseWrite() error }); ok {
		return t.CloseWrite()
	}
	return nil
}
