package endpoint

import (
	"bytes"
	"crypto/sha256"
	"crypto/tls"
	"encoding/hex"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"weir/internal/require"
	"weir/internal/token"
	"weir/internal/tpc"
	"weir/internal/trust"
	"weir/lab"
	"weir/lab/labtest"
	"weir/serve"
	"weir/serve/servetest/requests"
)

// answers returns the number of requests of a method to which a server has responded with a status.
func answers(t testing.TB, s *serve.Server, raw, method string, code int) int64 {
	t.Helper()
	page := httptest.NewRecorder()
	request := httptest.NewRequest(http.MethodGet, "/metrics", nil)
	request.Header.Set("Authorization", "Bearer "+raw)
	s.ServeHTTP(page, request)
	for line := range strings.Lines(page.Body.String()) {
		if n, ok := strings.CutPrefix(line, fmt.Sprintf("weir_serve_requests_total{method=%q,code=\"%d\"} ", method, code)); ok {
			count, err := strconv.ParseInt(strings.TrimSpace(n), 10, 64)
			require.NoError(t, err)
			return count
		}
	}
	return 0
}

// A file is received over the requested number of connections, in parts, and is complete and
// verified. The size in its token is respected.
func TestStreams(t *testing.T) {
	t.Parallel()
	from, to := t.TempDir(), t.TempDir()
	text := requests.Content(7, 2*streamPart+5)
	requests.Write(t, text, from, "f")
	i := newIssuer(t)
	a := start(t, serve.Config{Dir: from})
	b := start(t, serve.Config{Dir: to, Authenticate: trusting(t, i), Extensions: copying(local())})
	drive := func(name string, size int64, streams int) error {
		dest := at(b, "/"+name, sized(t, i, size, token.Path("create", "/"+name)))
		return driver(t).Drive(t.Context(), tpc.Order{Active: dest, Passive: at(a, "/f", ""), Verify: true, Streams: streams}, nil)
	}
	for n, want := range []int64{0, 0, 3, 6} {
		name := fmt.Sprintf("g%d%c", want, 'a'+n)
		if err := drive(name, int64(len(text)), []int{0, 1, 2, 1000}[n]); err != nil || requests.Read(t, to, name) != text {
			t.Errorf("%s: %v", name, err)
		}
		if got := answers(t, a, "", "GET", http.StatusPartialContent); got != want {
			t.Errorf("%d parts were asked for, not %d", got, want)
		}
	}
	if err := drive("more", int64(len(text))-1, 4); err == nil || !strings.Contains(err.Error(), "may be stored") {
		t.Errorf("more than the token allows: %v", err)
	}
	if _, err := os.Stat(filepath.Join(to, "more")); err == nil {
		t.Error("it is there")
	}
}

// If a server does not support ranges, the whole file is received. If its file changes during the
// copy, or it sends wrong ranges, the copy fails.
func TestStreamsFromOthers(t *testing.T) {
	text := []byte(requests.Content(8, 2*streamPart))
	to := t.TempDir()
	b := start(t, serve.Config{Dir: to, Extensions: copying(local())})
	for name, tt := range map[string]struct {
		get func(w http.ResponseWriter, r *http.Request)
		bad string
	}{
		"whole": {func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write(text) }, ""},
		"another file": {func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Etag", `"2"`)
			http.ServeContent(w, r, "", time.Time{}, bytes.NewReader(text))
		}, "has changed"},
		"longer": {func(w http.ResponseWriter, r *http.Request) {
			http.ServeContent(w, r, "", time.Time{}, bytes.NewReader(append(text[:len(text):len(text)], 'x')))
		}, "has changed"},
		"cut": {func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Content-Range", strings.Replace(r.Header.Get("Range"), "=", " ", 1)+"/33554432")
			w.WriteHeader(http.StatusPartialContent)
			_, _ = w.Write(text[:10])
		}, "10 bytes of a part"},
		"gone": {func(w http.ResponseWriter, r *http.Request) { http.NotFound(w, r) }, "404"},
	} {
		s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if r.Method == http.MethodHead {
				w.Header().Set("Etag", `"1"`)
				w.Header().Set("Content-Length", "33554432")
				return
			}
			tt.get(w, r)
		}))
		err := driver(t).Drive(t.Context(), tpc.Order{Active: at(b, "/f", ""), Passive: tpc.Target{URL: s.URL + "/f"}, Streams: 4,
			Overwrite: true}, nil)
		if tt.bad == "" && (err != nil || requests.Read(t, to, "f") != string(text)) || tt.bad != "" &&
			(err == nil || !strings.Contains(err.Error(), tt.bad)) {
			t.Errorf("%s: %v", name, err)
		}
		s.Close()
	}
	quiet(t, to, "f")
}

