package endpoint

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"weir/internal/require"
	"weir/internal/tier"
	"weir/internal/tpc"
	"weir/serve"
	"weir/serve/servetest/requests"
)

// local allows copies from and to servers of this machine.
func local() CopyOptions {
	return CopyOptions{Guard: tpc.Guard{Hosts: []string{"127.0.0.1", "localhost"}, Private: true}}
}

func copying(o CopyOptions) []serve.Extension { return []serve.Extension{NewCopier(o)} }

func driver(t testing.TB) *tpc.Client {
	t.Helper()
	c := tpc.New(tpc.Options{})
	t.Cleanup(c.Close)
	return c
}

func at(s *serve.Server, path, raw string) tpc.Target {
	return tpc.Target{URL: s.URL() + path, Token: raw}
}

// quiet fails the test if a folder has any other names than these.
func quiet(t testing.TB, dir string, want ...string) {
	t.Helper()
	if got := requests.Names(t, dir); got != strings.Join(want, " ") {
		t.Errorf("the folder has %q, not %q", got, want)
	}
}

// A file is copied between two endpoints by either of them, with a token for each, and its checksum
// is compared.
func TestCopiesBetweenDoors(t *testing.T) {
	i := newIssuer(t)
	for _, push := range []bool{false, true} {
		for _, size := range []int{0, 1, 100, 70_000, 5_000_000} {
			from, to := t.TempDir(), t.TempDir()
			text := requests.Content(uint64(size), size)
			requests.Write(t, text, from, "f")
			a := start(t, serve.Config{Dir: from, Authenticate: trusting(t, i), Extensions: copying(local())})
			b := start(t, serve.Config{Dir: to, Authenticate: trusting(t, i), Extensions: copying(local())})
			source, dest := at(a, "/f", newToken(t, i, "storage.read:/f")), at(b, "/g", newToken(t, i, "storage.create:/g"))
			o := tpc.Order{Active: dest, Passive: source, Verify: true}
			if push {
				o = tpc.Order{Active: source, Passive: dest, Push: true, Verify: true}
			}
			moved := int64(0)
			if err := driver(t).Drive(t.Context(), o, func(n int64) { moved = n }); err != nil {
				t.Fatalf("push %v, %d bytes: %v", push, size, err)
			}
			if requests.Read(t, to, "g") != text || moved != int64(size) {
				t.Errorf("push %v: %d bytes moved of %d, or others arrived", push, moved, size)
			}
			quiet(t, to, "g")
			info, err := driver(t).Checksum(t.Context(), dest, tpc.Wish{})
			if want := strings.TrimPrefix(sumOf(t, text), "adler32:"); err != nil || info.Adler != want || info.Size != int64(size) {
				t.Errorf("%+v, %v", info, err)
			}
			if err := driver(t).Drive(t.Context(), o, nil); tpc.KindOf(err) != tpc.Exists {
				t.Errorf("push %v over a file that is there: %v", push, err)
			}
			o.Overwrite = true
			if err := driver(t).Drive(t.Context(), o, nil); tpc.KindOf(err) != tpc.Denied && tpc.KindOf(err) != tpc.Exists {
				t.Errorf("push %v over a file that may only be created: %v", push, err)
			}
		}
	}
}

func sumOf(t testing.TB, text string) string {
	t.Helper()
	hashes := newHashes(nil)
	_, _ = io.WriteString(hashes[adlerName], text)
	return textsOf(hashes)[adlerName]
}

