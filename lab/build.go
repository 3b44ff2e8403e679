package lab

import (
	"bytes"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"syscall"
	"text/template"

	"golang.org/x/sys/unix"
)

// The methods below put a system together: its ports, files and programs. After the first that fails the others do
// nothing and return zero values, so that a system is described without an error after each line; launch returns that
// first error.

// fail notes that the system cannot be put together.
func (s *System) fail(err error) {
	if s.err == nil {
		s.err = err
	}
}

// newPort reserves one more port for s, on all addresses or on 127.0.0.1.
func (s *System) newPort(all bool) *port {
	if s.err != nil {
		return &port{fd: -1}
	}
	p, err := reserve(all)
	if err != nil {
		s.fail(err)
		return &port{fd: -1}
	}
	s.ports = append(s.ports, p)
	return p
}

// newDir makes a folder below Dir for the servers' user and returns its path.
func (s *System) newDir(name string) string {
	path := filepath.Join(s.Dir, name)
	if s.err == nil {
		s.fail(s.mkdir(path))
	}
	return path
}

// file writes a file below Dir, readable by the servers' user only, and returns its path.
func (s *System) file(name string, content []byte) string {
	path := filepath.Join(s.Dir, name)
	if s.err == nil {
		_, err := s.write(name, content)
		s.fail(err)
	}
	return path
}

// openFile writes a file below Dir that everyone may read, with these permissions.
func (s *System) openFile(name string, content []byte, mode os.FileMode) string {
	path := s.file(name, content)
	if s.err == nil {
		s.fail(s.own(path, mode))
	}
	return path
}

// config fills in a configuration file below Dir and returns its path.
func (s *System) config(name, text string, values any) string {
	return s.file(name, s.render(text, values))
}

func (s *System) render(text string, values any) []byte {
	if s.err != nil {
		return nil
	}
	b, err := render(text, values)
	s.fail(err)
	return b
}

// render fills in a template.
func render(text string, values any) ([]byte, error) {
	t, err := template.New("").Parse(text)
	if err != nil {
		return nil, err
	}
	var b bytes.Buffer
	err = t.Execute(&b, values)
	return b.Bytes(), err
}

// program finds a program as c says.
func (s *System) program(c Config, name string) string {
	if s.err != nil {
		return ""
	}
	path, err := c.program(name)
	s.fail(err)
	return path
}

// part adds a process to s that runs in a scratch folder of its own.
func (s *System) part(name string, ask question, argv ...string) *process {
	run := s.newDir(filepath.Join("run", name))
	p := &process{
		name: name, argv: argv, ask: ask, dir: run, log: s.file(name+".out", nil), user: s.user,
		env: append([]string{"PATH=" + os.Getenv("PATH"), "HOME=" + run, "TMPDIR=" + run, "LC_ALL=C"}, s.env...),
	}
	s.parts = append(s.parts, p)
	return p
}

// A port is a TCP port held by a socket that is bound but does not listen. As long as it is held, the kernel gives
// the port to no outgoing connection and to no one who asks for any free port; connections to it are refused; and a
// server that sets SO_REUSEADDR, as all servers do, can listen on it. So nothing can take a port between choosing it
// and using it, nor while its server is down.
type port struct {
	fd     int
	number int
}

// reserve holds a port that the kernel chooses. A server that will listen on all addresses needs the port on all of
// them.
func reserve(all bool) (*port, error) {
	syscall.ForkLock.RLock()
	fd, err := unix.Socket(unix.AF_INET, unix.SOCK_STREAM, 0)
	if err == nil {
		unix.CloseOnExec(fd)
	}
	syscall.ForkLock.RUnlock()
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
