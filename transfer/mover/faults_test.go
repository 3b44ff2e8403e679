package mover

import (
	"bufio"
	"bytes"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"weir/internal/adler"
	"weir/internal/content"
	"weir/internal/require"
	"weir/internal/tier"
	"weir/serve"
	"weir/transfer"
)

// bytesOf returns synthetic content and its checksum.
func bytesOf(seed uint64, size int) ([]byte, string) {
	p := make([]byte, size)
	content.Fill(p, seed, 0)
	return p, adler.Text(adler.Update(1, p))
}

// source starts an HTTP server.
func source(t testing.TB, h http.HandlerFunc) string {
	t.Helper()
	s := httptest.NewServer(h)
	t.Cleanup(s.Close)
	return s.URL
}

// raw starts a server that handles each connection with the given function.
func raw(t testing.TB, each func(c net.Conn, request string)) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	var all sync.WaitGroup
	ctx, stop := context.WithCancel(context.Background())
	t.Cleanup(func() {
		_ = l.Close()
		stop()
		all.Wait()
	})
	all.Go(func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			all.Go(func() {
				defer c.Close()
				defer context.AfterFunc(ctx, func() { c.Close() })()
				in := bufio.NewReader(c)
				for {
					r, err := http.ReadRequest(in)
					if err != nil {
						return
					}
					each(c, r.Method+" "+r.Header.Get("Range"))
				}
			})
		}
	})
	return "http://" + l.Addr().String()
}

// answers writes a head and a body.
func answers(c net.Conn, head string, body []byte) {
	_, _ = io.WriteString(c, "HTTP/1.1 "+head+"\r\n\r\n")
	_, _ = c.Write(body)
}

// impatient returns a Mover whose stall time is a quarter of a second.
func impatient(t testing.TB) *Mover { return newMover(t, Options{Stall: 250 * time.Millisecond}) }

func TestSourcesThatAreNotAsTheyShouldBe(t *testing.T) {
	const size = 300_000
	data, sum := bytesOf(1, size)
	n := strconv.Itoa
	for what, c := range map[string]struct {
		each  func(c net.Conn, request string)
		fault transfer.ErrorClass
		says  string
	}{
		"is shorter": {func(c net.Conn, _ string) { answers(c, "200 OK\r\nContent-Length: 5", data[:5]) }, transfer.SourceBad,
			"has 5 bytes, not the 300000"},
		"is longer": {func(c net.Conn, _ string) { answers(c, "200 OK\r\nContent-Length: "+n(size+1), data) }, transfer.SourceBad,
			"300001 bytes"},
		"is endless": {endless(data), transfer.SourceBad, "more than the 300000"},
		"ends early": {func(c net.Conn, _ string) { answers(c, "200 OK\r\nContent-Length: "+n(size), data[:1000]); c.Close() },
			transfer.Transient, ""},
		"says nothing": {func(net.Conn, string) {}, transfer.Transient, "did not answer within"},
		"stops in the middle": {func(c net.Conn, _ string) { answers(c, "200 OK\r\nContent-Length: "+n(size), data[:200_000]) },
			transfer.Transient, "nothing came"},
		"hangs up": {func(c net.Conn, _ string) { c.Close() }, transfer.Transient, ""},
		"speaks no HTTP": {func(c net.Conn, _ string) { _, _ = c.Write([]byte("220 ftp.example.org ready\r\n")) },
			transfer.Transient, "malformed"},
		"has an endless head": {func(c net.Conn, _ string) { answers(c, "200 OK\r\nX: "+strings.Repeat("x", 2*headMax), nil) },
			transfer.Permanent, "head of the answer"},
		"only says wait": {func(c net.Conn, _ string) { _, _ = c.Write(bytes.Repeat([]byte("HTTP/1.1 102 Processing\r\n\r\n"), 9)) },
			transfer.Transient, "interim"},
		"has lost it":          {status("404 Not Found"), transfer.SourceBad, "404 Not Found"},
		"has given it up":      {status("410 Gone"), transfer.SourceBad, "410"},
		"wants credentials":    {status("401 Unauthorized"), transfer.Denied, "401"},
		"refuses":              {status("403 Forbidden"), transfer.Denied, "403"},
		"is too busy":          {status("429 Too Many Requests\r\nRetry-After: 7"), transfer.Throttled, "429"},
		"is too busy, too":     {status("503 Busy\r\nRetry-After: 7"), transfer.Throttled, "503"},
		"is down":              {status("503 Down"), transfer.Transient, "503"},
		"is broken":            {status("500 Broken"), transfer.Transient, "500"},
		"knows no GET":         {status("405 Method Not Allowed"), transfer.ModeUnsupported, "405"},
		"redirects for ever":   {status("302 Found\r\nLocation: /f"), transfer.Permanent, "redirected more than"},
		"redirects to nowhere": {status("302 Found\r\nLocation: ftp://x/f"), transfer.Transient, "no URL"},
		"sends other bytes": {func(c net.Conn, _ string) {
			answers(c, "206 Part\r\nContent-Range: bytes 5-9/300000\r\nContent-Length: 5", data[:5])
		}, transfer.Permanent, "other bytes"},
		"packs it": {func(c net.Conn, _ string) {
			answers(c, "200 OK\r\nContent-Encoding: gzip\r\nContent-Length: "+n(size), data)
		}, transfer.Permanent, "packed"},
		"lies of its range": {func(c net.Conn, _ string) {
			answers(c, "206 Part\r\nContent-Range: bytes 9-5/x\r\nContent-Length: 5", data[:5])
		}, transfer.Permanent, "no Content-Range"},
		"is of another length": {func(c net.Conn, _ string) {
			answers(c, "206 Part\r\nContent-Range: bytes 0-9/11\r\nContent-Length: 10", data[:10])
		}, transfer.SourceBad, "11 bytes"},
	} {
		t.Run(what, func(t *testing.T) {
			t.Parallel()
			m := impatient(t)
			out := do(t, m, pullLease(raw(t, c.each), "f", sum, size))
			failed(t, out, c.fault)
			if !strings.Contains(out.Reason, c.says) {
				t.Errorf("%q does not say %q", out.Reason, c.says)
			}
			if c.fault == transfer.Throttled && out.After != 7*time.Second {
				t.Errorf("again after %v", out.After)
			}
			if _, err := os.Lstat(filepath.Join(m.opt.Root, "f")); err == nil {
				t.Error("the file has its name")
			}
		})
	}
}

