package webdav

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net"
	"net/http"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"weir/internal/content"
	"weir/internal/require"
	"weir/internal/tier"
	"weir/lab"
	"weir/lab/labtest"
	"weir/storage"
)

// redirector responds to all requests with a redirect to another peer.
func redirector(t testing.TB, status int, to string) *peer {
	return speak(t, "127.0.0.1", func(c *net.TCPConn, r *http.Request, _ int) bool {
		_, err := fmt.Fprintf(c, "HTTP/1.1 %d Go There\r\nLocation: %s%s?ticket=42\r\nContent-Length: 5\r\n\r\nthere", status, to,
			r.URL.EscapedPath())
		return err == nil
	})
}

func TestRedirectedRead(t *testing.T) {
	data := speak(t, "127.0.0.1", say("HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello"))
	for _, status := range []int{301, 302, 303, 307, 308} {
		p := redirector(t, status, data.url)
		c := clientAt(t, p.url+"/data", storage.Credentials{Method: "token", Token: "abc"})
		for i := range 2 {
			var e events
			_, err := c.Do(t.Context(), &storage.Op{Kind: storage.Read, Path: "a b", Size: 5, Timeout: 20 * time.Second}, &e)
			require.NoError(t, err)
			want := []storage.Phase{storage.Connected, storage.Authenticated, storage.Redirected, storage.Opened, storage.FirstByte}
			if i > 0 {
				want = want[2:] // both connections are kept
			}
			if d := cmp.Diff(want, e.phases); d != "" {
				t.Errorf("phases: %s", d)
			}
			if e.server != strings.TrimPrefix(data.url, "http://") || e.moved != 5 {
				t.Errorf("served by %q, moved %d", e.server, e.moved)
			}
		}
	}
	for _, r := range data.requests() {
		if r.URL.Path != "/data/a b" || r.URL.RawQuery != "ticket=42" || r.Header.Get("Authorization") != "" {
			t.Errorf("the data server saw %s, authorization %q", r.URL, r.Header.Get("Authorization"))
		}
	}
}

// TestRedirectsAreKept checks that a client requests a file from the redirector once for all ranges
// of an operation, and once for all operations that keep the file open; again for another file, and
// if the redirect has expired.
func TestRedirectsAreKept(t *testing.T) {
	var expired atomic.Bool
	data := speak(t, "127.0.0.1", func(c *net.TCPConn, r *http.Request, _ int) bool {
		var from, to int
		if _, err := fmt.Sscanf(r.Header.Get("Range"), "bytes=%d-%d", &from, &to); err != nil {
			return false
		}
		if expired.CompareAndSwap(true, false) {
			_, err := io.WriteString(c, "HTTP/1.1 410 Gone\r\nContent-Length: 4\r\n\r\ngone")
			return err == nil
		}
		n := to - from + 1
		_, err := fmt.Fprintf(c, "HTTP/1.1 206 Partial Content\r\nContent-Range: bytes %d-%d/100\r\nContent-Length: %d\r\n\r\n%s", from, to, n,
			strings.Repeat("x", n))
		return err == nil
	})
	p := redirector(t, 307, data.url)
	c := clientAt(t, p.url, storage.Credentials{})
	parts := []storage.Range{{Offset: 0, Length: 10}, {Offset: 50, Length: 20}}
	for i, step := range []struct {
		path  string
		keep  bool
		stale bool
		asked int // number of requests to the redirector so far
	}{
		{"a", false, false, 1}, {"a", false, false, 2}, {"a", true, false, 3}, {"a", true, false, 3}, {"a", true, true, 4}, {"a", true, false, 4},
		{"b", true, false, 5}, {"a", true, false, 6}, {"a", false, false, 6}, {"a", true, false, 7},
	} {
		expired.Store(step.stale)
		var e events
		op := storage.Op{Kind: storage.Read, Path: step.path, Size: 100, Ranges: parts, Keep: step.keep, Timeout: 20 * time.Second}
		_, err := c.Do(t.Context(), &op, &e)
		if asked := len(p.requests()); err != nil || e.moved != 30 || e.server != strings.TrimPrefix(data.url, "http://") || asked != step.asked {
			t.Errorf("read %d: moved %d from %q, the redirector was asked %d times instead of %d: %v", i, e.moved, e.server, asked, step.asked, err)
		}
	}
	for _, r := range data.requests() {
		if r.URL.RawQuery != "ticket=42" {
			t.Errorf("the data server saw %s", r.URL)
		}
	}
}

