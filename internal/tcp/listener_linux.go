package tcp

import (
	"net/netip"
	"os"
	"syscall"
	"time"
)

// waitingRoom is the number of connections that may wait to be accepted.
const waitingRoom = 1024

// listening is a socket of the runtime's poller that listens.
type listening struct {
	file *os.File
	raw  syscall.RawConn
	at   netip.AddrPort
}

// open listens on a port of the kernel's choice.
func (l *listening) open(on netip.Addr) error {
	domain, to := syscall.AF_INET6, syscall.Sockaddr(&syscall.SockaddrInet6{Addr: on.As16()})
	if a := on.Unmap(); a.Is4() {
		domain, to = syscall.AF_INET, &syscall.SockaddrInet4{Addr: a.As4()}
	} else if zone, err := zoneIndex(on.Zone()); err != nil {
		return err
	} else if zone != 0 {
		to = &syscall.SockaddrInet6{Addr: on.As16(), ZoneId: zone}
	}
	fd, err := syscall.Socket(domain, syscall.SOCK_STREAM|syscall.SOCK_NONBLOCK|syscall.SOCK_CLOEXEC, syscall.IPPROTO_TCP)
	if err != nil {
		return os.NewSyscallError("socket", err)
	}
	name, err := bindAndListen(fd, to)
	if err != nil {
		_ = syscall.Close(fd) // the first error is returned
		return err
	}
	l.at = addressOf(name)
	l.file = os.NewFile(uintptr(fd), "tcp")
	l.raw, err = l.file.SyscallConn()
	return err
}

func bindAndListen(fd int, to syscall.Sockaddr) (syscall.Sockaddr, error) {
	if err := syscall.Bind(fd, to); err != nil {
		return nil, os.NewSyscallError("bind", err)
	}
	if err := syscall.Listen(fd, waitingRoom); err != nil {
		return nil, os.NewSyscallError("listen", err)
	}
	name, err := syscall.Getsockname(fd)
	return name, os.NewSyscallError("getsockname", err)
}

func (l *listening) port() uint16 { return l.at.Port() }

func (l *listening) setDeadline(t time.Time) {
	_ = l.file.SetDeadline(t) // fails only on a closed socket, which has no deadline
}

func (l *listening) close() error { return l.file.Close() }

// accept makes c the next connection.
func (l *listening) accept(c *Conn) error {
	var fd int
	var from syscall.Sockaddr
	var failed error
	err := l.raw.Read(func(listens uintptr) bool {
		for {
			fd, from, failed = syscall.Accept4(int(listens), syscall.SOCK_NONBLOCK|syscall.SOCK_CLOEXEC)
			if failed != syscall.EINTR && failed != syscall.ECONNABORTED {
				return failed != syscall.EAGAIN
			}
		}
	})
	if err != nil {
		return err
	}
	if failed != nil {
		return os.NewSyscallError("accept", failed)
	}
	c.peer = addressOf(from)
	return c.sock.adopt(fd)
}

func addressOf(from syscall.Sockaddr) netip.AddrPort {
	switch a := from.(type) {
	case *syscall.SockaddrInet4:
		return netip.AddrPortFrom(netip.AddrFrom4(a.Addr), uint16(a.Port))
	case *syscall.SockaddrInet6:
		return netip.AddrPortFrom(netip.AddrFrom16(a.Addr).Unmap(), uint16(a.Port))
	}
	return netip.AddrPort{}
}

// Local returns the address of this side, the zero one if it is not known.
func (c *Conn) Local() netip.AddrPort {
	var at netip.AddrPort
	_ = c.sock.raw.Control(func(fd uintptr) { // a closed socket has no descriptor
		if name, err := syscall.Getsockname(int(fd)); err == nil {
			at = addressOf(name)
		}
	})
	return at
}

// Break ends the connection both ways: all waiting calls return, and the only valid call after it
// is Close. It may be called by any goroutine before Close.
func (c *Conn) Break() {
	_ = c.sock.raw.Control(func(fd uintptr) { // a closed connection needs no shutdown
		_ = syscall.Shutdown(int(fd), syscall.SHUT_RDWR) // a broken connection needs no shutdown
	})
}