// An invalid request is refused before a copy begins.
func TestCopiesThatAreRefused(t *testing.T) {
	dir := t.TempDir()
	requests.Write(t, "text", dir, "f")
	require.NoError(t, os.Mkdir(filepath.Join(dir, "d"), 0o755))
	s := start(t, serve.Config{Dir: dir, Extensions: copying(local())})
	other := start(t, serve.Config{Synthetic: []serve.Set{{Count: 1, Size: 10}}})
	source := other.URL() + "/file000000.dat"
	type h = map[string]string
	for name, tt := range map[string]struct {
		path   string
		header h
		code   int
	}{
		"both ends":                 {"/x", h{"Source": source, "Destination": other.URL() + "/y"}, 400},
		"another credential":        {"/x", h{"Source": source, "Credential": "gridsite"}, 400},
		"verification perhaps":      {"/x", h{"Source": source, "RequireChecksumVerification": "maybe"}, 400},
		"overwrite perhaps":         {"/x", h{"Source": source, "Overwrite": "t"}, 400},
		"no URL":                    {"/x", h{"Source": "http://[::1"}, 400},
		"a path":                    {"/x", h{"Source": "/f"}, 403},
		"a file":                    {"/x", h{"Source": "file:///etc/passwd"}, 403},
		"another protocol":          {"/x", h{"Source": "root://127.0.0.1//f"}, 403},
		"a host not in the list":    {"/x", h{"Source": "http://example.org/f"}, 403},
		"metadata of clouds":        {"/x", h{"Source": "http://169.254.169.254/latest"}, 403},
		"a user":                    {"/x", h{"Source": "http://a:b@127.0.0.1/f"}, 403},
		"onto a folder":             {"/d", h{"Source": source}, 405},
		"onto a folder's name":      {"/x/", h{"Source": source}, 405},
		"onto a file":               {"/f", h{"Source": source, "Overwrite": "F"}, 412},
		"without a folder":          {"/no/x", h{"Source": source}, 202},
		"out of the folder":         {"/../x", h{"Source": source}, 400},
		"of nothing":                {"/none", h{"Destination": other.URL() + "/y"}, 404},
		"of a folder":               {"/d", h{"Destination": other.URL() + "/y"}, 405},
		"to a host not in the list": {"/f", h{"Destination": "http://example.org/f"}, 403},
	} {
		resp, body := do(t, s, exchange{Method: "COPY", Path: tt.path, Header: tt.header})
		if resp.StatusCode != tt.code || resp.StatusCode == 202 && !strings.Contains(body, "failure: ") {
			t.Errorf("%s: %d %s", name, resp.StatusCode, body)
		}
	}
	check(t, s, exchange{Method: "COPY", Path: "/x", Header: h{"Source": source}, Body: "a body", Code: 415})
	quiet(t, dir, "d", "f")
	check(t, other, exchange{Method: "COPY", Path: "/x", Header: h{"Source": s.URL() + "/f"}, Code: 501})
	check(t, other, exchange{Method: "COPY", Path: "/file000000.dat", Header: h{"Destination": s.URL() + "/x"}, Code: 502})
	ro := start(t, serve.Config{Dir: dir, ReadOnly: true, Extensions: copying(local())})
	check(t, ro, exchange{Method: "COPY", Path: "/x", Header: h{"Source": source}, Code: 405})
	if err := driver(t).Drive(t.Context(), tpc.Order{Active: at(ro, "/f", ""), Passive: at(other, "/up", ""), Push: true}, nil); err != nil {
		t.Errorf("a push from a server that is only read: %v", err)
	}
}

// Connections to private addresses are refused, regardless of their name.
func TestPrivatePeersAreRefused(t *testing.T) {
	inside := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		t.Errorf("%s %s came through", r.Method, r.URL)
	}))
	defer inside.Close()
	dir := t.TempDir()
	s := start(t, serve.Config{Dir: dir, Extensions: copying(CopyOptions{Guard: tpc.Guard{Hosts: []string{"*"}}})})
	port := inside.URL[strings.LastIndex(inside.URL, ":"):]
	for _, host := range []string{"127.0.0.1", "localhost", "localhost.", "[::1]", "[::ffff:127.0.0.1]", "0.0.0.0", "2130706433",
		"127.1", "0x7f.1"} {
		for _, header := range []string{"Source", "Destination"} {
			requests.Write(t, "text", dir, "f")
			resp, body := do(t, s, exchange{Method: "COPY", Path: map[string]string{"Source": "/x", "Destination": "/f"}[header],
				Header: map[string]string{header: "http://" + host + port + "/f"}})
			if resp.StatusCode != 403 && !strings.Contains(body, "failure: ") {
				t.Errorf("%s %s: %d %s", header, host, resp.StatusCode, body)
			}
		}
	}
	quiet(t, dir, "f")
}

// source returns the URL of an endpoint that misbehaves for a test.
func source(t *testing.T, f http.HandlerFunc) tpc.Target {
	t.Helper()
	s := httptest.NewServer(f)
	t.Cleanup(s.Close)
	return tpc.Target{URL: s.URL + "/f", Token: "secret"}
}