func status(line string) func(net.Conn, string) {
	return func(c net.Conn, _ string) { answers(c, line+"\r\nContent-Length: 0", nil) }
}

func endless(data []byte) func(net.Conn, string) {
	return func(c net.Conn, _ string) {
		answers(c, "200 OK\r\nTransfer-Encoding: chunked", nil)
		for range 100 {
			if _, err := fmt.Fprintf(c, "%x\r\n%s\r\n", len(data), data); err != nil {
				return
			}
		}
	}
}

// TestAConnectionThatBreaksAgainAndAgain: as long as bytes arrive, the attempt continues.
func TestAConnectionThatBreaksAgainAndAgain(t *testing.T) {
	tier.Slow(t, "waits for broken connections")
	const size = 1 << 20
	data, sum := bytesOf(1, size)
	var asked atomic.Int64
	url := raw(t, func(c net.Conn, request string) {
		asked.Add(1)
		from := 0
		head := "200 OK\r\nContent-Length: " + strconv.Itoa(size)
		if _, r, ok := strings.Cut(request, "bytes="); ok {
			first, _, _ := strings.Cut(r, "-")
			from, _ = strconv.Atoi(first)
			head = fmt.Sprintf("206 Part\r\nContent-Length: %d\r\nContent-Range: bytes %d-%d/%d", size-from, from, size-1, size)
		}
		answers(c, head, data[from:min(from+100_000, size)])
		if from+100_000 < size {
			c.Close()
		}
	})
	m := newMover(t, Options{})
	out := do(t, m, pullLease(url, "f", sum, size))
	if out.Fault != "" || !out.Verified || out.Moved != size {
		t.Fatalf("%+v", out)
	}
	if asked.Load() < 10 {
		t.Errorf("%d requests", asked.Load())
	}
}

// flipping is a ResponseWriter that changes a byte on the way, a limited number of times.
type flipping struct {
	http.ResponseWriter
	at, off int64
	left    *atomic.Int64
}

func (f *flipping) Write(p []byte) (int, error) {
	q := append([]byte(nil), p...)
	if i := f.at - f.off; i >= 0 && i < int64(len(q)) && f.left.Add(-1) >= 0 {
		q[i] ^= 4
	}
	n, err := f.ResponseWriter.Write(q)
	f.off += int64(n)
	return n, err
}

