// Package requests makes the HTTP requests of tests of servers. It does not import package serve, whose tests use it.
package requests

import (
	"context"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	"weir/internal/require"
)

// A Request is one request with its expected response.
type Request struct {
	Method, Path string // the path is sent as it is written
	Body         string
	Header       map[string]string
	Code         int
	Want         string            // body of the answer, if not ""
	Answer       map[string]string // headers of the answer
}

// Do makes the request to the server at url and returns its answer, with the body.
func (x Request) Do(t testing.TB, url string) (*http.Response, string) {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), x.Method, url, strings.NewReader(x.Body))
	require.NoError(t, err)
	path, query, _ := strings.Cut(x.Path, "?")
	req.URL.Opaque, req.URL.RawQuery = "//"+req.URL.Host+path, query
	for k, v := range x.Header {
		req.Header.Set(k, v)
	}
	resp, err := http.DefaultTransport.RoundTrip(req)
	if err != nil {
		t.Fatalf("%s %s: %v", x.Method, x.Path, err)
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatalf("%s %s: body: %v", x.Method, x.Path, err)
	}
	return resp, string(body)
}

// Check makes the request to the server at url and compares the answer.
func (x Request) Check(t testing.TB, url string) {
	t.Helper()
	resp, body := x.Do(t, url)
	if resp.StatusCode != x.Code {
		t.Errorf("%s %s: %d, want %d (%.200q)", x.Method, x.Path, resp.StatusCode, x.Code, body)
	}
	if x.Want != "" && body != x.Want {
		t.Errorf("%s %s: body %.200q, want %.200q", x.Method, x.Path, body, x.Want)
	}
	for k, want := range x.Answer {
		if got := resp.Header.Get(k); got != want {
			t.Errorf("%s %s: %s is %q, want %q", x.Method, x.Path, k, got, want)
		}
	}
}

// Put sends a body whose length is not announced, with a bearer token, and returns the status; 0 if the server closed the
// connection while it was sent.
func Put(t testing.TB, url, token string, body io.Reader) int {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), http.MethodPut, url, body)
	require.NoError(t, err)
	req.Header.Set("Authorization", "Bearer "+token)
	res, err := http.DefaultTransport.RoundTrip(req)
	if err != nil {
		return 0
	}
	defer res.Body.Close()
	return res.StatusCode
}

// Dial connects to the server at url, until the test ends, and sends text.
func Dial(t testing.TB, url, text string) net.Conn {
	t.Helper()
	c, err := new(net.Dialer).DialContext(t.Context(), "tcp", strings.TrimPrefix(url, "http://"))
	require.NoError(t, err)
	t.Cleanup(func() { _ = c.Close() })
	require.NoError(t, c.SetDeadline(time.Now().Add(20*time.Second))) // a hang is a failure
	_, err = io.WriteString(c, text)
	require.NoError(t, err)
	return c
}

// A Server listens until Serve's context ends.
type Server interface {
	Listen(ctx context.Context) (net.Listener, error)
	Serve(ctx context.Context, l net.Listener) error
	Close() error
}

// Serve runs s until the test ends, which fails if s ends with an error.
func Serve(t testing.TB, s Server) {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	l, err := s.Listen(ctx)
	require.NoError(t, err)
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
}