func TestErrorNamesTheDataServer(t *testing.T) {
	data := speak(t, "127.0.0.1", say("HTTP/1.1 503 Busy\r\nContent-Length: 0\r\n\r\n"))
	p := redirector(t, 302, data.url)
	c := clientAt(t, p.url, storage.Credentials{})
	_, err := c.Do(t.Context(), &storage.Op{Kind: storage.Read, Path: "x", Size: 5}, &events{})
	var e *storage.OpError
	if !errors.As(err, &e) || e.Server != strings.TrimPrefix(data.url, "http://") || !errors.Is(err, storage.ErrBusy) {
		t.Errorf("error %+v", err)
	}
}

// TestCredentialsStayHome checks that credentials are sent only to the scheme, host and port of the
// target, as in transfers (internal/tpc.TestCredentialsStayAtHome).
func TestCredentialsStayHome(t *testing.T) {
	for _, host := range []string{"127.0.0.1", "127.0.0.2"} {
		testCredentialsStayHome(t, host)
	}
	data := speak(t, "127.0.0.1", say("HTTP/1.1 401 Unauthorized\r\nContent-Length: 0\r\n\r\n"))
	c := clientAt(t, redirector(t, 307, data.url).url, storage.Credentials{Method: "token", Token: "abc"})
	_, err := c.Do(t.Context(), &storage.Op{Kind: storage.Stat, Path: "x", Timeout: 20 * time.Second}, &events{})
	if storage.Classify(err) != storage.Denied || !strings.Contains(err.Error(), "credentials for the target are not sent to another server") {
		t.Errorf("where another server asks for them: %v", err)
	}
}

func testCredentialsStayHome(t *testing.T, host string) {
	elsewhere := speak(t, host, say("HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n"))
	p := redirector(t, 307, elsewhere.url)
	for _, cred := range []storage.Credentials{
		{Method: "token", Token: "abc"}, {Method: "basic", User: "ada", Password: "pw"},
	} {
		c := clientAt(t, p.url, cred)
		if _, err := c.Do(t.Context(), &storage.Op{Kind: storage.Stat, Path: "x", Timeout: 20 * time.Second}, &events{}); err != nil {
			t.Fatal(err)
		}
	}
	for _, r := range p.requests() {
		if r.Header.Get("Authorization") == "" {
			t.Error("the target did not see the credentials")
		}
	}
	if len(elsewhere.requests()) != 2 {
		t.Errorf("%d requests arrived elsewhere", len(elsewhere.requests()))
	}
	for _, r := range elsewhere.requests() {
		if a := r.Header.Get("Authorization"); a != "" || r.URL.RawQuery != "ticket=42" {
			t.Errorf("another server saw %q, query %q", a, r.URL.RawQuery)
		}
	}
}

// swallow reads an upload's body, checks it, and sends 201.
func swallow(t testing.TB, seed uint64, size int64) func(*net.TCPConn, *http.Request, int) bool {
	return func(c *net.TCPConn, r *http.Request, _ int) bool {
		if strings.Contains(r.Header.Get("Expect"), "100") {
			_, _ = io.WriteString(c, "HTTP/1.1 100 Continue\r\n\r\n")
		}
		b, err := io.ReadAll(r.Body)
		if err != nil {
			return false
		}
		if int64(len(b)) != size || !content.Equal(b, seed, 0) {
			t.Errorf("%d bytes arrived, and not the right ones", len(b))
		}
		_, err = io.WriteString(c, "HTTP/1.1 201 Created\r\nContent-Length: 0\r\n\r\n")
		return err == nil
	}
}

