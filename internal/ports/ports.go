// Package ports reserves TCP ports for servers that end and are started again at the same address.
package ports

import (
	"fmt"
	"net"
	"net/netip"
	"strconv"
	"syscall"

	"golang.org/x/sys/unix"
)

// A Port is a TCP port held by a socket that is bound but does not listen. As long as it is held,
// the kernel gives the port neither to an outgoing connection nor to a process that requests any
// free port; connections to it are refused; and a server that sets SO_REUSEADDR, as all servers do,
// can listen on it. So nothing can take a port between choosing it and using it, nor while its
// server is down. The zero Port holds nothing. Its methods are for one goroutine at a time.
type Port struct {
	held bool
	fd   int
	at   netip.AddrPort
}

// Reserve holds a port of the IPv4 address host that the kernel chooses. A server that will listen on all addresses
// needs the port on all of them, which is the host 0.0.0.0. The caller frees the port.
func Reserve(host string) (*Port, error) {
	p := &Port{}
	if err := p.reserve(host); err != nil {
		p.Free()
		return nil, fmt.Errorf("reserve a port: %w", err)
	}
	return p, nil
}

func (p *Port) reserve(host string) error {
	a, err := netip.ParseAddr(host)
	if err != nil {
		return err
	}
	if !a.Is4() {
		return fmt.Errorf("%s is not an IPv4 address", host)
	}
	syscall.ForkLock.RLock()
	if p.fd, err = unix.Socket(unix.AF_INET, unix.SOCK_STREAM, 0); err == nil {
		p.held = true
		unix.CloseOnExec(p.fd)
	}
	syscall.ForkLock.RUnlock()
	if err != nil {
		return err
	}
	if err := unix.SetsockoptInt(p.fd, unix.SOL_SOCKET, unix.SO_REUSEADDR, 1); err != nil {
		return err
	}
	if err := unix.Bind(p.fd, &unix.SockaddrInet4{Addr: a.As4()}); err != nil {
		return err
	}
	got, err := unix.Getsockname(p.fd)
	if err != nil {
		return err
	}
	p.at = netip.AddrPortFrom(a, uint16(got.(*unix.SockaddrInet4).Port))
	return nil
}

// Free gives the port back. A second Free does nothing.
func (p *Port) Free() {
	if p.held {
		_ = unix.Close(p.fd)
	}
	p.held = false
}

// Number returns the port's number, which it keeps when it is freed.
func (p *Port) Number() int { return int(p.at.Port()) }

// String returns the port's number.
func (p *Port) String() string { return strconv.Itoa(p.Number()) }

// Address returns where clients on this machine connect: 127.0.0.1 for a port of all addresses.
func (p *Port) Address() string {
	if p.at.Addr().IsUnspecified() {
		return net.JoinHostPort("127.0.0.1", p.String())
	}
	return p.at.String()
}
