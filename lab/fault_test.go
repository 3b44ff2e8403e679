package lab_test

import (
	"errors"
	"net"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"weir/internal/ports"
	"weir/internal/require"
	"weir/lab"
	"weir/lab/labtest"
)

func TestMissingProgram(t *testing.T) {
	t.Setenv("PATH", t.TempDir())
	_, err := lab.NginxConfig{Config: lab.Config{Programs: map[string]string{"nginx": "/nowhere/nginx"}}}.Start(t.Context())
	if !errors.Is(err, os.ErrNotExist) {
		t.Errorf("nginx at a wrong path: %v", err)
	}
	_, err = lab.Find("xrdcp")
	var missing *lab.MissingError
	if !errors.As(err, &missing) || missing.Package != "xrootd-client" ||
		!strings.Contains(err.Error(), "install Debian package xrootd-client") {
		t.Errorf("a program that is not there: %v", err)
	}
	_, err = lab.Find("no-such-program")
	if err == nil || err.Error() != "program no-such-program not found" {
		t.Errorf("a program that no package brings: %v", err)
	}
}

func TestBrokenConfig(t *testing.T) {
	for name, c := range map[string]struct {
		program string
		start   func() (*lab.System, error)
		want    string
	}{
		"nginx": {"nginx", func() (*lab.System, error) {
			return lab.NginxConfig{Extra: "no_such_directive on;"}.Start(t.Context())
		}, `unknown directive "no_such_directive"`},
		"xrootd": {"xrootd", func() (*lab.System, error) {
			return lab.XRootDConfig{Extra: "xrd.port none-such"}.Start(t.Context())
		}, "none-such"},
		"nginx user": {"nginx", func() (*lab.System, error) {
			return lab.NginxConfig{User: "a:b"}.Start(t.Context())
		}, "colon"},
	} {
		t.Run(name, func(t *testing.T) {
			labtest.Need(t, c.program)
			t.Setenv("TMPDIR", shared(t))
			s, err := c.start()
			if err == nil {
				t.Fatal(errors.Join(errors.New("it came up"), s.Stop()))
			}
			if !strings.Contains(err.Error(), c.want) {
				t.Errorf("error does not hold the server's own words %q: %v", c.want, err)
			}
			if left := folders(t); len(left) > 0 {
				t.Errorf("folders left: %q", left)
			}
		})
	}
}

// folders lists lab's folders in the temporary folder.
func folders(t *testing.T) []string {
	t.Helper()
	names, err := filepath.Glob(filepath.Join(os.TempDir(), "weir-lab-*"))
	require.NoError(t, err)
	return names
}

// A program that runs but never responds is given up in time, with an error.
func TestSilentServer(t *testing.T) {
	program := filepath.Join(t.TempDir(), "nginx")
	require.NoError(t, os.WriteFile(program, []byte("#!/bin/sh\necho warming up\nexec tail -f /dev/null\n"), 0o755))
	require.NoError(t, os.Chmod(filepath.Dir(program), 0o755))
	public(t, program)
	c := lab.Config{Programs: map[string]string{"nginx": program}, Ready: 300 * time.Millisecond}
	_, err := lab.NginxConfig{Config: c}.Start(t.Context())
	if err == nil || !strings.Contains(err.Error(), "no right answer in time") || !strings.Contains(err.Error(), "warming up") {
		t.Errorf("a silent server: %v", err)
	}
}

// public opens the folders above path, which tests keep to themselves.
func public(t *testing.T, path string) {
	t.Helper()
	for dir := filepath.Dir(path); dir != "/"; dir = filepath.Dir(dir) {
		info, err := os.Stat(dir)
		require.NoError(t, err)
		if info.Mode().Perm()&0o005 != 0o005 {
			require.NoError(t, os.Chmod(dir, 0o755))
		}
	}
}

// Another program takes the port while the server is down. The lab's own reservation makes this
// impossible, so the test releases it first.
func TestPortInUse(t *testing.T) {
	s := labtest.Start(t, lab.NginxConfig{})
	s.Kill()
	address := s.Ports()[0].Address()
	stranger, err := net.Listen("tcp", address)
	require.NoError(t, err)
	err = s.Restart(t.Context())
	_ = stranger.Close()
	if err == nil || !strings.Contains(err.Error(), "Address already in use") {
		t.Fatalf("restart on a port in use: %v", err)
	}
	if err := s.Restart(t.Context()); err != nil {
		t.Fatalf("restart on a port that is free again: %v", err)
	}
}

