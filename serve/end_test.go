package serve

import (
	"context"
	"io"
	"net/http"
	"testing"
	"time"

	"weir/internal/require"
	"weir/serve/servetest/requests"
)

func TestEndsGracefully(t *testing.T) {
	s, err := New(Config{Synthetic: []Set{{1, 64 << 20}}})
	require.NoError(t, err)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	l, err := s.Listen(ctx)
	require.NoError(t, err)
	served := make(chan error, 1)
	go func() { served <- s.Serve(ctx, l) }()
	resp, err := http.Get(s.URL() + "/file000000.dat")
	require.NoError(t, err)
	cancel() // in the middle of the answer
	n, err := io.Copy(io.Discard, resp.Body)
	if n != 64<<20 || err != nil {
		t.Errorf("the answer under way ended after %d bytes: %v", n, err)
	}
	if err := <-served; err != nil {
		t.Error(err)
	}
	if err := s.Serve(ctx, l); err == nil {
		t.Error("a Server serves twice")
	}
	if err := s.Close(); err != nil {
		t.Error(err)
	}
}

func TestEndsFirmly(t *testing.T) {
	dir := t.TempDir()
	s, err := New(Config{Dir: dir, Grace: 50 * time.Millisecond, Delay: time.Millisecond})
	require.NoError(t, err)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	l, err := s.Listen(ctx)
	require.NoError(t, err)
	served := make(chan error, 1)
	go func() { served <- s.Serve(ctx, l) }()
	requests.Dial(t, s.URL(), "PUT /f HTTP/1.1\r\nHost: x\r\nContent-Length: 100\r\n\r\nabc")
	requests.Dial(t, s.URL(), "") // sends nothing
	require.Eventually(t, "a temporary file", func() bool { return parts(dir) == 1 })
	cancel()
	if err := <-served; err != nil {
		t.Error(err)
	}
	if n := parts(dir); n != 0 {
		t.Errorf("%d temporaries are left", n)
	}
	if err := s.Close(); err != nil {
		t.Error(err)
	}
}
