package main

import (
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"

	"weir/internal/require"
)

// If a service sends Retry-After, findings, verdict and report contain the share of the clients'
// time that is spent waiting.
func TestRetryAfter(t *testing.T) {
	var requests atomic.Int64
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method == http.MethodGet && requests.Add(1)%20 == 0 {
			w.Header().Set("Retry-After", "1")
			w.WriteHeader(http.StatusServiceUnavailable)
			return
		}
		_, _ = w.Write(make([]byte, 1000))
	}))
	defer s.Close()
	list := filepath.Join(t.TempDir(), "list")
	require.NoError(t, os.WriteFile(list, []byte("f 1000\n"), 0o600))
	for choice, paused := range map[string]bool{"obey": true, "ignore": false} {
		dir := filepath.Join(t.TempDir(), "run")
		_, said := weir(t, "run", "--out", dir, "--target", s.URL, "--clients", "2", "--duration", "3s", "--set", "files.list="+list, "--set",
			"load={ramp: 0s, warmup: 0s, retry_after: "+choice+"}", "--set", "workload.think=5ms")
		f := findings(t, dir)
		if len(f.Curve) != 1 {
			t.Fatalf("%+v\n%s", f.Curve, said)
		}
		x := f.Curve[0]
		const sentence = "because the service asked them to"
		page, err := os.ReadFile(filepath.Join(dir, "report.html"))
		require.NoError(t, err)
		if x.Errors == 0 || x.AskedShare > 0.3 != paused || x.RetryAfter > 0 != paused || strings.Contains(f.Verdict, sentence) != paused ||
			strings.Contains(string(page), sentence) != paused {
			t.Errorf("%s: %d errors, share %.3f, %.1f s, verdict %q", choice, x.Errors, x.AskedShare, x.RetryAfter, f.Verdict)
		}
		if l := x.Little; paused && l != nil && (*l < 0.9 || *l > 1.1) {
			t.Errorf("%s: operations and pauses explain %v of the clients' time", choice, l)
		}
	}
}