// After any error at the other end, the client receives the reason, no file has the name, and no
// other file is left.
func TestPullsThatFail(t *testing.T) {
	t.Parallel()
	const size = 1 << 20
	text := strings.Repeat("x", size)
	head := func(w http.ResponseWriter, r *http.Request, n int, digest string) bool {
		w.Header().Set("Content-Length", fmt.Sprint(n))
		if r.Header.Get("Want-Digest") != "" && digest != "" {
			w.Header().Set("Digest", "adler32="+digest)
		}
		return r.Method == http.MethodHead
	}
	right := strings.TrimPrefix(sumOf(t, text), "adler32:")
	for name, tt := range map[string]struct {
		f    http.HandlerFunc
		kind tpc.Kind
		says string
	}{
		"missing":   {http.NotFound, tpc.Missing, "404"},
		"forbidden": {func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(403) }, tpc.Denied, "403"},
		"ends early": {func(w http.ResponseWriter, r *http.Request) {
			if !head(w, r, size, right) {
				_, _ = io.WriteString(w, text[:size/2])
				panic(http.ErrAbortHandler)
			}
		}, tpc.Failed, "broke"},
		"sends less than it has": {func(w http.ResponseWriter, r *http.Request) {
			if head(w, r, size, right) {
				return
			}
			w.Header().Set("Content-Length", "5")
			_, _ = io.WriteString(w, "short")
		}, tpc.Failed, "sends 5"},
		"sends less in chunks": {func(w http.ResponseWriter, r *http.Request) {
			if head(w, r, size, "") {
				return
			}
			w.Header().Del("Content-Length")
			_, _ = io.WriteString(w, text[:size-1])
			w.(http.Flusher).Flush()
		}, tpc.Failed, "sent 1048575"},
		"sends more than it has": {func(w http.ResponseWriter, r *http.Request) {
			if head(w, r, 1000, "") {
				return
			}
			w.Header().Del("Content-Length")
			for r.Context().Err() == nil { // endless
				if _, err := io.WriteString(w, text); err != nil {
					return
				}
			}
		}, tpc.Failed, "sends more"},
		"other bytes": {func(w http.ResponseWriter, r *http.Request) {
			if !head(w, r, size, right) {
				_, _ = io.WriteString(w, text[:size-1]+"y")
			}
		}, tpc.Mismatch, "checksum differs"},
		"no checksum": {func(w http.ResponseWriter, r *http.Request) {
			if !head(w, r, size, "") {
				_, _ = io.WriteString(w, text)
			}
		}, tpc.Mismatch, "tells no adler32"},
		"a part": {func(w http.ResponseWriter, r *http.Request) {
			if !head(w, r, size, right) {
				w.WriteHeader(206)
				_, _ = io.WriteString(w, text)
			}
		}, tpc.Failed, "206"},
		"redirects for ever": {func(w http.ResponseWriter, r *http.Request) { http.Redirect(w, r, "/f", http.StatusTemporaryRedirect) },
			tpc.Failed, "redirects more than"},
		"redirects to metadata": {func(w http.ResponseWriter, r *http.Request) {
			http.Redirect(w, r, "http://169.254.169.254/x", http.StatusTemporaryRedirect)
		}, tpc.Failed, "not in the list"},
		"redirects to a file": {func(w http.ResponseWriter, r *http.Request) {
			http.Redirect(w, r, "file:///etc/passwd", http.StatusTemporaryRedirect)
		}, tpc.Failed, "over http or https"},
		"stands still": {func(w http.ResponseWriter, r *http.Request) {
			if !head(w, r, size, right) {
				_, _ = io.WriteString(w, text[:1000])
				w.(http.Flusher).Flush()
				<-r.Context().Done()
			}
		}, tpc.Failed, "no byte moved"},
	} {
		dir := t.TempDir()
		stall := time.Minute
		if name == "stands still" {
			stall = time.Second
		}
		s := start(t, serve.Config{Dir: dir, Extensions: copying(local()), StallTimeout: stall})
		err := driver(t).Drive(t.Context(), tpc.Order{Active: at(s, "/f", ""), Passive: source(t, tt.f), Verify: name != "sends less in chunks"},
			nil)
		if tpc.KindOf(err) != tt.kind || !strings.Contains(fmt.Sprint(err), tt.says) || strings.Contains(fmt.Sprint(err), "secret") {
			t.Errorf("%s: %v (%s)", name, err, tpc.KindOf(err))
		}
		quiet(t, dir)
	}
}