// A real XRootD server sends ranges as well.
func TestStreamsFromXRootD(t *testing.T) {
	x := labtest.Start(t, lab.XRootDConfig{Copies: true})
	text := requests.Content(9, 3*streamPart+1)
	require.NoError(t, os.WriteFile(filepath.Join(x.Data, "f"), []byte(text), 0o644))
	to := t.TempDir()
	b := start(t, serve.Config{Dir: to, Extensions: copying(local())})
	o := tpc.Order{Active: at(b, "/f", ""), Passive: tpc.Target{URL: x.URLs["http"] + "/f"}, Streams: 3, Verify: true}
	if err := driver(t).Drive(t.Context(), o, nil); err != nil || requests.Read(t, to, "f") != text {
		t.Error(err)
	}
}

// A server without a certificate of a known authority is trusted by its pin, which is configured or
// sent by the client of a copy; with another pin it is refused.
func TestPinsOfOthers(t *testing.T) {
	dir, to := t.TempDir(), t.TempDir()
	certificate(t, dir, "host", "/CN=self", "")
	pair, err := tls.LoadX509KeyPair(filepath.Join(dir, "host.pem"), filepath.Join(dir, "host.key"))
	require.NoError(t, err)
	sum := sha256.Sum256(pair.Certificate[0])
	pin, wrong := hex.EncodeToString(sum[:]), strings.Repeat("0", 64)
	a := start(t, serve.Config{Synthetic: []serve.Set{{Count: 1, Size: 1000}}, Certificate: &pair})
	host := strings.TrimPrefix(a.URL(), "https://")
	known, err := trust.ReadPins([]string{host + "=" + strings.ToUpper(pin)})
	require.NoError(t, err)
	for name, tt := range map[string]struct {
		pins map[string]string
		said string
		good bool
	}{
		"nobody-vouches": {nil, "", false}, "the-client-says": {nil, pin, true}, "the-client-is-wrong": {nil, wrong, false},
		"the-server-knows": {known, "", true}, "the-server-knows-better": {known, wrong, true},
		"of-another-port": {map[string]string{"127.0.0.1:1": pin}, "", false},
	} {
		c := local()
		c.Pins = tt.pins
		b := start(t, serve.Config{Dir: to, Extensions: copying(c)})
		o := tpc.Order{Active: at(b, "/"+name, ""), Passive: tpc.Target{URL: a.URL() + "/file000000.dat", Pin: tt.said}}
		if err := driver(t).Drive(t.Context(), o, nil); (err == nil) != tt.good {
			t.Errorf("%s: %v", name, err)
		}
		check(t, b, exchange{Method: "COPY", Path: "/bad", Header: map[string]string{"Source": o.Passive.URL, "Weir-Pin": "nonsense"}, Code: 400})
	}
	for _, bad := range []string{"", "host", "host=", "host:1=00", "=" + pin, ":1=" + pin, "[::1=" + pin, "h=" + pin + "0"} {
		if pins, err := trust.ReadPins([]string{bad}); err == nil {
			t.Errorf("%q: %v", bad, pins)
		}
	}
	if pins, err := trust.ReadPins([]string{"Host=" + pin, "[::1]:8443=" + pin}); err != nil || pins["host:443"] != pin ||
		pins["[::1]:8443"] != pin {
		t.Errorf("%v, %v", pins, err)
	}
}
