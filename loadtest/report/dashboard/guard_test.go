package dashboard

import (
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"weir/internal/require"
	"weir/loadtest/results"
	"weir/loadtest/results/resultstest"
)

// response returns the response of h to a request, which change may change.
func response(h http.Handler, method, target string, change func(*http.Request)) *http.Response {
	r := httptest.NewRequest(method, target, nil)
	r.Host = "127.0.0.1:9347"
	if change != nil {
		change(r)
	}
	w := httptest.NewRecorder()
	h.ServeHTTP(w, r)
	return w.Result()
}

func body(t *testing.T, r *http.Response) string {
	t.Helper()
	b, err := io.ReadAll(r.Body)
	require.NoError(t, err)
	return string(b)
}

// Without a token, only browsers on this machine have access, under its own name, and only from the
// page itself.
func TestLoopback(t *testing.T) {
	seen := (&guard{loopback: true}).wrap(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusTeapot) }))
	for host, want := range map[string]int{
		"127.0.0.1:9347": http.StatusTeapot, "localhost:1": http.StatusTeapot, "LOCALHOST.": http.StatusTeapot, "[::1]:9347": http.StatusTeapot,
		"127.9.9.9":      http.StatusTeapot,
		"weir.localhost": http.StatusTeapot, "[::ffff:127.0.0.1]:1": http.StatusTeapot,
		"evil.example.org:9347": http.StatusForbidden, "127.0.0.1.evil.example.org": http.StatusForbidden, "10.0.0.1:9347": http.StatusForbidden,
		"": http.StatusForbidden, "localhost.evil.example.org": http.StatusForbidden, "[::2]:9347": http.StatusForbidden,
		"notlocalhost": http.StatusForbidden,
	} {
		if got := response(seen, "GET", "/", func(r *http.Request) { r.Host = host }); got.StatusCode != want {
			t.Errorf("Host %q: %s", host, got.Status)
		}
	}
	for name, one := range map[string]struct {
		header, value string
		want          int
	}{
		"own origin":         {"Origin", "http://127.0.0.1:9347", http.StatusTeapot},
		"another port":       {"Origin", "http://127.0.0.1:80", http.StatusForbidden},
		"another site":       {"Origin", "https://evil.example.org", http.StatusForbidden},
		"a file":             {"Origin", "null", http.StatusForbidden},
		"own page":           {"Sec-Fetch-Site", "same-origin", http.StatusTeapot},
		"typed":              {"Sec-Fetch-Site", "none", http.StatusTeapot},
		"an image elsewhere": {"Sec-Fetch-Site", "cross-site", http.StatusForbidden},
		"a sibling":          {"Sec-Fetch-Site", "same-site", http.StatusForbidden},
	} {
		if got := response(seen, "GET", "/events", func(r *http.Request) { r.Header.Set(one.header, one.value) }); got.StatusCode != one.want {
			t.Errorf("%s: %s", name, got.Status)
		}
	}
	for _, method := range []string{"POST", "PUT", "DELETE", "OPTIONS", "PATCH", "CONNECT", "TRACE"} {
		if got := response(seen, method, "/", nil); got.StatusCode != http.StatusMethodNotAllowed {
			t.Errorf("%s: %s", method, got.Status)
		}
	}
}

// A browser with the token receives a cookie; other browsers receive nothing.
func TestToken(t *testing.T) {
	const token = "0123456789abcdef"
	seen := (&guard{token: token, cookie: "weir-1"}).wrap(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(http.StatusTeapot)
	}))
	enter := response(seen, "GET", "/?run=a%26b&token="+token, nil)
	if text := body(t, enter); enter.StatusCode != http.StatusOK || !strings.Contains(text, `content="0; url=/?run=a%26b"`) ||
		strings.Contains(text, token) {
		t.Fatalf("%s: %s", enter.Status, text)
	}
	c := enter.Cookies()
	if len(c) != 1 || !c[0].HttpOnly || c[0].SameSite != http.SameSiteStrictMode || c[0].Name != "weir-1" || c[0].Path != "/" ||
		c[0].Domain != "" {
		t.Fatalf("cookies %v", c)
	}
	for name, one := range map[string]struct {
		target string
		change func(*http.Request)
		want   int
	}{
		"cookie":         {"/events", func(r *http.Request) { r.AddCookie(c[0]) }, http.StatusTeapot},
		"header":         {"/events", func(r *http.Request) { r.Header.Set("Authorization", "bearer "+token) }, http.StatusTeapot},
		"nothing":        {"/", nil, http.StatusUnauthorized},
		"nothing, data":  {"/events", nil, http.StatusUnauthorized},
		"nothing, style": {"/live.css", nil, http.StatusUnauthorized},
		"wrong":          {"/?token=0123456789abcdeX", nil, http.StatusUnauthorized},
		"empty":          {"/?token=", nil, http.StatusUnauthorized},
		"elsewhere":      {"/events?token=" + token, nil, http.StatusUnauthorized},
		"wrong cookie":   {"/", func(r *http.Request) { r.AddCookie(&http.Cookie{Name: "weir-1", Value: "x"}) }, http.StatusUnauthorized},
		"other cookie":   {"/", func(r *http.Request) { r.AddCookie(&http.Cookie{Name: "weir-2", Value: token}) }, http.StatusUnauthorized},
		"wrong header":   {"/", func(r *http.Request) { r.Header.Set("Authorization", "Bearer x") }, http.StatusUnauthorized},
		"basic":          {"/", func(r *http.Request) { r.SetBasicAuth("", token) }, http.StatusUnauthorized},
		"any name":       {"/", func(r *http.Request) { r.AddCookie(c[0]); r.Host = "wall.example.org" }, http.StatusTeapot},
		"another site": {"/events", func(r *http.Request) { r.AddCookie(c[0]); r.Header.Set("Origin", "http://evil.example.org") },
			http.StatusForbidden},
	} {
		got := response(seen, "GET", one.target, one.change)
		if got.StatusCode != one.want {
			t.Errorf("%s: %s", name, got.Status)
		}
		if text := body(t, got); strings.Contains(text, token) {
			t.Errorf("%s: the answer tells the token", name)
		}
	}
}

