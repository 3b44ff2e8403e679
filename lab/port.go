package lab

import (
	"fmt"
	"net"
	"strconv"

	"golang.org/x/sys/unix"
)

// A port is a TCP port held by a socket that is bound but does not listen.
// As long as it is held, the kernel gives the port to no outgoing connection
// and to no one who asks for any free port; connections to it are refused;
// and a server that sets SO_REUSEADDR, as all servers do, can listen on it.
// So nothing can take a port between choosing it and using it, nor while its
// server is down.
type port struct {
	fd     int
	number int
}

// reserve holds a port that the kernel chooses. A server that will listen on
// all addresses needs the port on all of them.
func reserve(all bool) (*port, error) {
	fd, err := unix.Socket(unix.AF_INET, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return nil, fmt.Errorf("reserve a port: %w", err)
	}
	p := &port{fd: fd}
	if p.number, err = bind(fd, all); err != nil {
		p.free()
		return nil, fmt.Errorf("reserve a port: %w", err)
	}
	return p, nil
}

func bind(fd int, all bool) (int, error) {
	if err := unix.SetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_REUSEADDR, 1); err != nil {
		return 0, err
	}
	addr := &unix.SockaddrInet4{Addr: [4]byte{127, 0, 0, 1}}
	if all {
		addr.Addr = [4]byte{}
	}
	if err := unix.Bind(fd, addr); err != nil {
		return 0, err
	}
	got, err := unix.Getsockname(fd)
	if err != nil {
		return 0, err
	}
	return got.(*unix.SockaddrInet4).Port, nil
}

func (p *port) free() {
	if p.fd >= 0 {
		_ = unix.Close(p.fd)
	}
	p.fd = -1
}

func (p *port) String() string { return strconv.Itoa(p.number) }

// address is where clients connect to.
func (p *port) address() string { return net.JoinHostPort("127.0.0.1", p.String()) }

// local is the address under the name that certificates are made for.
func (p *port) local() string { return net.JoinHostPort("localhost", p.String()) }
