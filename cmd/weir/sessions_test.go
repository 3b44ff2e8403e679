package main

import (
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"weir/internal/require"
	"weir/internal/tier"
)

// A server that closes each connection, like servers of HTTP/1.0, keeps no session, and the report
// does not claim that sessions are kept.
func TestSessionsThatAreNotKept(t *testing.T) {
	tier.Slow(t, "runs for seconds")
	t.Parallel()
	data := t.TempDir()
	fill(t, data, 4, 4<<10)
	list := filepath.Join(t.TempDir(), "list")
	require.NoError(t, os.WriteFile(list, []byte("data-00.dat\ndata-01.dat\ndata-02.dat\ndata-03.dat\n"), 0o600))
	for _, keeps := range []bool{true, false} {
		s := httptest.NewUnstartedServer(http.FileServer(http.Dir(data)))
		s.Config.SetKeepAlivesEnabled(keeps)
		s.Start()
		f := measureFor(t, "--target", s.URL, "--clients", "2", "--duration", "4s", "--set", "load.ramp=0s", "--set", "load.warmup=200ms",
			"--set", "files.list="+list, "--set", "workload.think=5ms")
		s.Close()
		if f.Sessions == nil {
			t.Fatal("no operation ended")
		}
		made, done := *f.Sessions*float64(f.Curve[0].Done), float64(f.Curve[0].Done)
		if keeps && made > 2.5 || !keeps && (made < 0.9*done || made > 1.1*done+2) { // a client opens one at least
			t.Errorf("connections are kept: %v, and %v sessions were made for %v operations", keeps, made, done)
		}
		if strings.Contains(f.Work, "session kept,") != keeps {
			t.Errorf("connections are kept: %v, and the report says %q", keeps, f.Work)
		}
	}
}