// Sockets that leave the choice of a port to the kernel, but may have only the reserved port, get
// no port, but the lab's own server gets it.
func TestReservedPortIsKept(t *testing.T) {
	p, err := ports.Reserve("127.0.0.1")
	require.NoError(t, err)
	defer p.Free()
	only := lab.OnlyPort(p.Number())
	l, err := (&net.ListenConfig{Control: only}).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if errors.Is(err, unix.ENOPROTOOPT) {
		t.Skip("this kernel cannot narrow a socket's range of ports (Linux 6.3 can)")
	}
	if !errors.Is(err, unix.EADDRINUSE) {
		t.Errorf("a stranger listens: %v, %v", l, err)
	}
	server, err := net.Listen("tcp", p.Address())
	if err != nil {
		t.Fatalf("its own server cannot listen: %v", err)
	}
	_ = server.Close()
	other, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	defer other.Close()
	conn, err := (&net.Dialer{Control: only}).DialContext(t.Context(), "tcp", other.Addr().String())
	if !errors.Is(err, unix.EADDRNOTAVAIL) {
		t.Errorf("a connection starts from it: %v, %v", conn, err)
	}
	p.Free()
	if l, err = (&net.ListenConfig{Control: only}).Listen(t.Context(), "tcp", "127.0.0.1:0"); err != nil {
		t.Fatalf("the port was given back, but cannot be had: %v", err)
	}
	_ = l.Close()
}

func TestFolders(t *testing.T) {
	dir := t.TempDir()
	public(t, filepath.Join(dir, "x"))
	full := filepath.Join(dir, "full")
	require.NoError(t, os.MkdirAll(filepath.Join(full, "precious"), 0o755))
	labtest.Need(t, "nginx")
	_, err := lab.NginxConfig{Config: lab.Config{Dir: full}}.Start(t.Context())
	if err == nil || !strings.Contains(err.Error(), "not empty") {
		t.Errorf("a folder with something in it: %v", err)
	}
	if _, err := os.Stat(filepath.Join(full, "precious")); err != nil {
		t.Errorf("it is not ours: %v", err)
	}
	for _, c := range []struct {
		name string
		made bool // beforehand, by us
	}{{"mine", true}, {"new", false}, {"missing/new", false}} {
		given := filepath.Join(dir, c.name)
		if c.made {
			require.NoError(t, os.Mkdir(given, 0o755))
		}
		s := labtest.Start(t, lab.NginxConfig{Config: lab.Config{Dir: given}})
		require.NoError(t, s.Stop())
		if _, err := os.Stat(given); (err == nil) != c.made {
			t.Errorf("folder %s after stop: %v", c.name, err)
		}
	}
	if _, err := (lab.NginxConfig{Config: lab.Config{Dir: filepath.Join(dir, "a b;c")}}.Start(t.Context())); err == nil ||
		!strings.Contains(err.Error(), "cannot be named") {
		t.Errorf("a folder that ends a line of the configuration: %v", err)
	}
	s := labtest.Start(t, lab.NginxConfig{})
	if err := s.WriteFile("../x", nil); err == nil {
		t.Error("a file outside the data folder was written")
	}
}

// shared is a folder for the test that other users may pass through.
func shared(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	public(t, filepath.Join(dir, "x"))
	require.NoError(t, os.Chmod(dir, 0o1777))
	return dir
}

// within polls a condition that is not reported, such as the end of another program's process.
func within(t *testing.T, limit time.Duration, what string, ok func() bool) {
	t.Helper()
	deadline := time.After(limit)
	tick := time.NewTicker(10 * time.Millisecond)
	defer tick.Stop()
	for !ok() {
		select {
		case <-deadline:
			t.Fatalf("waited %v for %s", limit, what)
		case <-tick.C:
		}
	}
}

func TestSignalStopsTheService(t *testing.T) {
	s := labtest.Start(t, lab.XRootDConfig{})
	require.NoError(t, s.Signal(syscall.SIGSTOP))
	conn, err := net.Dial("tcp", s.Ports()[0].Address()) // the kernel takes the connection
	require.NoError(t, err)
	defer conn.Close()
	require.NoError(t, conn.SetDeadline(time.Now().Add(100*time.Millisecond)))
	if _, err := conn.Read(make([]byte, 1)); !errors.Is(err, os.ErrDeadlineExceeded) {
		t.Errorf("a stopped server: %v, want silence", err)
	}
	require.NoError(t, s.Signal(syscall.SIGCONT))
	if err := s.Ask(t.Context()); err != nil {
		t.Errorf("after it went on: %v", err)
	}
	if err := s.Signal(syscall.SIGSTOP); err != nil { // also a stopped server can be ended
		t.Fatal(err)
	}
	if err := s.Stop(); err != nil {
		t.Error(err)
	}
}