// spoiling starts an endpoint behind a proxy that changes the byte at an offset a number of times.
func spoiling(t testing.TB, dir string, at, times int64, chunks bool) (url string, asked *atomic.Int64) {
	t.Helper()
	s, err := serve.New(serve.Config{Dir: dir})
	require.NoError(t, err)
	t.Cleanup(func() { _ = s.Close() })
	left := new(atomic.Int64)
	left.Store(times)
	asked = new(atomic.Int64)
	return source(t, func(w http.ResponseWriter, r *http.Request) {
		if strings.HasPrefix(r.URL.Path, "/.weir/") {
			if asked.Add(1); !chunks {
				http.NotFound(w, r)
				return
			}
		}
		var off int64
		if _, text, ok := strings.Cut(r.Header.Get("Range"), "bytes="); ok {
			first, _, _ := strings.Cut(text, "-")
			off, _ = strconv.ParseInt(first, 10, 64)
		}
		if r.Method == http.MethodGet && !strings.HasPrefix(r.URL.Path, "/.weir/") {
			w = &flipping{ResponseWriter: w, at: at, off: off, left: left}
		}
		s.ServeHTTP(w, r)
	}), asked
}

// TestASpoiledByteOnTheWay costs one chunk more, with any number of streams.
func TestASpoiledByteOnTheWay(t *testing.T) {
	const size, step = 5<<20 + 9, 1 << 20
	dir := t.TempDir()
	sum := file(t, dir, "f", 1, size)
	for _, streams := range []int{1, 3} {
		for _, known := range []string{sum, ""} {
			m := newMover(t, Options{})
			url, _ := spoiling(t, dir, 2<<20+5, 2, true)
			l := pullLease(url, "f", known, size)
			l.Chunk, l.Streams = step, streams
			out := do(t, m, l)
			arrived(t, m, filepath.Join(dir, "f"), l, out)
			if out.Moved != size+2*step {
				t.Errorf("%d bytes moved, the file has %d", out.Moved, size)
			}
		}
	}
	m := newMover(t, Options{})
	url, _ := spoiling(t, dir, 2<<20+5, 1000, true)
	l := pullLease(url, "f", sum, size)
	l.Chunk = step
	failed(t, do(t, m, l), transfer.Checksum)
	noParts(t, m)
}

// TestASpoiledByteFromASourceWithoutChunks costs one more download of the file.
func TestASpoiledByteFromASourceWithoutChunks(t *testing.T) {
	const size = 3 << 20
	dir := t.TempDir()
	sum := file(t, dir, "f", 1, size)
	m := newMover(t, Options{})
	url, asked := spoiling(t, dir, 2<<20+5, 1, false)
	l := pullLease(url, "f", sum, size)
	out := do(t, m, l)
	arrived(t, m, filepath.Join(dir, "f"), l, out)
	if out.Moved != 2*size || asked.Load() == 0 {
		t.Errorf("%d bytes moved, %d questions", out.Moved, asked.Load())
	}
}

// TestASourceThatIsSpoiledItself is distinguished from a network that damages data.
func TestASourceThatIsSpoiledItself(t *testing.T) {
	const size = 3 << 20
	dir := t.TempDir()
	sum := file(t, dir, "f", 1, size)
	require.NoError(t, flip(filepath.Join(dir, "f"), 1<<20))
	door := newSite(t, func(c *serve.Config) { c.Dir = dir })
	without, _ := spoiling(t, dir, -1, 0, false)
	plain := source(t, func(w http.ResponseWriter, r *http.Request) { // sends no checksum of any kind
		if strings.HasPrefix(r.URL.Path, "/.weir/") {
			http.NotFound(w, r)
			return
		}
		http.ServeFile(w, r, filepath.Join(dir, "f"))
	})
	for what, url := range map[string]string{"door": door.url, "digest": without, "nothing": plain} {
		m := newMover(t, Options{})
		out := do(t, m, pullLease(url, "f", sum, size))
		failed(t, out, transfer.SourceBad)
		if want := map[string]int64{"door": size, "digest": size, "nothing": 2 * size}[what]; out.Moved != want {
			t.Errorf("%s: %d bytes moved, want %d", what, out.Moved, want)
		}
		noParts := parts(t, m)
		t.Logf("%s: %q", what, noParts)
	}
}