func TestRedirectedWrite(t *testing.T) {
	const size, seed = 20 << 20, 9
	data := speak(t, "127.0.0.1", swallow(t, seed, size))
	p := redirector(t, 307, data.url)
	c := clientAt(t, p.url, storage.Credentials{})
	for i := range 3 {
		var e events
		_, err := c.Do(t.Context(), &storage.Op{Kind: storage.Write, Path: "x", Size: size, Seed: seed, Timeout: 20 * time.Second}, &e)
		require.NoError(t, err)
		if e.server == "" || !slices.Contains(e.phases, storage.Redirected) {
			t.Errorf("served by %q, phases %v", e.server, e.phases)
		}
		if e.moved != size {
			t.Errorf("write %d moved %d bytes, want %d: those that nobody kept do not count", i, e.moved, size)
		}
	}
	for i, r := range p.requests() {
		if asked := r.Header.Get("Expect") != ""; asked != (i > 0) {
			t.Errorf("write %d asked first: %v", i, asked)
		}
	}
}

// TestServersWithoutContinue runs a server that redirects the first upload, stores all others
// itself, and refuses Expect or never sends 100. This is remembered: one upload sends Expect.
func TestServersWithoutContinue(t *testing.T) {
	for name, refuses := range map[string]bool{"417": true, "silent": false} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if asked := uploadWithoutContinue(t, refuses, 1); asked != 1 {
				t.Errorf("%d uploads asked, want 1", asked)
			}
		})
	}
	t.Run("417, redirects", func(t *testing.T) {
		t.Parallel()
		if asked := uploadWithoutContinue(t, true, 4); asked != 1 {
			t.Errorf("%d uploads asked, want 1", asked)
		}
	})
}

// TestServerRedirectsAfterBody runs a server that redirects after the body: it is first taken for a
// server that is slow to redirect.
func TestServerRedirectsAfterBody(t *testing.T) {
	tier.Full(t, "two waits for 100 Continue, of 11 s")
	if asked := uploadWithoutContinue(t, false, 4); asked != 2 {
		t.Errorf("%d uploads asked, want 2", asked)
	}
}

// uploadWithoutContinue uploads four files to a server that redirects the given number of them, and
// that never sends 100, or refuses Expect. It returns the number of uploads with Expect.
func uploadWithoutContinue(t *testing.T, refuses bool, redirected int64) int64 {
	t.Helper()
	const size, seed = 100_000, 9
	data := speak(t, "127.0.0.1", swallow(t, seed, size))
	kept := swallow(t, seed, size)
	var asked, bodies atomic.Int64
	p := speak(t, "127.0.0.1", func(c *net.TCPConn, r *http.Request, nth int) bool {
		if r.Header.Get("Expect") != "" {
			asked.Add(1)
			if refuses {
				_, err := io.WriteString(c, "HTTP/1.1 417 Expectation Failed\r\nConnection: close\r\nContent-Length: 0\r\n\r\n")
				return err != nil
			}
			r.Header.Del("Expect") // kept sends 100 otherwise
		}
		if bodies.Add(1) > redirected {
			return kept(c, r, nth)
		}
		if _, err := io.Copy(io.Discard, r.Body); err != nil {
			return false
		}
		_, err := fmt.Fprintf(c, "HTTP/1.1 307 Go There\r\nLocation: %s/x\r\nContent-Length: 0\r\n\r\n", data.url)
		return err == nil
	})
	c := clientAt(t, p.url, storage.Credentials{})
	for i := range 4 {
		var e events
		op := storage.Op{Kind: storage.Write, Path: "x", Size: size, Seed: seed, Timeout: 20 * time.Second}
		if _, err := c.Do(t.Context(), &op, &e); err != nil || e.moved != size {
			t.Errorf("write %d: %d bytes, %v", i, e.moved, err)
		}
	}
	return asked.Load()
}

// TestRedirectedMove checks that the Destination of a redirected move names the new server.
func TestRedirectedMove(t *testing.T) {
	data := speak(t, "127.0.0.1", say("HTTP/1.1 201 Created\r\nContent-Length: 0\r\n\r\n"))
	p := redirector(t, 307, data.url)
	c := clientAt(t, p.url+"/d ir", storage.Credentials{})
	if _, err := c.Do(t.Context(), &storage.Op{Kind: storage.Move, Source: "a b", Path: "c?d", Timeout: 20 * time.Second},
		&events{}); err != nil {
		t.Fatal(err)
	}
	for at, r := range map[*peer]*http.Request{p: p.requests()[0], data: data.requests()[0]} {
		if got, want := r.Header.Get("Destination"), at.url+"/d%20ir/c%3Fd"; r.Method != "MOVE" || r.URL.Path != "/d ir/a b" || got != want ||
			r.Header.Get("Overwrite") != "F" {
			t.Errorf("%s %s to %s (overwrite %s), want to %s", r.Method, r.URL, got, r.Header.Get("Overwrite"), want)
		}
	}
}

