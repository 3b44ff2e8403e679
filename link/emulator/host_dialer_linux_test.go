package emulator

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"weir/internal/require"
	"weir/internal/tier"
)

// dialerPair returns the two sides of a HostDialer of this process.
func dialerPair(t *testing.T) (outside, inside *HostDialer) {
	t.Helper()
	pair, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_SEQPACKET|unix.SOCK_CLOEXEC, 0)
	require.NoError(t, err)
	outside, err = newHostDialer(os.NewFile(uintptr(pair[0]), "a"))
	require.NoError(t, err)
	inside, err = newHostDialer(os.NewFile(uintptr(pair[1]), "b"))
	require.NoError(t, err)
	outside.group.Go(outside.serve)
	inside.group.Go(inside.listen)
	t.Cleanup(func() { outside.Close(); inside.Close() })
	return outside, inside
}

// Many connections are made through a HostDialer at once, and each leads to its own destination.
func TestHostDialer(t *testing.T) {
	outside, inside := dialerPair(t)
	var group sync.WaitGroup
	for i := range 20 {
		l, err := net.Listen("tcp", "127.0.0.1:0")
		require.NoError(t, err)
		t.Cleanup(func() { l.Close() })
		go func() {
			for {
				c, err := l.Accept()
				if err != nil {
					return
				}
				fmt.Fprint(c, i)
				c.Close()
			}
		}()
		for range 20 {
			group.Go(func() {
				c, err := inside.Dial(t.Context(), l.Addr().String())
				if err != nil {
					t.Error(err)
					return
				}
				defer c.Close()
				_ = c.SetDeadline(time.Now().Add(time.Minute))
				if b, err := io.ReadAll(c); err != nil || string(b) != fmt.Sprint(i) {
					t.Errorf("%q, %v: want %d", b, err, i)
				}
			})
		}
	}
	group.Wait()
	for address, want := range map[string]string{
		"127.0.0.1:1": "refused", "nonsense": "missing port", "127.0.0.1:" + strings.Repeat("9", 10000): "thousands of bytes", "a b\n:1": "a b",
	} {
		if c, err := inside.Dial(t.Context(), address); err == nil {
			c.Close()
			t.Errorf("%.20q: a connection", address)
		} else if !strings.Contains(err.Error(), want) {
			t.Errorf("%.20q: %v, want %s", address, err, want)
		}
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := inside.Dial(ctx, "127.0.0.1:1"); err == nil {
		t.Error("a connection for somebody who is gone")
	}
	if err := outside.Close(); err != nil {
		t.Error(err)
	}
	select {
	case <-inside.Gone():
	case <-time.After(time.Minute):
		t.Error("the end of the outside is not noticed")
	}
	if _, err := inside.Dial(t.Context(), "127.0.0.1:1"); !errors.Is(err, net.ErrClosed) && !errors.Is(err, unix.EPIPE) {
		t.Errorf("a closed HostDialer: %v", err)
	}
}

// As any user, links can be made if user namespaces are allowed.
func TestIsolatedAsWeAre(t *testing.T) {
	exe, err := os.Executable()
	require.NoError(t, err)
	why, err := probeIsolated(t.Context(), []string{"env", asProbe + "=1", exe})
	if err != nil || why != "" {
		tier.Without(t, "links", fmt.Sprintf("no links without privileges here: %v %s", err, why))
	}
	for _, end := range []string{"close", "kill", "terminate"} {
		t.Run(end, func(t *testing.T) {
			before := interfaces(t)
			cmd, in, pid := hosted(t, func(cmd *exec.Cmd) { cmd.Env = append(cmd.Env, asOuter+"=1") })
			if now := interfaces(t); !slices.Equal(now, before) {
				t.Errorf("devices %v of this machine, before %v", now, before)
			}
			site, err := spaceOf(pid)
			require.NoError(t, err)
			switch end {
			case "close":
				in.Close()
			case "kill":
				cmd.Process.Kill()
			case "terminate":
				cmd.Process.Signal(unix.SIGTERM)
			}
			if err := cmd.Wait(); err != nil && end != "kill" {
				t.Error(err)
			}
			eventually(t, func() error { return nobodyIn(site) })
		})
	}
}
