package mover

import (
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"testing"

	"weir/internal/require"
)

// If a destination is behind a proxy that refuses Expect, the file is sent without Expect.
func TestPushWithoutExpect(t *testing.T) {
	to := newSite(t, nil)
	at, err := url.Parse(to.url)
	require.NoError(t, err)
	proxy := httputil.NewSingleHostReverseProxy(at)
	refused := 0
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("Expect") != "" {
			refused++
			w.WriteHeader(http.StatusExpectationFailed)
			return
		}
		proxy.ServeHTTP(w, r)
	}))
	defer s.Close()
	m := newMover(t, Options{})
	small := pushLease(s.URL, "small", file(t, m.opt.Root, "small", 1, 1000), 1000) // makes the folder of temporary files
	if out := do(t, m, small); out.Fault != "" {
		t.Fatalf("%+v", out)
	}
	const size = 2 << 20
	sum := file(t, m.opt.Root, "f", 1, size)
	if out := do(t, m, pushLease(s.URL, "f", sum, size)); out.Fault != "" || !out.Verified || out.Moved != size || refused != 1 {
		t.Errorf("%d requests with Expect were refused, %+v", refused, out)
	}
}
