package wire

import (
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"

	"weir/internal/require"
)

type userKey struct{}

// Bodies in progress have a limit for each user and for all; completed bodies make room.
func TestBodiesAreLimited(t *testing.T) {
	t.Parallel()
	s, err := Serve(t.Context(), "127.0.0.1:0", Config{
		Check: func(r *http.Request) (context.Context, error) {
			return context.WithValue(r.Context(), userKey{}, r.Header.Get("User")), nil
		},
		Bodies: Bodies{Most: 5000, User: 2000}, User: func(ctx context.Context) string { return ctx.Value(userKey{}).(string) },
	})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, s.Close()) })
	Answer(s, "POST /x", 1<<20, func(_ *http.Request, in *string) (int, error) { return len(*in), nil })
	s.Begin()
	whole := func(user string, n int) (int, http.Header, string) {
		req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, "http://"+s.Addr().String()+"/x",
			strings.NewReader(`"`+strings.Repeat("x", n)+`"`))
		require.NoError(t, err)
		req.Header.Set("User", user)
		req.Close = true
		res, err := http.DefaultClient.Do(req)
		require.NoError(t, err)
		defer res.Body.Close()
		text, err := io.ReadAll(res.Body)
		require.NoError(t, err)
		return res.StatusCode, res.Header, string(text)
	}
	held := func() (all int64) {
		s.bodies.mu.Lock()
		defer s.bodies.mu.Unlock()
		return s.bodies.all
	}
	half := func(user string, n int) net.Conn {
		before := held()
		c, err := new(net.Dialer).DialContext(t.Context(), "tcp", s.Addr().String())
		require.NoError(t, err)
		t.Cleanup(func() { _ = c.Close() })
		_, err = fmt.Fprintf(c, "POST /x HTTP/1.1\r\nHost: a\r\nUser: %s\r\nContent-Length: 100000\r\n\r\n\"%s", user, strings.Repeat("x", n-1))
		require.NoError(t, err)
		require.Eventually(t, "it was read", func() bool { return held() == before+int64(n) })
		return c
	}
	req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "http://"+s.Addr().String()+"/x", http.NoBody)
	require.NoError(t, err)
	res, err := http.DefaultClient.Do(req) // the first request of the server has no body
	require.NoError(t, err)
	require.NoError(t, res.Body.Close())
	first := half("ada", 1500)
	if status, header, text := whole("ada", 1000); status != http.StatusTooManyRequests || header.Get("Retry-After") == "" {
		t.Errorf("a second body: %d %v %s", status, header, text)
	}
	if status, _, text := whole("ada", 100); status != http.StatusOK {
		t.Errorf("a small one: %d %s", status, text)
	}
	if status, _, text := whole("bob", 3000); status != http.StatusOK { // one may be larger than the limit of a user
		t.Errorf("another user: %d %s", status, text)
	}
	half("cy", 2000)
	if status, header, text := whole("bob", 3000); status != http.StatusServiceUnavailable || header.Get("Retry-After") == "" {
		t.Errorf("beyond the limit of all: %d %v %s", status, header, text)
	}
	require.NoError(t, first.Close())
	require.Eventually(t, "the first has ended", func() bool { return held() == 2000 })
	if status, _, text := whole("bob", 2500); status != http.StatusOK {
		t.Errorf("after the end of another: %d %s", status, text)
	}
}
