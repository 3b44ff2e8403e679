package wire

import (
	"crypto/tls"
	"net"
	"sync"
	"time"
)

// A turnstile is a listener through which only so many come at a time that
// have not shown a token yet. The others wait outside, in the kernel's queue.
type turnstile struct {
	net.Listener
	room   chan struct{}
	once   sync.Once
	closed chan struct{}
}

// Accept implements net.Listener.
func (t *turnstile) Accept() (net.Conn, error) {
	select {
	case t.room <- struct{}{}:
	case <-t.closed:
		return nil, net.ErrClosed
	}
	c, err := t.Listener.Accept()
	if err != nil {
		<-t.room
		return nil, err
	}
	v := &visitor{Conn: c, leave: func() { <-t.room }}
	v.out = time.AfterFunc(patience, func() { _ = c.Close() })
	return v, nil
}

// Close implements net.Listener.
func (t *turnstile) Close() error {
	t.once.Do(func() { close(t.closed) })
	return t.Listener.Close()
}

// A visitor is a connection. Until it is known it takes room, and is thrown out
// after a while.
type visitor struct {
	net.Conn
	once  sync.Once
	leave func()
	out   *time.Timer
}

// known notes that a token was shown.
func (v *visitor) known() { v.once.Do(func() { v.out.Stop(); v.leave() }) }

// Close implements net.Conn.
func (v *visitor) Close() error {
	v.known()
	return v.Conn.Close()
}

type visitorKey struct{}

func visitorOf(c net.Conn) *visitor {
	if secure, ok := c.(*tls.Conn); ok {
		c = secure.NetConn()
	}
	v, _ := c.(*visitor)
	return v
}
