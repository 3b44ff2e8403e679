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

// onEachXRootD runs a test in parallel with other tests on one server of each version.
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

// On a reused connection XRootD 5 may respond to a checksum request with the checksum of another
// file. No payload is reported as wrong because of that.
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

// A lost response to a removal is reported, costs half a minute and leaves no files.
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

// forgetful starts a proxy of a server that forwards everything except the response to the first
// request of a method. lost reports that there was such a request.
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
