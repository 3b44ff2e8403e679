package mover

import (
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"weir/internal/require"
	"weir/transfer"
)

// TestNear: a server on this machine is near, unless its data must be decrypted.
func TestNear(t *testing.T) {
	askEach(t, http.NotFound, func(scheme string, a *answer) {
		if near(a.conn) != (scheme == "http") {
			t.Errorf("%s: near is %v", scheme, near(a.conn))
		}
	})
}

// askEach calls try with the response of a server without TLS, and of a server with it.
func askEach(t *testing.T, handler http.HandlerFunc, try func(scheme string, a *answer)) {
	t.Helper()
	m := newMover(t, Options{})
	for _, start := range []func(http.Handler) *httptest.Server{httptest.NewServer, httptest.NewTLSServer} {
		s := start(handler)
		defer s.Close()
		u, err := url.Parse(s.URL)
		require.NoError(t, err)
		q := question{method: http.MethodGet, url: u}
		if u.Scheme == "https" {
			q.pin = pinOf(s)
		}
		a, err := m.pool.ask(t.Context(), q)
		require.NoError(t, err)
		try(u.Scheme, a)
		a.close()
	}
}

// TestGather: a connection with much data to come wakes its reader for many bytes at once, with and
// without TLS, and for each byte at the end of the body.
func TestGather(t *testing.T) {
	const size = 8 << 20
	handler := func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Length", strconv.Itoa(size))
		_, _ = w.Write(make([]byte, size)) // the client counts
	}
	askEach(t, handler, func(scheme string, a *answer) {
		f, err := os.Create(filepath.Join(t.TempDir(), "f"))
		require.NoError(t, err)
		defer f.Close()
		a.raw = a.conn.plain != nil
		body := &taker{answer: a, ctx: t.Context(), file: f, buf: make([]byte, mostGulp)}
		if n, err := body.take(0, size/2); err != nil || n != size/2 {
			t.Fatalf("%s: %d bytes, %v", scheme, n, err)
		}
		if got := lowat(t, a.conn); got < mostGulp/2 {
			t.Errorf("%s: half of the body woke its reader from %d bytes", scheme, got)
		}
		if n, err := body.take(size/2, size/2); err != nil || n != size/2 {
			t.Fatalf("%s: %d bytes, %v", scheme, n, err)
		}
		if got := lowat(t, a.conn); got != 1 {
			t.Errorf("%s: the end of the body wakes its reader from %d bytes", scheme, got)
		}
	})
}

// lowat returns SO_RCVLOWAT of a connection.
func lowat(t *testing.T, c *conn) (mark int) {
	t.Helper()
	raw, err := c.tcp.SyscallConn()
	require.NoError(t, err)
	var got error
	err = raw.Control(func(fd uintptr) { mark, got = unix.GetsockoptInt(int(fd), unix.SOL_SOCKET, unix.SO_RCVLOWAT) })
	if err != nil || got != nil {
		t.Fatal(err, got)
	}
	return mark
}

// TestMoreConnections: a large file is fetched over several connections at once if one connection
// is not enough.
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
