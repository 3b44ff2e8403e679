// Package servetest has tests start servers of package serve.
package servetest

import (
	"testing"

	"weir/internal/require"
	"weir/serve"
	"weir/serve/servetest/requests"
)

// Start serves c until the test ends, and returns the URL. It fails the test if the server cannot
// begin, or ends with an error.
func Start(t testing.TB, c serve.Config) string {
	t.Helper()
	s, err := serve.New(c)
	require.NoError(t, err)
	requests.Serve(t, s)
	return s.URL()
}
