// Package servetest has tests start servers of package serve.
package servetest

import (
	"context"
	"errors"
	"testing"

	"weir/serve"
)

// Start serves what c says until the test ends, and returns the URL. It fails the test
// if the server cannot begin, or ends with an error.
func Start(t testing.TB, c serve.Config) string {
	t.Helper()
	s, err := serve.New(c)
	if err != nil {
		t.Fatal(err)
	}
	l, err := s.Listen(t.Context())
	if err != nil {
		t.Fatal(errors.Join(err, s.Close()))
	}
	ctx, stop := context.WithCancel(context.WithoutCancel(t.Context()))
	done := make(chan error, 1)
	go func() { done <- s.Serve(ctx, l) }()
	t.Cleanup(func() {
		stop()
		if err := errors.Join(<-done, s.Close()); err != nil {
			t.Error(err)
		}
	})
	return s.URL()
}
