package serve

import (
	"context"
	"io"
	"net/http"
	"testing"
	"time"
)

func TestEndsGracefully(t *testing.T) {
	s, err := New(Config{Synthetic: []Set{{1, 64 << 20}}})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	l, err := s.Listen(ctx)
	if err != nil {
		t.Fatal(err)
	}
	served := make(chan error, 1)
	go func() { served <- s.Serve(ctx, l) }()
	resp, err := http.Get(s.URL() + "/file000000.dat")
	if err != nil {
		t.Fatal(err)
	}
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
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	l, err := s.Listen(ctx)
	if err != nil {
		t.Fatal(err)
	}
	served := make(chan error, 1)
	go func() { served <- s.Serve(ctx, l) }()
	dial(t, s.URL(), "PUT /f HTTP/1.1\r\nHost: x\r\nContent-Length: 100\r\n\r\nabc")
	dial(t, s.URL(), "") // says nothing
	until(t, "a temporary file", func() bool { return parts(dir) == 1 })
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
