//go:build !linux

package tcp

import (
	"errors"
	"io"
	"net"
	"net/netip"
	"sync"
	"time"
)

// A socket on a system for which nothing better has been written: a connection of package net.
type socket struct {
	mu       sync.Mutex // guards deadline and conn against an interruption while connecting
	conn     net.Conn
	deadline time.Time
	to       netip.AddrPort
	posed    []byte // nil
	waited   bool   // unknown, so requests are never left to recv
}

func (s *socket) open(to netip.AddrPort) error {
	s.to = to
	return nil
}

func (s *socket) connected() bool { return false }

func (s *socket) connect(to netip.AddrPort) error {
	s.mu.Lock()
	deadline := s.deadline
	s.mu.Unlock()
	conn, err := (&net.Dialer{Deadline: deadline}).Dial("tcp", to.String())
	if err != nil {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.conn = conn
	return conn.SetDeadline(s.deadline)
}

func (s *socket) recv(p []byte, l Lender) (int, error) {
	if l != nil {
		p = l.Lend()
	}
	n, err := s.conn.Read(p)
	if errors.Is(err, io.EOF) || n > 0 {
		return n, nil
	}
	return n, err
}

func (s *socket) send(p []byte, _ bool) (int, error) { return s.conn.Write(p) }

// quiet has no way to look without waiting; the next exchange detects a closed connection.
func (s *socket) quiet() bool { return true }

func (s *socket) setDeadline(t time.Time) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.deadline = t
	if s.conn != nil {
		_ = s.conn.SetDeadline(t) // fails only on a closed connection, which has no deadline
	}
}

func (s *socket) close() error {
	if s.conn == nil {
		return nil
	}
	return s.conn.Close()
}

func (c *Conn) discard() error {
	buf := make([]byte, min(c.long.left, 256<<10))
	for c.long.left > 0 {
		n, err := c.sock.recv(buf[:min(c.long.left, int64(len(buf)))], nil)
		switch {
		case err != nil:
			if err = c.again(err); err != nil {
				return err
			}
		case n == 0:
			return io.ErrUnexpectedEOF
		default:
			c.progress(n, &c.in)
		}
	}
	return nil
}

func (c *Conn) discardFrames() error {
	f := c.frames
	buf := make([]byte, 64<<10)
	for {
		to := f.Head[f.Have:]
		if f.Drop > 0 {
			to = buf[:min(f.Drop, int64(len(buf)))]
		}
		n, err := c.Read(to)
		switch {
		case errors.Is(err, io.EOF):
			return io.ErrUnexpectedEOF
		case err != nil:
			return err
		case f.Drop > 0:
			f.Drop -= int64(n)
		default:
			if f.Have += n; f.Have == len(f.Head) && !f.headRead() {
				return nil
			}
		}
	}
}

func (c *Conn) sendBulk() error {
	for c.long.left > 0 {
		rest := c.long.bytes[int64(len(c.long.bytes))-c.long.left:]
		sent, err := c.write(rest[:min(len(rest), slice)], false)
		c.out -= int64(sent) // progress counts it
		c.progress(sent, &c.out)
		if err != nil {
			return err
		}
	}
	return nil
}

// listening is a listener of package net.
type listening struct{ tcp *net.TCPListener }

// open listens on a port of the kernel's choice.
func (l *listening) open(on netip.Addr) (err error) {
	l.tcp, err = net.ListenTCP("tcp", net.TCPAddrFromAddrPort(netip.AddrPortFrom(on, 0)))
	return err
}

func (l *listening) port() uint16 { return l.tcp.Addr().(*net.TCPAddr).AddrPort().Port() }

func (l *listening) setDeadline(t time.Time) {
	_ = l.tcp.SetDeadline(t) // fails only on a closed socket, which has no deadline
}

func (l *listening) close() error { return l.tcp.Close() }

// accept makes c the next connection.
func (l *listening) accept(c *Conn) error {
	conn, err := l.tcp.AcceptTCP()
	if err != nil {
		return err
	}
	c.peer = conn.RemoteAddr().(*net.TCPAddr).AddrPort()
	c.sock.conn = conn
	return nil
}

// Local returns the address of this side, the zero one if it is not known.
func (c *Conn) Local() netip.AddrPort {
	if a, ok := c.sock.conn.LocalAddr().(*net.TCPAddr); ok {
		return a.AddrPort()
	}
	return netip.AddrPort{}
}

// Break ends the connection both ways: all waiting calls return, and the only valid call after it
// is Close. It may be called by any goroutine before Close.
func (c *Conn) Break() { _ = c.sock.conn.Close() }
