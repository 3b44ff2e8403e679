package emulator

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"runtime"
	"syscall"
	"testing"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"
)

// Roles of this test program when a test starts it again.
const (
	asMover = "WEIR_TEST_MOVER" // carries packets
	asProbe = "WEIR_TEST_PROBE" // tests the possibilities
	asOuter = "WEIR_TEST_OUTER" // runs this program isolated
)

func TestMain(m *testing.M) {
	for _, as := range []struct {
		variable string
		f        func() error
	}{
		{asMover, func() error { return Move(context.Background(), os.Stdin, os.Stdout) }},
		{asProbe, func() error { return json.NewEncoder(os.Stdout).Encode(Probe()) }},
		{asOuter, rerunHost},
		{asHost, hostLinks},
	} {
		if os.Getenv(as.variable) == "" {
			continue
		}
		if err := as.f(); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		os.Exit(0)
	}
	if err := apart(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	os.Exit(m.Run())
}

// rerunHost runs hostLinks isolated.
func rerunHost() error {
	os.Unsetenv(asOuter)
	exe, err := os.Executable()
	if err != nil {
		return err
	}
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM)
	defer stop()
	cmd := exec.Command(exe)
	cmd.Stdin, cmd.Stdout, cmd.Stderr = os.Stdin, os.Stdout, os.Stderr
	return rerun(ctx, cmd)
}

// rerun runs cmd, this program, isolated, to its end, and returns the result of cmd.Wait. When ctx
// ends cmd gets SIGTERM, and is waited for. The isolated program detects by HostDialer.Gone that
// this process was killed.
func rerun(ctx context.Context, cmd *exec.Cmd) error {
	d, err := Isolate(cmd)
	if err != nil {
		return err
	}
	if err := cmd.Start(); err != nil {
		return errors.Join(fmt.Errorf("start in a network of its own: %w", err), d.Close())
	}
	stop := context.AfterFunc(ctx, func() { _ = cmd.Process.Signal(syscall.SIGTERM) })
	defer stop()
	return errors.Join(cmd.Wait(), d.Close())
}

// apart moves this program to a network of its own, if permitted, so that tests in other processes,
// and this machine's own network, are not disturbed.
func apart() error {
	const moved = "WEIR_TEST_APART"
	if os.Getenv(moved) != "" {
		h, err := netlink.NewHandle()
		if err != nil {
			return err
		}
		defer h.Close()
		return loopbackUp(h)
	}
	runtime.LockOSThread() // the restarted program runs in the namespaces of this thread
	defer runtime.UnlockOSThread()
	if unix.Unshare(unix.CLONE_NEWNET) != nil {
		return nil
	}
	exe, err := os.Executable()
	if err != nil {
		return err
	}
	return unix.Exec(exe, os.Args, append(os.Environ(), moved+"=1"))
}
