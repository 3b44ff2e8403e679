package chaos

import (
	"encoding/json"
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"testing"

	"weir/internal/require"
)

// stepper is added to package time of the program under test: at any moment, its wall clock is off
// by the number of seconds in the file WEIR_TEST_CLOCK, as if the machine's clock had been set.
// The monotonic clock continues, as it does in that case. A namespace does not have a wall clock of
// its own, and a static program cannot load a library for this.
const stepper = `package time

import (
	"sync/atomic"
	"syscall"
)

var stepped atomic.Int64

func init() {
	path, ok := syscall.Getenv("WEIR_TEST_CLOCK")
	if !ok {
		return
	}
	look := func() {
		fd, err := syscall.Open(path, syscall.O_RDONLY|syscall.O_CLOEXEC, 0)
		if err != nil {
			return
		}
		var text [32]byte
		n, _ := syscall.Read(fd, text[:])
		_ = syscall.Close(fd)
		v, sign := int64(0), int64(1)
		for _, c := range text[:max(n, 0)] {
			if c == '-' {
				sign = -1
			} else if c >= '0' && c <= '9' {
				v = v*10 + int64(c-'0')
			}
		}
		stepped.Store(sign * v)
	}
	look()
	go func() {
		for {
			Sleep(20 * Millisecond)
			look()
		}
	}()
}
`

// overlay returns the file for the flag -overlay of go build (go help build) that adds stepper.
func overlay(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	write := func(name, text string) string {
		path := filepath.Join(dir, name)
		require.NoError(t, os.WriteFile(path, []byte(text), 0o600))
		return path
	}
	std := filepath.Join(runtime.GOROOT(), "src", "time") //nolint:staticcheck // of the toolchain that builds the program as well
	text := require.File(t, filepath.Join(std, "time.go"))
	const before, call = "func Now() Time {\n", "\tsec, nsec, mono := runtimeNow()\n"
	head, rest, ok := strings.Cut(string(text), before+call)
	if !ok {
		t.Skip("time.Now is another one in this version of Go")
	}
	replace := map[string]string{
		filepath.Join(std, "time.go"):          write("time.go", head+before+call+"\tsec += stepped.Load()\n"+rest),
		filepath.Join(std, "stepped_clock.go"): write("stepped_clock.go", stepper),
	}
	list, err := json.Marshal(map[string]any{"Replace": replace})
	require.NoError(t, err)
	return write("overlay.json", string(list))
}

// step sets a process's clock off by some seconds.
func (b *body) step(seconds int) error {
	if b.clock == "" {
		return nil
	}
	new := b.clock + ".new"
	if err := os.WriteFile(new, []byte(strconv.Itoa(seconds)), 0o600); err != nil {
		return err
	}
	return os.Rename(new, b.clock)
}