// The server waits for a source whose checksum is delayed. A source that never reports a checksum
// is accepted unless the client requires a checksum.
func TestSourcesWithoutChecksums(t *testing.T) {
	asked := 0
	f := func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("Want-Digest") != "" {
			if asked++; asked == 2 {
				w.Header().Set("Digest", "adler32=62600C3") // the checksum of "abcd" is 03d8018b: this checksum is wrong
			}
		}
		http.ServeContent(w, r, "", time.Time{}, strings.NewReader("abcd"))
	}
	dir := t.TempDir()
	s := start(t, serve.Config{Dir: dir, Extensions: copying(local())})
	if err := driver(t).Drive(t.Context(), tpc.Order{Active: at(s, "/f", ""), Passive: source(t, f)}, nil); err != nil ||
		requests.Read(t, dir, "f") != "abcd" {
		t.Error(err)
	}
	err := driver(t).Drive(t.Context(), tpc.Order{Active: at(s, "/g", ""), Passive: source(t, f), Verify: true}, nil)
	if tpc.KindOf(err) != tpc.Mismatch || !strings.Contains(err.Error(), "062600c3") {
		t.Error(err)
	}
	quiet(t, dir, "f")
}

// Headers reach the other end with their intended names, and no other headers do.
func TestTransferHeaders(t *testing.T) {
	f := func(w http.ResponseWriter, r *http.Request) {
		h := r.Header
		if h.Get("Authorization") != "Bearer secret" || h.Get("X-More") != "1" || h.Get("Range") != "" || h.Get("Cookie") != "" ||
			strings.HasPrefix(r.Host, "evil") {
			t.Errorf("%s: %v %s", r.Method, h, r.Host)
		}
		http.ServeContent(w, r, "", time.Time{}, strings.NewReader("abcd"))
	}
	s := start(t, serve.Config{Synthetic: []serve.Set{{Count: 1, Size: 1}}, Extensions: copying(local())})
	check(t, s, exchange{Method: "COPY", Path: "/f", Code: 202, Header: map[string]string{"Source": source(t, f).URL, "Cookie": "mine",
		"TransferHeaderAuthorization": "Bearer secret",
		"TransferHeaderX-More":        "1", "TransferHeaderRange": "bytes=0-1", "TransferHeaderHost": "evil",
		"TransferHeaderContent-Length": "7"}})
	check(t, s, exchange{Method: "GET", Path: "/f", Code: 200, Want: "abcd"})
}

// While bytes move, markers report their number. Markers also keep a client waiting while the
// source computes its checksum.
func TestMarkers(t *testing.T) {
	c := NewCopier(local())
	c.every = 20 * time.Millisecond
	s := start(t, serve.Config{Synthetic: []serve.Set{{Count: 1, Size: 1}}, Extensions: []serve.Extension{c}})
	on := make(chan struct{})
	f := func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Length", "3")
		switch {
		case r.Method == http.MethodGet:
			for range 3 {
				wait(r, on)
				_, _ = io.WriteString(w, "x")
				w.(http.Flusher).Flush()
			}
		case r.Header.Get("Want-Digest") != "":
			wait(r, on)
		}
	}
	var seen []int64
	count := 0
	err := driver(t).Drive(t.Context(), tpc.Order{Active: at(s, "/f", ""), Passive: source(t, f)}, func(n int64) {
		if count++; len(seen) == 0 || n != seen[len(seen)-1] {
			seen = append(seen, n)
		}
		if count%3 == 0 {
			select {
			case on <- struct{}{}:
			default:
			}
		}
	})
	if err != nil || len(seen) < 2 || seen[len(seen)-1] != 3 || count < 9 {
		t.Errorf("%v after %d markers: %v", seen, count, err)
	}
}

// In the first seconds of a copy markers come more often than later: three of them arrive in less
// than two of the later intervals.
func TestEarlyMarkers(t *testing.T) {
	tier.Slow(t, "waits for markers")
	t.Parallel()
	s := start(t, serve.Config{Synthetic: []serve.Set{{Count: 1, Size: 1}}, Extensions: copying(local())})
	on := make(chan struct{})
	f := func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Length", "1")
		if r.Method == http.MethodGet {
			wait(r, on)
			_, _ = io.WriteString(w, "x")
		}
	}
	begin, count := time.Now(), 0
	err := driver(t).Drive(t.Context(), tpc.Order{Active: at(s, "/f", ""), Passive: source(t, f)}, func(int64) {
		if count++; count == 3 {
			close(on)
		}
	})
	if took := time.Since(begin); err != nil || took > 2*tpc.MarkerEvery {
		t.Errorf("%d markers after %v: %v", count, took, err)
	}
}

// wait waits for on, or for the end of the request.
func wait(r *http.Request, on <-chan struct{}) {
	select {
	case <-on:
	case <-r.Context().Done():
	}
}

