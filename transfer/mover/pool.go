package mover

import (
	"bufio"
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"math"
	"net"
	"net/netip"
	"sync"
	"syscall"
	"time"

	"weir/internal/trust"
	"weir/transfer"
)

const (
	dialTimeout = 30 * time.Second
	idleTime    = 50 * time.Second // servers close idle connections after a minute or more
	maxIdle     = 256              // connections that are kept
	headMax     = 64 << 10         // bytes of a response's head
	headBuffer  = 4 << 10
)

// A place is the destination of a connection, with the pin that authenticates it.
type place struct{ scheme, host, pin string } // host has its port

// A pool makes connections and keeps them for the next request. It is safe for
// concurrent use.
type pool struct {
	roots *x509.CertPool // nil is the system's
	guard func(netip.AddrPort) error
	stall time.Duration

	buffer int // bytes

	mu     sync.Mutex
	idle   map[place][]*conn
	kept   int
	closed bool
}

// A conn is a connection for one request at a time.
type conn struct {
	net.Conn
	tcp   *net.TCPConn // below TLS, if there is any
	plain *net.TCPConn // the same without TLS: the kernel may take bytes from it; nil with TLS
	in    *bufio.Reader
	limit io.LimitedReader // the reader below in; it bounds the head
	to    place
	since time.Time // when it became idle
	lowat int32     // see gather
}

// get returns a connection to a place; kept is true if it was used before. A connection for a
// single question was never used before.
func (p *pool) get(ctx context.Context, to place, alone bool) (c *conn, kept bool, err error) {
	for !alone {
		c := p.take(to)
		if c == nil {
			break
		}
		if time.Since(c.since) < idleTime && quiet(c) {
			return c, true, nil
		}
		_ = c.Close() // its errors do not matter
	}
	c, err = p.dial(ctx, to)
	return c, false, err
}

func (p *pool) take(to place) *conn {
	p.mu.Lock()
	defer p.mu.Unlock()
	list := p.idle[to]
	if len(list) == 0 {
		return nil
	}
	c := list[len(list)-1] // the most recently used
	list[len(list)-1] = nil
	if p.idle[to] = list[:len(list)-1]; len(list) == 1 {
		delete(p.idle, to)
	}
	p.kept--
	return c
}

// put keeps c for the next request.
func (p *pool) put(c *conn) {
	p.mu.Lock()
	full := p.closed || p.kept >= maxIdle
	if !full {
		if p.idle == nil {
			p.idle = map[place][]*conn{}
		}
		c.since = time.Now()
		p.idle[c.to] = append(p.idle[c.to], c)
		p.kept++
	}
	p.mu.Unlock()
	if full {
		_ = c.Close() // it was only kept for reuse
	}
}

// close closes the connections that are kept.
func (p *pool) close() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.closed = true
	for _, list := range p.idle {
		for _, c := range list {
			_ = c.Close() // nothing is under way on it
		}
	}
	p.idle = nil
}

func (p *pool) dial(ctx context.Context, to place) (*conn, error) {
	d := net.Dialer{Timeout: min(dialTimeout, p.stall), Control: p.control}
	nc, err := d.DialContext(ctx, "tcp", to.host)
	if err != nil {
		return nil, err
	}
	c := &conn{Conn: nc, to: to}
	c.tcp, _ = nc.(*net.TCPConn)
	if to.scheme == "https" {
		if c.Conn, err = p.secure(ctx, nc, to); err != nil {
			return nil, errors.Join(fmt.Errorf("TLS with %s: %w", to.host, err), nc.Close())
		}
	} else {
		c.plain = c.tcp
	}
	c.limit = io.LimitedReader{R: c.Conn, N: math.MaxInt64}
	c.in = bufio.NewReaderSize(&c.limit, headBuffer)
	return c, nil
}

// control applies the guard to an address, after names are looked up.
func (p *pool) control(_, address string, _ syscall.RawConn) error {
	if p.guard == nil {
		return nil
	}
	to, err := netip.ParseAddrPort(address)
	if err != nil {
		return err
	}
	if err := p.guard(to); err != nil {
		return &trouble{fault: transfer.Denied, reason: err.Error(), err: err}
	}
	return nil
}

func (p *pool) secure(ctx context.Context, nc net.Conn, to place) (net.Conn, error) {
	host, _, err := net.SplitHostPort(to.host)
	if err != nil {
		return nil, err
	}
	conf := &tls.Config{ServerName: host, RootCAs: p.roots, MinVersion: tls.VersionTLS12, NextProtos: []string{"http/1.1"}}
	if to.pin != "" {
		trust.Pin(conf, to.pin)
	}
	c := tls.Client(nc, conf)
	ctx, cancel := context.WithTimeout(ctx, min(dialTimeout, p.stall))
	defer cancel()
	return c, c.HandshakeContext(ctx)
}
