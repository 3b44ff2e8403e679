package emulator

import (
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"weir/internal/require"
	"weir/internal/tier"
	"weir/lab/labtest"
	"weir/link"
)

// A program at a site reaches, through a gate, a service of this machine that listens on loopback
// only, and cannot reach other machines.
func TestReach(t *testing.T) {
	labtest.Need(t, "curl")
	n, _ := up(t, link.Spec{Rate: 20e6})
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		_, _ = w.Write(make([]byte, 1e6))
	}))
	defer server.Close()
	address, err := n.Sites[0].Reach(t.Context(), server.Listener.Addr().String())
	require.NoError(t, err)
	if again, err := n.Sites[0].Reach(t.Context(), server.Listener.Addr().String()); err != nil || again != address {
		t.Errorf("asked again, the address is %s, not %s: %v", again, address, err)
	}
	out := curl(t, n.Sites[0], "http://"+address+"/")
	seconds, err := time.ParseDuration(out + "s")
	if err != nil || seconds < 400*time.Millisecond*95/100 {
		t.Errorf("1 MB over 20 Mbit/s took %q", out)
	}
	if out := curl(t, n.Sites[0], "http://192.0.2.200/"); out != "failed" {
		t.Errorf("a site reaches more than this machine: %q", out)
	}
}

// curl returns the duration in seconds, or "failed".
func curl(t *testing.T, s *Site, url string) string {
	t.Helper()
	cmd := exec.Command("curl", "--silent", "--noproxy", "*", "--max-time", "20", "--output", os.DevNull, "--write-out", "%{time_total}", url)
	var out strings.Builder
	cmd.Stdout = &out
	require.NoError(t, s.Start(cmd))
	if err := cmd.Wait(); err != nil {
		return "failed"
	}
	return out.String()
}

// A connection to a service that does not exist is refused at the site as well, and a closed gate
// leaves no connection.
func TestGateEnds(t *testing.T) {
	g := newGates(nil)
	g.listen = at("127.0.0.1")
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	address, err := g.open(t.Context(), l.Addr().String())
	require.NoError(t, err)
	client, err := net.Dial("tcp", address)
	require.NoError(t, err)
	defer client.Close()
	server, err := l.Accept()
	require.NoError(t, err)
	defer server.Close()
	if _, err := server.Write([]byte("hello")); err != nil {
		t.Fatal(err)
	}
	b := make([]byte, 5)
	_ = client.SetDeadline(time.Now().Add(time.Minute))
	if _, err := io.ReadFull(client, b); err != nil || string(b) != "hello" {
		t.Errorf("%q, %v", b, err)
	}
	l.Close()
	if refused, err := net.Dial("tcp", address); err == nil { // or it was refused already
		defer refused.Close()
		_ = refused.SetDeadline(time.Now().Add(time.Minute))
		if _, err := refused.Read(b); err == nil {
			t.Error("something came from a service that is not there")
		}
	}
	if err := g.close(); err != nil {
		t.Error(err)
	}
	if _, err := client.Read(b); err == nil {
		t.Error("a connection outlived its gate")
	}
}

// A network closes at once, with any traffic under way, and only once.
func TestCloseUnderLoad(t *testing.T) {
	tier.Slow(t, "measures links for seconds")
	n, _ := up(t, link.Spec{Rate: 1e6, RTT: 800 * ms, Queue: 10000 * ms})
	address := serve(t, n, pour)
	for range 3 {
		conn := dial(t, n.Sites[0], address)
		received(t, 0, 200*time.Millisecond, conn)
	}
	if err := n.Sites[0].SetDown(true); err != nil {
		t.Error(err)
	}
	begin := time.Now()
	if err := n.Close(); err != nil {
		t.Error(err)
	}
	if took := time.Since(begin); took > 9*time.Second { // the queue alone is longer
		t.Errorf("closing took %v", took)
	}
	if err := n.Close(); err != nil {
		t.Errorf("closed again: %v", err)
	}
}

// The death of the mover process is reported.
func TestMoverDies(t *testing.T) {
	before := interfaces(t)
	n, _ := up(t, link.Spec{Rate: 1e6})
	kill(t, os.Getpid())
	eventually(t, func() error {
		if n.Err() == nil {
			return errors.New("the links are said to be there")
		}
		if now := interfaces(t); !slices.Equal(now, before) {
			return fmt.Errorf("devices %v, before %v", now, before)
		}
		return nil
	})
	if err := n.Sites[0].SetDown(true); err == nil {
		t.Error("a link that is gone was changed")
	}
}

// kill kills the children of a process.
func kill(t *testing.T, parent int) {
	t.Helper()
	files, _ := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/children", parent))
	for _, f := range files {
		b, _ := os.ReadFile(f)
		for _, pid := range strings.Fields(string(b)) {
			id, _ := strconv.Atoi(pid)
			if err := syscall.Kill(id, syscall.SIGKILL); err != nil {
				t.Error(err)
			}
		}
	}
}
