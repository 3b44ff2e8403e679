package monitor

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"

	"weir/internal/require"
	"weir/scenario"
)

// TestLoopbackBytes: what the loopback interface counts in a download, less
// the headers, is the payload. It runs in a network of its own, because other
// programs' traffic is on the loopback interface too.
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
	w, err := Start(context.Background(), []scenario.Host{{Name: "here"}}, Options{}, k)
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
	near(t, "payload on lo", float64(bytes-HeaderBytes4*packets), size, 0.01)
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
