package monitor

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"weir/internal/require"
)

func TestListeningSockets(t *testing.T) {
	f := newProcFS("testdata/proc", "")
	for _, c := range []struct {
		addr string
		port int
		want []string
	}{
		{"", 8080, []string{"5001", "5003", "5004"}},
		{"127.0.0.1", 8080, []string{"5001", "5004"}}, // its own and all addresses
		{"10.0.0.10", 8080, []string{"5003", "5004"}},
		{"::1", 8080, []string{"5004"}},
		{"127.0.0.1", 80, []string{"5002"}},
		{"127.0.0.1", 8081, []string{"5005"}}, // IPv4 in IPv6
		{"::1", 8082, []string{"5006"}},
		{"127.0.0.1", 8082, nil},
		{"", 9, nil},
	} {
		var addr netip.Addr
		if c.addr != "" {
			addr = netip.MustParseAddr(c.addr)
		}
		inodes, err := f.listening(addr, c.port)
		require.NoError(t, err)
		var got []string
		for inode := range inodes {
			got = append(got, inode)
		}
		slices.Sort(got)
		if diff := cmp.Diff(c.want, got); diff != "" {
			t.Errorf("%s port %d: %s", c.addr, c.port, diff)
		}
	}
	if _, err := newProcFS("testdata/broken", "").listening(netip.Addr{}, 80); err == nil {
		t.Error("broken tables were read")
	}
}

// fd gives a process of a made /proc a socket.
func (f *fakeProc) fd(pid int, inode string) {
	f.t.Helper()
	dir := filepath.Join(f.root, fmt.Sprint(pid), "fd")
	if err := os.MkdirAll(dir, 0o755); err != nil {
		f.t.Fatal(err)
	}
	if err := os.Symlink("socket:["+inode+"]", filepath.Join(dir, "3")); err != nil {
		f.t.Fatal(err)
	}
}

// TestFamilyOfListener: only a worker holds the socket, as with a port that each worker opens. The
// parent with the same name and all its descendants belong to the service.
func TestFamilyOfListener(t *testing.T) {
	f := newFakeProc(t)
	f.process(fakeProcess{pid: 1, comm: "init"})
	f.process(fakeProcess{pid: 40, ppid: 1, comm: "server"})
	f.process(fakeProcess{pid: 41, ppid: 40, comm: "server"})
	f.process(fakeProcess{pid: 42, ppid: 40, comm: "helper"})
	f.process(fakeProcess{pid: 43, ppid: 42, comm: "helper"})
	f.process(fakeProcess{pid: 50, ppid: 1, comm: "stranger"})
	f.fd(41, "5001")
	f.fd(1, "5004") // an init that opened the socket itself
	l := newLocal(Host{}, Options{proc: f.root, sys: f.root}, addressed("127.0.0.1:8080"), steadyClock())
	defer l.close()
	if _, err := l.look(t.Context()); err != nil {
		t.Fatal(err)
	}
	var pids []int
	for e := range l.service.family.live {
		pids = append(pids, e.pid)
	}
	slices.Sort(pids)
	if diff := cmp.Diff([]int{40, 41, 42, 43}, pids); diff != "" {
		t.Error(diff)
	}
	if _, err := l.fs.servers(netip.Addr{}, 80); !errors.Is(err, errHidden) {
		t.Errorf("a socket that nobody has: %v", err)
	}
	if _, err := l.fs.servers(netip.Addr{}, 81); !errors.Is(err, errNoListener) {
		t.Errorf("no socket: %v", err)
	}
	for _, port := range []int{0, -1, 65536} {
		if _, err := l.fs.servers(netip.Addr{}, port); err == nil || errors.Is(err, errNoListener) {
			t.Errorf("port %d: %v", port, err)
		}
	}
}

// TestHiddenService: a service whose processes cannot be found is reported once and causes no
// further errors.
func TestHiddenService(t *testing.T) {
	f := newFakeProc(t)
	l := newLocal(Host{}, Options{proc: f.root, sys: f.root}, addressed("127.0.0.1:80"), steadyClock())
	defer l.close()
	_, err := l.look(context.Background())
	if err == nil || !strings.Contains(err.Error(), "cannot be seen") {
		t.Fatal(err)
	}
	for range hiddenAgain + 2 {
		if s, err := l.look(context.Background()); s == nil || err != nil {
			t.Fatalf("%v, %v", s, err)
		}
	}
}

func TestContainersProxyIsNamed(t *testing.T) {
	f := newFakeProc(t)
	f.process(fakeProcess{pid: 40, ppid: 1, comm: "docker-proxy"})
	f.fd(40, "5002")
	l := newLocal(Host{}, Options{proc: f.root, sys: f.root}, addressed("127.0.0.1:80"), steadyClock())
	defer l.close()
	if _, err := l.look(context.Background()); err == nil || !strings.Contains(err.Error(), "runs in a container") {
		t.Fatal(err)
	}
}

func TestOwnListener(t *testing.T) {
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	defer func() { _ = ln.Close() }()
	pids, err := newProcFS("", "").servers(netip.Addr{}, ln.Addr().(*net.TCPAddr).Port)
	if err != nil || !slices.Contains(pids, os.Getpid()) {
		t.Errorf("%v, %v", pids, err)
	}
}

func TestSplitTarget(t *testing.T) {
	for _, c := range []struct {
		target, host string
		port         int
	}{
		{"http://h/x", "h", 80}, {"davs://h:8443/x", "h", 8443}, {"root://h//x", "h", 1094}, {"gsiftp://h/x", "h", 2811},
		{"https://[::1]/", "::1", 443}, {"h:99", "h", 99}, {"h", "h", 0}, {"file:///x", "", 0},
	} {
		host, port, err := splitTarget(c.target)
		if err != nil || host != c.host || port != c.port {
			t.Errorf("%s: %s, %d, %v", c.target, host, port, err)
		}
	}
	for _, bad := range []string{"http://h:port/", "http://[::1", "h:x"} {
		if _, _, err := splitTarget(bad); err == nil {
			t.Errorf("%q was taken", bad)
		}
	}
}

func addressed(address string) []netip.AddrPort {
	return []netip.AddrPort{netip.MustParseAddrPort(address)}
}