// TestRefusedMove checks the errors of refused moves, which all drivers share.
func TestRefusedMove(t *testing.T) {
	for answer, want := range map[string]error{
		"412 Precondition Failed": fs.ErrExist, "409 Conflict": fs.ErrNotExist, "404 Not Found": fs.ErrNotExist,
		"403 Forbidden": fs.ErrPermission,
	} {
		p := speak(t, "127.0.0.1", say("HTTP/1.1 "+answer+"\r\nContent-Length: 0\r\n\r\n"))
		c := clientAt(t, p.url, storage.Credentials{})
		if _, err := c.Do(t.Context(), &storage.Op{Kind: storage.Move, Source: "a", Path: "b", Timeout: 20 * time.Second},
			&events{}); !errors.Is(err, want) {
			t.Errorf("%s: %v, want %v", answer, err, want)
		}
	}
	p := speak(t, "127.0.0.1", say("HTTP/1.1 400 Bad Request\r\nContent-Length: 0\r\n\r\n"))
	c := clientAt(t, p.url, storage.Credentials{})
	for _, op := range []storage.Op{{Source: "a", Path: "b"}, {Source: "", Path: "b"}, {Source: "a", Path: ""}, {Source: "../a", Path: "b"},
		{Source: "a", Path: "b/../../c"}} {
		op.Kind, op.Timeout = storage.Move, 20*time.Second
		if _, err := c.Do(t.Context(), &op, &events{}); err == nil {
			t.Errorf("%q is moved to %q", op.Source, op.Path)
		}
	}
	if n := len(p.requests()); n != 2 {
		t.Errorf("%d requests, want 2: of the only possible move, as a file and as a folder", n)
	}
}

func TestRefusedWrite(t *testing.T) {
	no := "HTTP/1.1 507 Full\r\nContent-Length: 0\r\n\r\n"
	hold := make(chan struct{})
	tests := map[string]func(*net.TCPConn, *http.Request, int) bool{
		"and reads on": func(c *net.TCPConn, r *http.Request, _ int) bool {
			_, _ = io.WriteString(c, no)
			_, err := io.Copy(io.Discard, r.Body)
			return err == nil
		},
		"and hangs up": sayAndClose(no),
		"and waits": func(c *net.TCPConn, _ *http.Request, _ int) bool {
			_, _ = io.WriteString(c, no)
			<-hold // never reads
			return false
		},
		"after 100": func(c *net.TCPConn, _ *http.Request, _ int) bool {
			_, _ = io.WriteString(c, "HTTP/1.1 100 Continue\r\n\r\n"+no)
			return false
		},
	}
	for name, answer := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := speak(t, "127.0.0.1", answer)
			if name == "and waits" {
				t.Cleanup(func() { close(hold) })
			}
			c := clientAt(t, p.url, storage.Credentials{})
			for range 2 {
				_, err := c.Do(t.Context(), &storage.Op{Kind: storage.Write, Path: "x", Size: 1 << 30, Timeout: 20 * time.Second}, &events{})
				if class := storage.Classify(err); err == nil || class != storage.ServerFailed && class != storage.Reset {
					t.Errorf("class %q, error %v", class, err)
				}
				if name == "and waits" && !strings.Contains(err.Error(), "507") {
					t.Errorf("error %v, want the answer that was there", err)
				}
			}
		})
	}
}

func TestUnaskedContinue(t *testing.T) {
	const size = 20 << 20
	p := speak(t, "127.0.0.1", func(c *net.TCPConn, r *http.Request, nth int) bool {
		_, _ = io.WriteString(c, "HTTP/1.1 100 Continue\r\n\r\n")
		return swallow(t, 1, size)(c, r, nth)
	})
	c := clientAt(t, p.url, storage.Credentials{})
	var e events
	if _, err := c.Do(t.Context(), &storage.Op{Kind: storage.Write, Path: "x", Size: size, Seed: 1, Timeout: 20 * time.Second},
		&e); err != nil || e.moved != size {
		t.Errorf("moved %d, error %v", e.moved, err)
	}
}

