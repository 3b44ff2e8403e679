package endpoint

import (
	"net/http"
	"testing"

	"weir/internal/require"
	"weir/serve"
	"weir/serve/servetest/requests"
)

// start serves c until the test ends and returns the server.
func start(t testing.TB, c serve.Config) *serve.Server {
	t.Helper()
	s, err := serve.New(c)
	require.NoError(t, err)
	requests.Serve(t, s)
	return s
}

// An exchange is a request with its expected response.
type exchange = requests.Request

// do sends the request of x and returns the response.
func do(t testing.TB, s *serve.Server, x exchange) (*http.Response, string) {
	t.Helper()
	return x.Do(t, s.URL())
}

// check sends the request of x and compares the response.
func check(t testing.TB, s *serve.Server, x exchange) {
	t.Helper()
	x.Check(t, s.URL())
}
