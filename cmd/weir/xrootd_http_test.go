package main

import (
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"

	"weir/internal/require"
	"weir/internal/tier"
	"weir/lab"
	"weir/lab/labtest"
	"weir/loadtest/analysis"
	"weir/storage"
)

// onEachXRootD runs a test beside others on one server of each version.
func onEachXRootD(t *testing.T, test func(t *testing.T, s *lab.System)) {
	t.Helper()
	t.Parallel()
	for _, version := range labtest.XRootDs() {
		t.Run("version "+version, func(t *testing.T) {
			t.Parallel()
			test(t, labtest.Start(t, lab.XRootDConfig{Version: version}))
		})
	}
}

// XRootD 5 may answer a question for a checksum with that of another file, on a
// connection that was used before: no payload is called wrong for that.
func TestChecksumsOfXRootDOverHTTP(t *testing.T) {
	onEachXRootD(t, func(t *testing.T, s *lab.System) {
		fill(t, s.Data, 50, 64<<10)
		f := measureAll(t, s.URLs["http"], "--clients", "16", "--duration", "3s", "--set", "load.ramp=100ms", "--set", "load.warmup=200ms",
			"--set", "workload.verify=100%")[0]
		want(t, f, "verification", analysis.OK)
		if c := f.Curve[0]; c.Verified < 50 || c.ErrorsBy[storage.Checksummed] > 0 {
			t.Errorf("%d of %d payloads verified; errors: %v", c.Verified, c.Done, c.ErrorsBy)
		}
	})
}

// An answer to a removal that is lost is told, costs half a minute and leaves nothing.
func TestRemovalAnswerOfXRootDIsLost(t *testing.T) {
	tier.Full(t, "half a minute of waiting for XRootD")
	onEachXRootD(t, func(t *testing.T, s *lab.System) {
		address, lost := forgetful(t, s.URLs["http"], http.MethodDelete)
		p := started(t, "run", "--out", filepath.Join(t.TempDir(), "run"), "--target", address, "--clients", "4", "--duration", "2s",
			"--set", "load.ramp=100ms", "--set", "files.make={count: 20, size: 64KiB}")
		code, said := p.ended()
		if code != exitFine && code != exitInvalid || !lost.Load() || !strings.Contains(said, "no answer for ") ||
			strings.Contains(said, "could not be removed") {
			t.Errorf("exit code %d, an answer was lost: %v\n%s", code, lost.Load(), said)
		}
		empty(t, s.Data)
	})
}

// forgetful starts a proxy before a server that passes on all but the answer to the
// first request of a method; lost tells that there was one.
func forgetful(t *testing.T, server, method string) (address string, lost *atomic.Bool) {
	t.Helper()
	to, err := url.Parse(server)
	require.NoError(t, err)
	proxy, lost := httputil.NewSingleHostReverseProxy(&url.URL{Scheme: to.Scheme, Host: to.Host}), &atomic.Bool{}
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method == method && lost.CompareAndSwap(false, true) {
			proxy.ServeHTTP(httptest.NewRecorder(), r)
			<-r.Context().Done() // the client has hung up
			return
		}
		proxy.ServeHTTP(w, r)
	}))
	t.Cleanup(s.Close)
	return s.URL + to.Path, lost
}