// TestNoChecksum: neither the catalog nor the source has a checksum.
func TestNoChecksum(t *testing.T) {
	data, sum := bytesOf(1, 100_000)
	url := source(t, func(w http.ResponseWriter, r *http.Request) {
		http.ServeContent(w, r, "", time.Time{}, bytes.NewReader(data))
	})
	m := newMover(t, Options{})
	l := pullLease(url, "f", "", 100_000)
	failed(t, do(t, m, l), transfer.Unverified)
	noParts(t, m)
	l.Unchecked = true
	if out := do(t, m, l); out.Fault != "" || out.Verified || out.Adler != sum {
		t.Errorf("%+v", out)
	}
}

// TestASourceThatChanges: a source changes while it is read, in the middle.
func TestASourceThatChanges(t *testing.T) {
	const size = 4 << 20
	one, _ := bytesOf(1, size)
	two, sum := bytesOf(2, size)
	var asked atomic.Int64
	url := source(t, func(w http.ResponseWriter, r *http.Request) {
		now, tag := two, `"two"`
		if asked.Add(1) < 3 {
			now, tag = one, `"one"`
		}
		w.Header().Set("Etag", tag)
		http.ServeContent(w, r, "", time.Time{}, bytes.NewReader(now))
	})
	m := newMover(t, Options{})
	l := pullLease(url, "f", sum, size)
	l.Chunk, l.Streams = 1<<20, 2
	out := do(t, m, l)
	if out.Fault != "" || out.Adler != sum {
		t.Fatalf("%+v", out)
	}
	asked.Store(0)
	always := source(t, func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Etag", fmt.Sprintf(`"%d"`, asked.Add(1)))
		http.ServeContent(w, r, "", time.Time{}, bytes.NewReader(two))
	})
	l = pullLease(always, "g", sum, size)
	l.Chunk, l.Streams = 1<<20, 2
	failed(t, do(t, m, l), transfer.SourceBad)
}

// TestASourceWithoutRanges: the file is read in one request, from the start.
func TestASourceWithoutRanges(t *testing.T) {
	const size = 4 << 20
	data, sum := bytesOf(1, size)
	url := source(t, func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Length", strconv.Itoa(size))
		_, _ = w.Write(data)
	})
	m := newMover(t, Options{})
	l := pullLease(url, "f", sum, size)
	l.Chunk, l.Streams = 1<<20, 4
	if out := do(t, m, l); out.Fault != "" || !out.Verified {
		t.Errorf("%+v", out)
	}
}

// TestNobodyThere: a port without a listener, and a name that does not exist.
func TestNobodyThere(t *testing.T) {
	t.Parallel()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	addr := l.Addr().String()
	l.Close()
	m := impatient(t)
	failed(t, do(t, m, pullLease("http://"+addr, "f", "", 5)), transfer.Unreachable)
	failed(t, do(t, m, pullLease("http://nobody.invalid", "f", "", 5)), transfer.Transient)
}

// TestSlowButMoving: the stall time limits silence, not slowness.
func TestSlowButMoving(t *testing.T) {
	t.Parallel()
	const size = 400_000
	data, sum := bytesOf(1, size)
	url := raw(t, func(c net.Conn, _ string) {
		answers(c, "200 OK\r\nContent-Length: "+strconv.Itoa(size), nil)
		tick := time.NewTicker(20 * time.Millisecond)
		defer tick.Stop()
		for rest := data; len(rest) > 0; <-tick.C {
			n := min(len(rest), 10_000)
			if _, err := c.Write(rest[:n]); err != nil {
				return
			}
			rest = rest[n:]
		}
	})
	m := impatient(t)
	if out := do(t, m, pullLease(url, "f", sum, size)); out.Fault != "" {
		t.Errorf("%+v", out)
	}
}

// TestProgress is reported, grows, and ends with the attempt.
func TestProgress(t *testing.T) {
	t.Parallel()
	const size = 40 << 20
	from := newSite(t, slow)
	sum := file(t, from.dir, "f", 1, size)
	m := newMover(t, Options{})
	var last transfer.Progress
	times := 0
	out := m.Do(context.Background(), pullLease(from.url, "f", sum, size), func(p transfer.Progress) {
		if p.Item != 7 || p.Epoch != 1 || p.Moved < last.Moved {
			t.Errorf("%+v after %+v", p, last)
		}
		last = p
		times++
	})
	if out.Fault != "" || times == 0 || out.CPU <= 0 {
		t.Errorf("told %d times; %+v", times, out)
	}
}
