package chaos

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"strconv"
	"syscall"
	"testing"
)

const insideKey = "WEIR_TEST_INSIDE"

// TestMain runs the tests once more in a namespace for mounts of their own, if
// this is root: the small disk of a site is mounted there and goes with it.
func TestMain(m *testing.M) {
	if os.Geteuid() != 0 || os.Getenv(insideKey) != "" {
		os.Exit(m.Run())
	}
	runtime.LockOSThread() // the child ends with this thread
	cmd := exec.CommandContext(context.Background(), os.Args[0], os.Args[1:]...)
	cmd.Stdin, cmd.Stdout, cmd.Stderr = os.Stdin, os.Stdout, os.Stderr
	cmd.Env = append(os.Environ(), insideKey+"=1")
	cmd.SysProcAttr = &syscall.SysProcAttr{Unshareflags: syscall.CLONE_NEWNS, Pdeathsig: syscall.SIGKILL}
	err := cmd.Run()
	var ended *exec.ExitError
	switch {
	case errors.As(err, &ended):
		if ended.ExitCode() < 0 { // it could not say so itself
			fmt.Fprintln(os.Stderr, "the tests in the namespace were ended:", ended)
		}
		os.Exit(max(ended.ExitCode(), 1))
	case err != nil: // such a namespace is not allowed here
		fmt.Fprintln(os.Stderr, "no namespace for mounts:", err)
		os.Exit(m.Run())
	}
}

// A size is the size of a campaign.
type size struct {
	seed    uint64
	files   int
	seconds int // in which things are broken
	lease   int // seconds
}

// sized reads WEIR_CHAOS_SEED, WEIR_CHAOS_FILES and WEIR_CHAOS_SECONDS, which override the
// defaults.
func sized(t *testing.T) size {
	t.Helper()
	s := size{seed: 1, files: 240, seconds: 12, lease: 3}
	if os.Getenv("WEIR_LONG") != "" {
		s = size{seed: 1, files: 2000, seconds: 120, lease: 5}
	}
	number := func(key string, v int) int {
		if text := os.Getenv(key); text != "" {
			n, err := strconv.Atoi(text)
			if err != nil || n < 1 {
				t.Fatalf("%s=%q: name a number above 0", key, text)
			}
			return n
		}
		return v
	}
	s.seed = uint64(number("WEIR_CHAOS_SEED", int(s.seed)))
	s.files = number("WEIR_CHAOS_FILES", s.files)
	s.seconds = number("WEIR_CHAOS_SECONDS", s.seconds)
	return s
}
