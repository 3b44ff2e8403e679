package mover

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"strings"
	"sync"
	"syscall"
	"testing"

	"weir/internal/require"
	"weir/internal/tier"
	"weir/serve"
	"weir/transfer"
)

// childVar makes this test program an endpoint of a folder, or a mover of leases in a file, for
// tests that kill a process or measure its CPU time.
const childVar = "WEIR_MOVER_TEST_CHILD"

func TestMain(m *testing.M) {
	what, arg, _ := strings.Cut(os.Getenv(childVar), ":")
	var err error
	switch what {
	case "serve":
		err = childServe(arg)
	case "move":
		err = childMove(arg)
	default:
		os.Exit(tier.Main(m))
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func childServe(dir string) error {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM)
	defer stop()
	s, err := serve.New(serve.Config{Dir: dir})
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

// A job is the work of a child that moves files.
type job struct {
	Root     string
	Unsynced bool
	Leases   []transfer.Lease
	Together int
}

func childMove(file string) error {
	text, err := os.ReadFile(file)
	if err != nil {
		return err
	}
	var j job
	if err := json.Unmarshal(text, &j); err != nil {
		return err
	}
	m, err := New(Options{Root: j.Root, Unsynced: j.Unsynced})
	if err != nil {
		return err
	}
	fmt.Println("begun")
	leases := make(chan transfer.Lease)
	var all sync.WaitGroup
	var mu sync.Mutex
	out := json.NewEncoder(os.Stdout)
	for range j.Together {
		all.Go(func() {
			for l := range leases {
				o := m.Do(context.Background(), l, nil)
				mu.Lock()
				_ = out.Encode(o)
				mu.Unlock()
			}
		})
	}
	for _, l := range j.Leases {
		leases <- l
	}
	close(leases)
	all.Wait()
	return m.Close()
}

// startChild starts this program as a child and returns its first line.
func startChild(t testing.TB, what string) (cmd *exec.Cmd, line string, rest *bufio.Reader) {
	t.Helper()
	cmd = exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), childVar+"="+what)
	cmd.Stderr = os.Stderr
	out, err := cmd.StdoutPipe()
	require.NoError(t, err)
	require.NoError(t, cmd.Start())
	t.Cleanup(func() {
		_ = cmd.Process.Signal(syscall.SIGTERM) // it may be gone
		_ = cmd.Wait()
	})
	rest = bufio.NewReader(out)
	if line, err = rest.ReadString('\n'); err != nil {
		t.Fatalf("the child did not come up: %v", err)
	}
	return cmd, strings.TrimSpace(line), rest
}