// If a client disconnects, its copy ends and leaves no file.
func TestCancelledCopies(t *testing.T) {
	dir := t.TempDir()
	s := start(t, serve.Config{Dir: dir, Extensions: copying(local())})
	here, gone := make(chan struct{}), make(chan struct{})
	f := func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Length", "100000000")
		if r.Method == http.MethodHead {
			return
		}
		_, _ = w.Write(make([]byte, 1000))
		w.(http.Flusher).Flush()
		close(here)
		<-r.Context().Done()
		close(gone)
	}
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	go func() { <-here; cancel() }()
	if err := driver(t).Drive(ctx, tpc.Order{Active: at(s, "/f", ""), Passive: source(t, f)}, nil); err == nil {
		t.Error("no error")
	}
	<-gone
	require.Eventually(t, "nothing is left", func() bool { return requests.Names(t, dir) == "" })
}

// Copies beyond the limit are refused temporarily, and slots are released.
func TestRoomForCopies(t *testing.T) {
	c := local()
	c.Most = 1
	s := start(t, serve.Config{Synthetic: []serve.Set{{Count: 1, Size: 1}}, Extensions: copying(c)})
	here, on := make(chan struct{}, 1), make(chan struct{})
	f := func(w http.ResponseWriter, r *http.Request) {
		if r.Method == http.MethodGet {
			here <- struct{}{}
			<-on
		}
		http.ServeContent(w, r, "", time.Time{}, bytes.NewReader([]byte("abcd")))
	}
	o := tpc.Order{Active: at(s, "/f", ""), Passive: source(t, f), Overwrite: true}
	first := make(chan error, 1)
	go func() { first <- driver(t).Drive(t.Context(), o, nil) }()
	<-here
	err := driver(t).Drive(t.Context(), o, nil)
	if tpc.KindOf(err) != tpc.Busy {
		t.Errorf("error %v", err)
	}
	close(on)
	if err := <-first; err != nil {
		t.Error(err)
	}
	if err := driver(t).Drive(t.Context(), o, nil); err != nil {
		t.Error(err)
	}
}

// The client receives the error of a push at the other end as well.
func TestPushesThatFail(t *testing.T) {
	t.Parallel()
	const size = 1 << 20
	s := start(t, serve.Config{Synthetic: []serve.Set{{Count: 1, Size: size}}, Extensions: copying(local()), StallTimeout: 2 * time.Second})
	over := make(chan struct{})
	defer close(over) // before the test waits for the servers
	for name, tt := range map[string]struct {
		f    http.HandlerFunc
		kind tpc.Kind
	}{
		"no space": {func(w http.ResponseWriter, r *http.Request) {
			w.WriteHeader(map[bool]int{true: 404, false: 507}[r.Method == "HEAD"])
		}, tpc.Full},
		"forbidden": {func(w http.ResponseWriter, r *http.Request) {
			w.WriteHeader(map[bool]int{true: 404, false: 403}[r.Method == "HEAD"])
		}, tpc.Denied},
		"says yes without taking it": {func(w http.ResponseWriter, r *http.Request) {
			if r.Method == "HEAD" {
				w.WriteHeader(404)
			}
		}, tpc.Failed},
		"takes it and has nothing": {func(w http.ResponseWriter, r *http.Request) {
			if r.Method == "HEAD" {
				w.WriteHeader(404)
				return
			}
			_, _ = io.Copy(io.Discard, r.Body)
		}, tpc.Missing},
		"has less afterwards": {func(w http.ResponseWriter, r *http.Request) {
			if r.Method == "HEAD" && r.Header.Get("Want-Digest") == "" {
				w.WriteHeader(404)
				return
			}
			w.Header().Set("Content-Length", "5")
			_, _ = io.Copy(io.Discard, r.Body)
			_, _ = io.WriteString(w, "12345")
		}, tpc.Failed},
		"has others afterwards": {func(w http.ResponseWriter, r *http.Request) {
			if r.Method == "HEAD" && r.Header.Get("Want-Digest") == "" {
				w.WriteHeader(404)
				return
			}
			w.Header().Set("Digest", "adler32=00000001")
			if r.Method == "HEAD" {
				w.Header().Set("Content-Length", fmt.Sprint(size))
			}
			_, _ = io.Copy(io.Discard, r.Body)
		}, tpc.Mismatch},
		"takes nothing": {func(w http.ResponseWriter, r *http.Request) {
			if r.Method == "HEAD" {
				w.WriteHeader(404)
				return
			}
			<-over
		}, tpc.Failed},
	} {
		err := driver(t).Drive(t.Context(), tpc.Order{Active: at(s, "/file000000.dat", ""), Passive: source(t, tt.f), Push: true}, nil)
		if tpc.KindOf(err) != tt.kind {
			t.Errorf("%s: %v (%s)", name, err, tpc.KindOf(err))
		}
	}
}