// An address that other machines can reach has a token, random each time; a given token is required
// at every address.
func TestWhoNeedsAToken(t *testing.T) {
	wide, again := serving(t, Config{Dir: t.TempDir(), Listen: "0.0.0.0:0"}), serving(t, Config{Dir: t.TempDir(), Listen: "0.0.0.0:0"})
	if len(wide.guard.token) < 20 || wide.guard.token == again.guard.token || !strings.HasSuffix(wide.URL(), "?token="+wide.guard.token) {
		t.Errorf("%s, %s", wide.URL(), again.URL())
	}
	if near := serving(t, Config{Dir: t.TempDir()}); near.guard.token != "" || strings.Contains(near.URL(), "token") {
		t.Errorf("%s", near.URL())
	}
	own := serving(t, Config{Dir: t.TempDir(), Token: "of a file"})
	resp, err := http.Get(strings.Split(own.URL(), "?")[0])
	require.NoError(t, err)
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusUnauthorized {
		t.Errorf("without the token: %s", resp.Status)
	}
}

// Only the files of the page are served, and every response is hardened.
func TestPaths(t *testing.T) {
	dir := t.TempDir()
	require.NoError(t, resultstest.Typical().Write(dir))
	s := serving(t, Config{Dir: dir})
	for target, want := range map[string]int{
		"/": 200, "/plain": 200, "/style.css": 200, "/report.html": 404, "/plain?run=..": 404, "/report.html?run=../../etc": 404,
		"/plan.json": 404, "/intervals.jsonl": 404,
		"/../plan.json": 404, "//etc/passwd": 404, "/report.html/": 404, "/%2e%2e/plan.json": 404, "/favicon.ico": 404, "/live.ts": 404,
		"/debug/pprof/": 404,
	} {
		got := response(s.http.Handler, "GET", "http://127.0.0.1"+target, nil)
		if code := got.StatusCode; code != want && (want != 404 || code < 300 || code >= 310) {
			t.Errorf("%s: %s", target, got.Status)
		}
		h := got.Header
		if !strings.Contains(h.Get("Content-Security-Policy"), "default-src 'none'") || h.Get("X-Content-Type-Options") != "nosniff" ||
			h.Get("Referrer-Policy") != "no-referrer" || h.Get("Cache-Control") != "no-store" {
			t.Errorf("%s: %v", target, h)
		}
	}
}

// The report of the run is served unchanged, in a sandbox; a file to which a link in its place
// leads is not served.
func TestReport(t *testing.T) {
	dir := t.TempDir()
	require.NoError(t, resultstest.Typical().Write(dir))
	s := serving(t, Config{Dir: dir})
	path := filepath.Join(dir, results.ReportFile)
	require.NoError(t, os.WriteFile(path, []byte("<title>it</title>"), 0o600))
	got := response(s.http.Handler, "GET", "/report.html", nil)
	if got.StatusCode != 200 || body(t, got) != "<title>it</title>" ||
		!strings.Contains(got.Header.Get("Content-Security-Policy"), "sandbox") {
		t.Errorf("%s %v", got.Status, got.Header)
	}
	secret := filepath.Join(t.TempDir(), "secret")
	require.NoError(t, os.WriteFile(secret, []byte("secret"), 0o600))
	for name, replace := range map[string]func() error{
		"a link":   func() error { return os.Symlink(secret, path) },
		"a folder": func() error { return os.Mkdir(path, 0o700) },
	} {
		require.NoError(t, os.Remove(path))
		require.NoError(t, replace())
		if got := response(s.http.Handler, "GET", "/report.html", nil); got.StatusCode != http.StatusNotFound {
			t.Errorf("%s: %s", name, got.Status)
		}
	}
}

func TestAddresses(t *testing.T) {
	for text, want := range map[string]string{
		"8000": "127.0.0.1:8000", ":8000": ":8000", "wall:80": "wall:80", "[::1]:80": "[::1]:80", "::1": "[::1]:0", "wall": "wall:0",
		"0.0.0.0": "0.0.0.0:0",
	} {
		if got, err := ParseAddress(text); err != nil || got != want {
			t.Errorf("%q: %q, %v", text, got, err)
		}
	}
	for _, text := range []string{"", "wall:x", "http://wall:80", "a b", "wall:99999", "x.yaml/"} {
		if got, err := ParseAddress(text); err == nil {
			t.Errorf("%q is taken for %q", text, got)
		}
	}
	// The usual port is tried first, then others: two simultaneous pages have two ports.
	a, b := serving(t, Config{Dir: t.TempDir(), Listen: "127.0.0.1:0"}), Config{Dir: t.TempDir()}
	b.Listen = a.listener.Addr().String()
	if s, err := Open(t.Context(), b, nil); err == nil {
		t.Error("an address is served twice", s.Close())
	}
	l, err := listen(t.Context(), "")
	require.NoError(t, err)
	defer l.Close()
	if ip := l.Addr().(*net.TCPAddr).IP; !ip.IsLoopback() {
		t.Errorf("by itself it listens at %v", ip)
	}
}
