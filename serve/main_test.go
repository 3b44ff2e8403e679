package serve

import (
	"bufio"
	"context"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"strings"
	"syscall"
	"testing"

	"weir/internal/require"
)

// childDir is the variable that makes this test program a server of the folder in its value, for
// tests that kill a server or measure its CPU time. A value that contains an x is parsed as
// synthetic files.
const childDir = "WEIR_SERVE_TEST_CHILD"

func TestMain(m *testing.M) {
	if what := os.Getenv(childDir); what != "" {
		if err := child(what); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		return
	}
	os.Exit(m.Run())
}

func child(what string) error {
	c := Config{Dir: what}
	if sets, err := ParseSynthetic(what); err == nil {
		c = Config{Synthetic: sets}
	}
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM)
	defer stop()
	s, err := New(c)
	if err != nil {
		return err
	}
	defer s.Close()
	l, err := s.Listen(ctx)
	if err != nil {
		return err
	}
	fmt.Println(s.URL())
	return s.Serve(ctx, l)
}

// startChild starts a server process and returns its URL.
func startChild(t testing.TB, what string) (cmd *exec.Cmd, url string) {
	t.Helper()
	cmd = exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), childDir+"="+what)
	cmd.Stderr = os.Stderr
	out, err := cmd.StdoutPipe()
	require.NoError(t, err)
	require.NoError(t, cmd.Start())
	t.Cleanup(func() {
		_ = cmd.Process.Signal(syscall.SIGTERM) // it may be gone
		_ = cmd.Wait()
	})
	line, err := bufio.NewReader(out).ReadString('\n')
	if err != nil {
		t.Fatalf("the server process did not come up: %v", err)
	}
	return cmd, strings.TrimSpace(line)
}
