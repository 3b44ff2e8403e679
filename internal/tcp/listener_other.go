//go:build !linux

package tcp

import (
	"net"
	"net/netip"
	"time"
)

// listening is a listener of package net.
type listening struct{ tcp *net.TCPListener }

// open listens on a port of the kernel's choice.
func (l *listening) open(on netip.Addr) (err error) {
	l.tcp, err = net.ListenTCP("tcp", net.TCPAddrFromAddrPort(netip.AddrPortFrom(on, 0)))
	return err
}

func (l *listening) port() uint16 { return l.tcp.Addr().(*net.TCPAddr).AddrPort().Port() }

func (l *listening) setDeadline(t time.Time) {
	_ = l.tcp.SetDeadline(t) // fails only on a closed socket, where it means nothing
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

// Break ends the connection both ways: whoever waits on it is woken, and it only
// can be closed then. It may be called by any goroutine before Close.
func (c *Conn) Break() { _ = c.sock.conn.Close() }
