package storagetest

import (
	"bufio"
	"fmt"
	"os"
	"os/exec"
	"testing"

	"weir/internal/require"
)

// elsewhere is set if a test's binary must become a server.
const elsewhere = "WEIR_TEST_SERVER"

// Main implements TestMain for tests with a server in another process, so that its memory and CPU
// time are not the clients': the test's own binary, which runs serve there. serve prints its
// address as its first line, and returns when its standard input ends. It returns the exit status
// of the process.
func Main(m *testing.M, serve func() error) int {
	if os.Getenv(elsewhere) == "" {
		return m.Run()
	}
	if err := serve(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	return 0
}

// StartElsewhere starts the server of Main, and returns its address. It ends with the test.
func StartElsewhere(t testing.TB) string {
	t.Helper()
	self, err := os.Executable()
	require.NoError(t, err)
	cmd := exec.CommandContext(t.Context(), self)
	cmd.Env = append(os.Environ(), elsewhere+"=1")
	cmd.Stderr = os.Stderr
	in, err := cmd.StdinPipe()
	require.NoError(t, err)
	out, err := cmd.StdoutPipe()
	require.NoError(t, err)
	require.NoError(t, cmd.Start())
	t.Cleanup(func() {
		_ = in.Close() // it ends with its input
		_ = cmd.Wait() // or with the test's context
	})
	var address string
	if _, err := fmt.Fscanln(bufio.NewReader(out), &address); err != nil {
		t.Fatal(err)
	}
	return address
}
