package monitor

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"

	"weir/internal/require"
)

// TestLoopbackBytes: the bytes that the loopback interface counts in a download, less the headers,
// are the payload. It runs in a network of its own, because other programs' traffic is on the
// loopback interface too.
func TestLoopbackBytes(t *testing.T) {
	curl := program(t, "curl")
	if os.Getenv("WEIR_PLAY") == "" && os.Getenv("WEIR_OWN_NETWORK") == "" {
		inOwnNetwork(t)
		return
	}
	up(t)
	const size = 256 << 20
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Length", fmt.Sprint(size))
		_, _ = io.CopyN(w, zeros{}, size)
	}))
	defer srv.Close()
	k := &keep{}
	w, err := Start(context.Background(), []Host{{Name: "here"}}, Options{}, k)
	require.NoError(t, err)
	looked(t, k)
	out, err := exec.Command(curl, "-s", "-m", "30", "--noproxy", "*", "-o", "/dev/null", "-w", "%{size_download}", srv.URL).Output()
	if err != nil || string(out) != fmt.Sprint(size) {
		t.Fatalf("curl: %s, %v", out, err)
	}
	require.NoError(t, w.Stop())
	var bytes, packets int64
	for _, s := range k.of("here") {
		for _, n := range s.Nets {
			if n.Name == "lo" {
				bytes, packets = bytes+n.Received, packets+n.PacketsIn
			}
		}
	}
	headers, _ := HeaderBytes("lo", false)
	near(t, "payload on lo", float64(bytes-headers*packets), size, 0.01)
}

type zeros struct{}

func (zeros) Read(b []byte) (int, error) { return len(b), nil }

// inOwnNetwork runs the calling test again where only it has traffic.
func inOwnNetwork(t *testing.T) {
	cmd := exec.Command(os.Args[0], "-test.run=^"+t.Name()+"$", "-test.v")
	cmd.Env = append(os.Environ(), "WEIR_OWN_NETWORK=1")
	cmd.SysProcAttr = &syscall.SysProcAttr{Cloneflags: syscall.CLONE_NEWNET}
	if os.Geteuid() != 0 {
		cmd.SysProcAttr.Cloneflags |= syscall.CLONE_NEWUSER
		cmd.SysProcAttr.UidMappings = []syscall.SysProcIDMap{{ContainerID: 0, HostID: os.Getuid(), Size: 1}}
		cmd.SysProcAttr.GidMappings = []syscall.SysProcIDMap{{ContainerID: 0, HostID: os.Getgid(), Size: 1}}
	}
	out, err := cmd.CombinedOutput()
	var failed *exec.ExitError
	if err != nil && !errors.As(err, &failed) {
		if os.Getenv("WEIR_REQUIRE") == "all" {
			t.Fatal("no network of its own:", err)
		}
		t.Skip("no network of its own:", err)
	}
	t.Logf("%s", out)
	if err != nil || !strings.Contains(string(out), "--- PASS: "+t.Name()) {
		t.Error("the test failed in its own network:", err)
	}
}

// up switches the loopback interface on.
func up(t *testing.T) {
	fd, err := unix.Socket(unix.AF_INET, unix.SOCK_DGRAM, 0)
	require.NoError(t, err)
	defer func() { _ = unix.Close(fd) }()
	lo, err := unix.NewIfreq("lo")
	require.NoError(t, err)
	lo.SetUint16(unix.IFF_UP | unix.IFF_RUNNING)
	require.NoError(t, unix.IoctlIfreq(fd, unix.SIOCSIFFLAGS, lo))
}

// TestHeaderBytes compares the headers of a packet that HeaderBytes has with the counters of this kernel's loopback interface and of a
// virtual cable, over IPv4 and IPv6. TCP with timestamps has 24 bytes more than UDP.
func TestHeaderBytes(t *testing.T) {
	ip := program(t, "ip")
	if os.Getenv("WEIR_PLAY") == "" && os.Getenv("WEIR_OWN_NETWORK") == "" {
		inOwnNetwork(t)
		return
	}
	up(t)
	for _, args := range []string{"link add veth-a type veth peer name veth-b", "link set veth-a up", "link set veth-b up",
		"addr add 10.9.0.1/24 dev veth-a", "-6 addr add fd09::1/64 dev veth-a nodad", "neigh add 10.9.0.2 lladdr 02:00:00:00:00:01 dev veth-a",
		"-6 neigh add fd09::2 lladdr 02:00:00:00:00:01 dev veth-a"} {
		if out, err := exec.Command(ip, strings.Fields(args)...).CombinedOutput(); err != nil {
			t.Fatalf("ip %s: %v: %s", args, err, out)
		}
	}
	for _, c := range []struct {
		device, to string
		ipv6       bool
	}{{"lo", "127.0.0.1", false}, {"lo", "::1", true}, {"veth-a", "10.9.0.2", false}, {"veth-a", "fd09::2", true}} {
		if c.device == "lo" { // without a receiver it would carry refusals as well
			l, err := net.ListenPacket("udp", net.JoinHostPort(c.to, "9"))
			require.NoError(t, err)
			defer l.Close()
		}
		s, err := net.Dial("udp", net.JoinHostPort(c.to, "9"))
		require.NoError(t, err)
		const size, many = 100, 1000
		before := sentBy(t, c.device)
		for range many {
			_, err = s.Write(make([]byte, size))
			require.NoError(t, err)
		}
		require.NoError(t, s.Close())
		counted, unsure := HeaderBytes(c.device, c.ipv6)
		each := float64(sentBy(t, c.device)-before)/many - size
		if want := float64(counted - 24); unsure != 0 || each < want-1 || each > want+1 { // a router solicitation may be among them
			t.Errorf("%s to %s: %.2f bytes of headers in a packet of UDP, want %.0f", c.device, c.to, each, want)
		}
	}
}

// sentBy returns the bytes that a device has sent.
func sentBy(t *testing.T, device string) int64 {
	t.Helper()
	all, err := os.ReadFile("/proc/net/dev")
	require.NoError(t, err)
	for line := range strings.Lines(string(all)) {
		if name, counts, ok := strings.Cut(line, ":"); ok && strings.TrimSpace(name) == device {
			n, err := strconv.ParseInt(strings.Fields(counts)[8], 10, 64)
			require.NoError(t, err)
			return n
		}
	}
	t.Fatalf("no device %s in /proc/net/dev", device)
	return 0
}
