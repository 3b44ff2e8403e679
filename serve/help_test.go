package serve

import (
	"net/http"
	"testing"

	"weir/internal/require"
	"weir/serve/servetest/requests"
)

// start serves c until the test ends and returns the server.
func start(t testing.TB, c Config) *Server {
	t.Helper()
	s, err := New(c)
	require.NoError(t, err)
	requests.Serve(t, s)
	return s
}

// An exchange is one request with its expected response.
type exchange = requests.Request

// do makes the request of x and returns the answer.
func do(t testing.TB, s *Server, x exchange) (*http.Response, string) {
	t.Helper()
	return x.Do(t, s.URL())
}

// check makes the request of x and compares the answer.
func check(t testing.TB, s *Server, x exchange) {
	t.Helper()
	x.Check(t, s.URL())
}