func TestCancelWhileWaiting(t *testing.T) {
	arrived := make(chan struct{}, 1)
	p := speak(t, "127.0.0.1", func(c *net.TCPConn, r *http.Request, _ int) bool {
		if strings.HasSuffix(r.URL.Path, "slow") {
			_, _ = io.WriteString(c, "HTTP/1.1 200 OK\r\nContent-Length: 10000000\r\n\r\nhello")
		}
		arrived <- struct{}{}
		return true
	})
	c := clientAt(t, p.url, storage.Credentials{})
	for _, path := range []string{"silent", "slow"} {
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan error, 1)
		go func() {
			_, err := c.Do(ctx, &storage.Op{Kind: storage.Read, Path: path, Size: -1}, &events{})
			done <- err
		}()
		<-arrived
		cancel()
		select {
		case err := <-done:
			if storage.Classify(err) != storage.Canceled {
				t.Errorf("error %v, want context.Canceled", err)
			}
		case <-time.After(20 * time.Second):
			t.Fatal("a canceled read hangs")
		}
	}
}

func TestDeadlineOfContext(t *testing.T) {
	p := speak(t, "127.0.0.1", say(""))
	c := clientAt(t, p.url, storage.Credentials{})
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	_, err := c.Do(ctx, &storage.Op{Kind: storage.Read, Path: "x", Size: -1}, &events{})
	if storage.Classify(err) != storage.Timeout {
		t.Errorf("error %v, want a timeout", err)
	}
}

// TestTrickle sends a body in pieces that are smaller than the amount of data that the kernel
// gathers: each piece must be reported soon, not at the end.
func TestTrickle(t *testing.T) {
	t.Parallel()
	const piece, pieces = 200 << 10, 5
	heard := make(chan int64, 1000)
	p := speak(t, "127.0.0.1", func(c *net.TCPConn, _ *http.Request, _ int) bool {
		_, _ = fmt.Fprintf(c, "HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n", piece*pieces)
		sum := int64(0)
		for i := range int64(pieces) {
			if _, err := c.Write(make([]byte, piece)); err != nil {
				return false
			}
			for sum < (i+1)*piece { // the next piece only after this piece was reported
				select {
				case n := <-heard:
					sum += n
				case <-time.After(10 * time.Second):
					t.Errorf("only %d of %d bytes were told", sum, (i+1)*piece)
					return false
				}
			}
		}
		return true
	})
	c := clientAt(t, p.url, storage.Credentials{})
	res, err := c.Do(t.Context(), &storage.Op{Kind: storage.Read, Path: "x", Size: piece * pieces}, hearing(heard))
	if err != nil || res.Discarded < piece {
		t.Errorf("result %+v, error %v", res, err)
	}
}

type hearing chan int64

func (h hearing) Reached(storage.Phase) {}
func (h hearing) Moved(n int)           { h <- int64(n) }
func (h hearing) ServedBy(string)       {}

// TestUploadsBehindRealRedirectors runs real redirectors, which take two seconds here to find a
// place for a new file: each reported byte must be a byte that a data server has stored.
func TestUploadsBehindRealRedirectors(t *testing.T) {
	for _, version := range labtest.XRootDs() {
		t.Run("version "+version, func(t *testing.T) {
			t.Parallel()
			xr := labtest.Start(t, lab.XRootDConfig{Version: version, Servers: 2, Lookup: 2})
			c := clientAt(t, xr.URLs["http"], storage.Credentials{})
			for i := range 3 {
				var e events
				op := storage.Op{Kind: storage.Write, Path: fmt.Sprint("f", i), Size: 300_000, Timeout: 30 * time.Second}
				if _, err := c.Do(t.Context(), &op, &e); err != nil || e.moved != op.Size || e.server == "" {
					t.Errorf("upload %d: %d bytes of %d, at %q: %v", i, e.moved, op.Size, e.server, err)
				}
			}
		})
	}
}
