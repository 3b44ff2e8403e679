package lab

import (
	"bytes"
	"net"
	"os"
	"path/filepath"
	"syscall"
	"text/template"

	"weir/internal/ports"

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
		return &port{&ports.Port{}}
	}
	host := "127.0.0.1"
	if all {
		host = "0.0.0.0"
	}
	held, err := ports.Reserve(host)
	if err != nil {
		s.fail(err)
		return &port{&ports.Port{}}
	}
	p := &port{held}
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

// program finds a program according to c.
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

// A port is a reserved port that its system holds until it is stopped.
type port struct{ *ports.Port }

// OnlyPort returns a Control function for a net.ListenConfig or net.Dialer that tries to get a
// reserved port: for a socket without a fixed port the kernel then chooses port, or fails. The
// function returns ENOPROTOOPT if the kernel is older than Linux 6.3.
func OnlyPort(port int) func(string, string, syscall.RawConn) error {
	return func(_, _ string, c syscall.RawConn) error {
		var err error
		if e := c.Control(func(fd uintptr) {
			err = unix.SetsockoptInt(int(fd), unix.IPPROTO_IP, localPortRange, port<<16|port)
		}); e != nil {
			return e
		}
		return err
	}
}

// localPortRange is IP_LOCAL_PORT_RANGE of Linux.
const localPortRange = 51

// local returns the address under the name that certificates are made for.
func (p *port) local() string { return net.JoinHostPort("localhost", p.String()) }
