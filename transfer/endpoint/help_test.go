package endpoint

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"weir/internal/content"
	"weir/lab"
	"weir/serve"
)

// start serves c until the test ends and returns the server.
func start(t testing.TB, c serve.Config) *serve.Server {
	t.Helper()
	s, err := serve.New(c)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	l, err := s.Listen(ctx)
	if err != nil {
		t.Fatal(err)
	}
	served := make(chan error, 1)
	go func() { served <- s.Serve(ctx, l) }()
	t.Cleanup(func() {
		cancel()
		if err := <-served; err != nil {
			t.Errorf("Serve: %v", err)
		}
		if err := s.Close(); err != nil {
			t.Errorf("Close: %v", err)
		}
	})
	return s
}

// An exchange is one request and what its answer should be.
type exchange struct {
	method, path string
	body         string
	header       map[string]string
	code         int
	want         string            // body, if not ""
	answer       map[string]string // headers
}

// do makes a request whose path is sent as it is written.
func do(t testing.TB, s *serve.Server, x exchange) (*http.Response, string) {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), x.method, s.URL(), strings.NewReader(x.body))
	if err != nil {
		t.Fatal(err)
	}
	path, query, _ := strings.Cut(x.path, "?")
	req.URL.Opaque, req.URL.RawQuery = "//"+req.URL.Host+path, query
	for k, v := range x.header {
		req.Header.Set(k, v)
	}
	resp, err := http.DefaultTransport.RoundTrip(req)
	if err != nil {
		t.Fatalf("%s %s: %v", x.method, x.path, err)
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatalf("%s %s: body: %v", x.method, x.path, err)
	}
	return resp, string(body)
}

// check makes the request of x and compares the answer.
func check(t testing.TB, s *serve.Server, x exchange) {
	t.Helper()
	resp, body := do(t, s, x)
	if resp.StatusCode != x.code {
		t.Errorf("%s %s: %d, want %d (%.200q)", x.method, x.path, resp.StatusCode, x.code, body)
	}
	if x.want != "" && body != x.want {
		t.Errorf("%s %s: body %.200q, want %.200q", x.method, x.path, body, x.want)
	}
	for k, want := range x.answer {
		if got := resp.Header.Get(k); got != want {
			t.Errorf("%s %s: %s is %q, want %q", x.method, x.path, k, got, want)
		}
	}
}

// need skips the test when a real program is not there.
func need(t testing.TB, program string) string {
	t.Helper()
	lab.Need(t, program)
	return program
}

// run runs a real program and returns what it printed.
func run(t testing.TB, program string, args ...string) (string, error) {
	t.Helper()
	out, err := exec.CommandContext(t.Context(), need(t, program), args...).CombinedOutput()
	return string(out), err
}

func mustRun(t testing.TB, program string, args ...string) string {
	t.Helper()
	out, err := run(t, program, args...)
	if err != nil {
		t.Fatalf("%s %q: %v\n%s", program, args, err, out)
	}
	return out
}

func write(t testing.TB, data string, parts ...string) string {
	t.Helper()
	p := filepath.Join(parts...)
	if err := os.WriteFile(p, []byte(data), 0o644); err != nil {
		t.Fatal(err)
	}
	return p
}

func read(t testing.TB, parts ...string) string {
	t.Helper()
	b, err := os.ReadFile(filepath.Join(parts...))
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

// names returns what a folder really has, the server's notes left out.
func names(t testing.TB, dir string) string {
	t.Helper()
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	var all []string
	for _, e := range entries {
		if e.Name() != ".weir-serve-folders" { // where temporaries may be
			all = append(all, e.Name())
		}
	}
	return strings.Join(all, " ")
}

func made(seed uint64, size int) string {
	b := make([]byte, size)
	content.Fill(b, seed, 0)
	return string(b)
}

func sha(text string) string {
	sum := sha256.Sum256([]byte(text))
	return hex.EncodeToString(sum[:])
}

// dial connects to s and sends text.

func dial(t *testing.T, url, text string) net.Conn {
	t.Helper()
	c, err := new(net.Dialer).DialContext(t.Context(), "tcp", strings.TrimPrefix(url, "http://"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Close() })
	if err := c.SetDeadline(time.Now().Add(20 * time.Second)); err != nil { // a hang is a failure
		t.Fatal(err)
	}
	if _, err := io.WriteString(c, text); err != nil {
		t.Fatal(err)
	}
	return c
}

// until polls a condition for at most 10 s.

func until(t *testing.T, what string, condition func() bool) {
	t.Helper()
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	for range 2000 {
		if condition() {
			return
		}
		<-tick.C
	}
	t.Fatalf("never came true: %s", what)
}
