package mover

import (
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"weir/transfer"
)

// TestNear: a server on this machine is near, unless what it sends must be decrypted.
func TestNear(t *testing.T) {
	m := newMover(t, Options{})
	for _, start := range []func(http.Handler) *httptest.Server{httptest.NewServer, httptest.NewTLSServer} {
		s := start(http.HandlerFunc(http.NotFound))
		defer s.Close()
		u, err := url.Parse(s.URL)
		if err != nil {
			t.Fatal(err)
		}
		q := question{method: http.MethodGet, url: u}
		if u.Scheme == "https" {
			q.pin = pinOf(s)
		}
		a, err := m.pool.ask(t.Context(), q)
		if err != nil {
			t.Fatal(err)
		}
		if near(a.conn) != (u.Scheme == "http") {
			t.Errorf("%s: near is %v", u.Scheme, near(a.conn))
		}
		a.close()
	}
}

// TestMoreConnections: a large file from where one connection is not enough is
// fetched over several at once.
func TestMoreConnections(t *testing.T) {
	ctx, cancel := context.WithCancelCause(t.Context())
	defer cancel(nil)
	enough := errors.New("two are asked for at once")
	var inside atomic.Int64
	s := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if inside.Add(1) == 2 {
			cancel(enough)
		}
		w.Header().Set("Content-Range", strings.Replace(r.Header.Get("Range"), "=", " ", 1)+"/"+strconv.Itoa(2*worthStream))
		w.WriteHeader(http.StatusPartialContent)
		_ = http.NewResponseController(w).Flush() // the client may be gone
		select {
		case <-ctx.Done():
		case <-time.After(time.Minute):
		}
	}))
	defer s.Close()
	l := pullLease(s.URL, "f", "00000001", 2*worthStream)
	l.Source.Pin = pinOf(s)
	out := newMover(t, Options{}).Do(ctx, l, func(transfer.Progress) {})
	if !errors.Is(context.Cause(ctx), enough) {
		t.Errorf("%d requests; %+v", inside.Load(), out)
	}
}
