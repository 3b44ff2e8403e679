package webdav

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net"
	"net/http"
	"os"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"weir/internal/require"
	"weir/storage"
)

// A peer is a server for one test. It parses requests correctly; its responses are up to the test.
type peer struct {
	url  string
	mu   sync.Mutex
	seen []*http.Request // without bodies
}

// speak starts a peer on host; answer is called for each request of each connection and returns
// false to end the connection.
func speak(t testing.TB, host string, answer func(c *net.TCPConn, r *http.Request, nth int) bool) *peer {
	t.Helper()
	var conf net.ListenConfig
	l, err := conf.Listen(t.Context(), "tcp", net.JoinHostPort(host, "0"))
	require.NoError(t, err)
	p := &peer{url: "http://" + l.Addr().String()}
	end := make(chan struct{})
	var all sync.WaitGroup
	all.Go(func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			all.Go(func() { <-end; _ = c.Close() })
			all.Go(func() { p.serve(c.(*net.TCPConn), answer) })
		}
	})
	t.Cleanup(func() {
		close(end)
		if err := l.Close(); err != nil {
			t.Error(err)
		}
		all.Wait()
	})
	return p
}

func (p *peer) serve(c *net.TCPConn, answer func(*net.TCPConn, *http.Request, int) bool) {
	defer c.Close()
	in := bufio.NewReader(c)
	for nth := 0; ; nth++ {
		r, err := http.ReadRequest(in)
		if err != nil {
			return
		}
		p.mu.Lock()
		p.seen = append(p.seen, r)
		p.mu.Unlock()
		if !answer(c, r, nth) {
			return
		}
		if _, err := io.Copy(io.Discard, r.Body); err != nil {
			return
		}
	}
}

func (p *peer) requests() []*http.Request {
	p.mu.Lock()
	defer p.mu.Unlock()
	return slices.Clone(p.seen)
}

// say returns a function that sends the same response to each request.
func say(text string) func(*net.TCPConn, *http.Request, int) bool {
	return func(c *net.TCPConn, _ *http.Request, _ int) bool {
		_, err := io.WriteString(c, text)
		return err == nil
	}
}

// sayAndClose sends the text and closes the connection.
func sayAndClose(text string) func(*net.TCPConn, *http.Request, int) bool {
	return func(c *net.TCPConn, _ *http.Request, _ int) bool {
		_, _ = io.WriteString(c, text) // a write error of a connection that the client has closed is expected
		return false
	}
}

func reset(c *net.TCPConn, _ *http.Request, _ int) bool {
	_ = c.SetLinger(0) // the close becomes a reset
	return false
}

func TestFaultyAnswers(t *testing.T) {
	const ok = "HTTP/1.1 200 OK\r\n"
	tests := map[string]struct {
		answer func(*net.TCPConn, *http.Request, int) bool
		size   int64
		class  storage.Class
		err    error  // or nil
		words  string // in the error's text
	}{
		"reset":          {answer: reset, class: storage.Reset},
		"closed at once": {answer: sayAndClose(""), class: storage.Reset},
		"closed in head": {answer: sayAndClose(ok + "Content-Le"), class: storage.Reset},
		"silent":         {answer: say(""), class: storage.Timeout},
		"stops in head":  {answer: say(ok + "Content-Le"), class: storage.Timeout},
		"stops in body":  {answer: say(ok + "Content-Length: 1000000\r\n\r\nabc"), class: storage.Timeout},
		"stops in chunk": {answer: say(ok + "Transfer-Encoding: chunked\r\n\r\n10\r\nabc"), class: storage.Timeout},
		"short":          {answer: sayAndClose(ok + "Content-Length: 1000000\r\n\r\nabc"), class: storage.Short, err: storage.ErrShort},
		"short chunk": {answer: sayAndClose(ok + "Transfer-Encoding: chunked\r\n\r\n10\r\nabc"), class: storage.Short,
			err: storage.ErrShort},
		"no last chunk": {answer: sayAndClose(ok + "Transfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n"), class: storage.Short,
			err: storage.ErrShort},
		"smaller file": {answer: say(ok + "Content-Length: 3\r\n\r\nabc"), size: 4, class: storage.Sized, err: storage.ErrShort},
		"larger file": {answer: say(ok + "Content-Length: 5\r\n\r\nabcde"), size: 4, class: storage.Sized, err: storage.ErrSize,
			words: "5 bytes, not the 4"},
		"compressed": {answer: say(ok + "Content-Encoding: gzip\r\nContent-Length: 3\r\n\r\nabc"), size: 4, class: storage.Sized,
			err: storage.ErrShort, words: `Content-Encoding "gzip"`},
		"transformed": {answer: say("HTTP/1.1 203 Changed\r\nContent-Length: 5\r\n\r\nabcde"), size: 4, class: storage.Sized,
			err: storage.ErrSize, words: "5 bytes, not the 4"}, // read as an answer with 200
		"larger chunked": {answer: say(ok + "Transfer-Encoding: chunked\r\n\r\n5\r\nabcde\r\n0\r\n\r\n"), size: 4, class: storage.Sized,
			err: storage.ErrSize},
		"larger closed":   {answer: sayAndClose(ok + "\r\nabcde"), size: 4, class: storage.Sized, err: storage.ErrSize},
		"smaller closed":  {answer: sayAndClose(ok + "\r\nabc"), size: 4, class: storage.Short, err: storage.ErrShort},
		"negative length": {answer: say(ok + "Content-Length: -3\r\n\r\n"), err: storage.ErrProtocol},
		"huge length":     {answer: say(ok + "Content-Length: 99999999999999999999\r\n\r\n"), err: storage.ErrProtocol},
		"length of words": {answer: say(ok + "Content-Length: many\r\n\r\n"), err: storage.ErrProtocol},
		"two lengths": {answer: say(ok + "Content-Length: 3\r\nContent-Length: 4\r\n\r\nabcd"), err: storage.ErrProtocol,
			words: "two lengths"},
		"odd encoding": {answer: say(ok + "Transfer-Encoding: gzip\r\n\r\nabcd"), err: storage.ErrProtocol},
		"endless line": {answer: say(ok + "X: " + strings.Repeat("x", 100_000)), err: storage.ErrProtocol},
		"long line": {answer: say(ok + "X: " + strings.Repeat("x", 9_000) + "\r\n\r\n"), err: storage.ErrProtocol,
			words: "header line of"},
		"endless lines":      {answer: say(ok + strings.Repeat("X: y\r\n", 30_000)), err: storage.ErrProtocol},
		"many lines":         {answer: say(ok + strings.Repeat("X: y\r\n", 300) + "\r\n"), err: storage.ErrProtocol, words: "more than 200"},
		"folded line":        {answer: say(ok + "X: y\r\n z\r\n\r\n"), err: storage.ErrProtocol},
		"space before colon": {answer: say(ok + "Content-Length : 3\r\n\r\nabc"), err: storage.ErrProtocol},
		"no colon":           {answer: say(ok + "Content-Length\r\n\r\nabc"), err: storage.ErrProtocol},
		"flood of 1xx":       {answer: say(strings.Repeat("HTTP/1.1 102 Processing\r\n\r\n", 1000)), err: storage.ErrProtocol, words: "interim"},
		"101":                {answer: say("HTTP/1.1 101 Switching Protocols\r\n\r\n"), err: storage.ErrProtocol},
		"not HTTP":           {answer: say("SSH-2.0-OpenSSH_9.2\r\n\r\n"), err: storage.ErrProtocol, words: "SSH-2.0"},
		"HTTP/2":             {answer: say("HTTP/2 200\r\n\r\n"), err: storage.ErrProtocol},
		"odd status":         {answer: say("HTTP/1.1 2x0 OK\r\n\r\n"), err: storage.ErrProtocol},
		"status 099":         {answer: say("HTTP/1.1 099 No\r\n\r\n"), err: storage.ErrProtocol},
		"chunk of words":     {answer: say(ok + "Transfer-Encoding: chunked\r\n\r\nxyz\r\n"), err: storage.ErrProtocol, words: "chunk size"},
		"negative chunk":     {answer: say(ok + "Transfer-Encoding: chunked\r\n\r\n-1\r\nabc"), err: storage.ErrProtocol},
		"huge chunk":         {answer: say(ok + "Transfer-Encoding: chunked\r\n\r\nffffffffffffffff\r\nabc"), err: storage.ErrProtocol},
		"chunk too long":     {answer: say(ok + "Transfer-Encoding: chunked\r\n\r\n3\r\nabcd\r\n0\r\n\r\n"), err: storage.ErrProtocol},
		"endless extension":  {answer: say(ok + "Transfer-Encoding: chunked\r\n\r\n3;" + strings.Repeat("x", 10_000)), err: storage.ErrProtocol},
		"endless trailer": {answer: say(ok + "Transfer-Encoding: chunked\r\n\r\n0\r\n" + strings.Repeat("X: y\r\n", 10_000)),
			err: storage.ErrProtocol, words: "trailer"},
		"redirect nowhere": {answer: say("HTTP/1.1 302 Found\r\nContent-Length: 0\r\n\r\n"), err: storage.ErrProtocol,
			words: "without a Location"},
		"redirect to ftp": {answer: say("HTTP/1.1 302 Found\r\nLocation: ftp://x/y\r\nContent-Length: 0\r\n\r\n"), err: storage.ErrProtocol,
			words: "ftp"},
		"redirect to dirt": {answer: say("HTTP/1.1 302 Found\r\nLocation: http://a b/%zz\r\nContent-Length: 0\r\n\r\n"),
			err: storage.ErrProtocol},
		"redirect in rings": {answer: say("HTTP/1.1 302 Found\r\nLocation: /data/x\r\nContent-Length: 0\r\n\r\n"), err: storage.ErrProtocol,
			words: "more than 10 redirects"},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := speak(t, "127.0.0.1", tt.answer)
			c := clientAt(t, p.url+"/data", storage.Credentials{})
			op := storage.Op{Kind: storage.Read, Path: "x", Size: -1, Timeout: 300 * time.Millisecond}
			if tt.size > 0 {
				op.Size = tt.size
			}
			class := tt.class
			if class == storage.None {
				class = storage.Other
			}
			if class != storage.Timeout {
				op.Timeout = 20 * time.Second
			}
			for range 2 { // the second time from the state after the first
				res, err := c.Do(t.Context(), &op, &events{})
				if got := storage.Classify(err); got != class || tt.err != nil && !errors.Is(err, tt.err) {
					t.Errorf("class %q, want %q; error %v, want %v", got, class, err, tt.err)
				}
				if err != nil && !strings.Contains(err.Error(), tt.words) {
					t.Errorf("error %q does not say %q", err, tt.words)
				}
				if res.Wire <= 0 {
					t.Errorf("%d bytes on the wire", res.Wire)
				}
			}
		})
	}
}

func TestGoodAnswers(t *testing.T) {
	const ok = "HTTP/1.1 200 OK\r\n"
	tests := map[string]struct {
		answer func(*net.TCPConn, *http.Request, int) bool
		kept   bool
	}{
		"length":              {say(ok + "Content-Length: 5\r\n\r\nhello"), true},
		"same length twice":   {say(ok + "Content-Length: 5\r\nContent-Length: 5\r\n\r\nhello"), true},
		"chunks":              {say(ok + "Transfer-Encoding: chunked\r\n\r\n2;x=y\r\nhe\r\n3\r\nllo\r\n0\r\nX: y\r\n\r\n"), true},
		"chunk with a space":  {say(ok + "Transfer-Encoding: Chunked\r\n\r\n5 \r\nhello\r\n000\r\n\r\n"), true},
		"both framings":       {say(ok + "Content-Length: 50\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n0\r\n\r\n"), false},
		"closed":              {sayAndClose(ok + "\r\nhello"), false},
		"old":                 {sayAndClose("HTTP/1.0 200 OK\r\nContent-Length: 5\r\n\r\nhello"), false},
		"old and kept":        {say("HTTP/1.0 200 OK\r\nConnection: Keep-Alive\r\nContent-Length: 5\r\n\r\nhello"), true},
		"says close":          {say(ok + "Connection: foo, Close\r\nContent-Length: 5\r\n\r\nhello"), false},
		"interim first":       {say("HTTP/1.1 103 Early Hints\r\nLink: x\r\n\r\n" + ok + "Content-Length: 5\r\n\r\nhello"), true},
		"bare line feeds":     {say("HTTP/1.1 200 OK\nContent-Length: 5\n\nhello"), true},
		"no reason":           {say("HTTP/1.1 200\r\ncontent-length:5\r\n\r\nhello"), true},
		"more than announced": {say(ok + "Content-Length: 5\r\n\r\nhello, world"), false},
		"a long head":         {say(ok + strings.Repeat("X: "+strings.Repeat("y", 900)+"\r\n", 40) + "Content-Length: 5\r\n\r\nhello"), true},
		"byte by byte": {func(c *net.TCPConn, _ *http.Request, _ int) bool {
			for _, b := range []byte(ok + "Transfer-Encoding: chunked\r\n\r\n2\r\nhe\r\n3\r\nllo\r\n0\r\n\r\n") {
				if _, err := c.Write([]byte{b}); err != nil {
					return false
				}
			}
			return true
		}, true},
	}
	for name, tt := range tests {
		for _, sum := range []string{"", "md5"} {
			t.Run(name+sum, func(t *testing.T) {
				t.Parallel()
				p := speak(t, "127.0.0.1", tt.answer)
				c := clientAt(t, p.url, storage.Credentials{})
				op := storage.Op{Kind: storage.Read, Path: "x", Size: 5, Timeout: 20 * time.Second, Sum: sum}
				for i := range 3 {
					var e events
					res, err := c.Do(t.Context(), &op, &e)
					if err != nil || e.moved != 5 || res.Size != 5 {
						t.Fatalf("moved %d, result %+v, error %v", e.moved, res, err)
					}
					if sum != "" && res.Sum != "md5:5d41402abc4b2a76b9719d911017c592" {
						t.Errorf("sum %s", res.Sum)
					}
					connected := slices.Contains(e.phases, storage.Connected)
					if connected != (i == 0 || !tt.kept) {
						t.Errorf("round %d connected: %v, phases %v", i, connected, e.phases)
					}
				}
			})
		}
	}
}

func TestStatus(t *testing.T) {
	tests := map[int]error{
		401: fs.ErrPermission, 403: fs.ErrPermission, 404: fs.ErrNotExist, 410: fs.ErrNotExist,
		408: os.ErrDeadlineExceeded, 504: os.ErrDeadlineExceeded, 429: storage.ErrBusy, 503: storage.ErrBusy,
		502: syscall.ECONNRESET, 507: syscall.ENOSPC, 500: storage.ErrServer, 418: nil, 304: nil,
	}
	for status, want := range tests {
		t.Run(fmt.Sprint(status), func(t *testing.T) {
			t.Parallel()
			body := "Oh dear\x1b[31m\nand more\n"
			if status == 304 {
				body = ""
			}
			p := speak(t, "127.0.0.1", say(fmt.Sprintf("HTTP/1.1 %d Just So\r\nContent-Length: %d\r\n\r\n%s", status, len(body), body)))
			c := clientAt(t, p.url, storage.Credentials{})
			for i := range 2 {
				var e events
				_, err := c.Do(t.Context(), &storage.Op{Kind: storage.Read, Path: "a b", Size: -1, Timeout: 20 * time.Second}, &e)
				if want != nil && !errors.Is(err, want) || err == nil {
					t.Fatalf("error %v, want %v", err, want)
				}
				text := fmt.Sprintf("read %s/a%%20b: HTTP status %d Just So", p.url, status)
				if body != "" {
					text += ": Oh dear [31m"
				}
				if err.Error() != text {
					t.Errorf("error %q, want %q", err, text)
				}
				if e.moved != 0 || slices.Contains(e.phases, storage.Opened) || i > 0 && len(e.phases) > 0 {
					t.Errorf("round %d: moved %d, phases %v: the connection should be kept", i, e.moved, e.phases)
				}
			}
		})
	}
}

// TestNotRun sends XRootD's responses to a request that was not run, and similar responses.
func TestNotRun(t *testing.T) {
	const text, sum = "Could not run request.", "Failed to create initial checksum request."
	for _, c := range []struct {
		kind   storage.Kind
		status string
		body   string
		want   error
	}{
		{storage.Write, "404 Not Found", text, storage.ErrBusy},
		{storage.Read, "404 Not Found", "Error stating/data/x", storage.ErrBusy},
		{storage.Read, "404 Not Found", "Could not run read request.", storage.ErrBusy},
		{storage.Stat, "404 Not Found", text, storage.ErrBusy},
		{storage.Checksum, "404 Not Found", text, storage.ErrBusy},
		{storage.Checksum, "500 Internal Server Error", sum, storage.ErrBusy},
		{storage.Write, "500 Internal Server Error", sum, storage.ErrBusy}, // a second response to the previous checksum
		{storage.Remove, "501 Unknown", text, storage.ErrBusy},
		{storage.List, "501 Unknown", text, storage.ErrBusy},
		{storage.Stat, "404 Not Found", "", fs.ErrNotExist},
		{storage.Stat, "404 Not Found", "No such file.", fs.ErrNotExist},
		{storage.Read, "404 Not Found", "Unable to stat /x; no\n", fs.ErrNotExist}, // same length as text
		{storage.List, "501 Unknown", "PROPFIND?", errors.ErrUnsupported},
	} {
		t.Run(fmt.Sprint(c.kind, " ", c.status, " ", c.body), func(t *testing.T) {
			t.Parallel()
			p := speak(t, "127.0.0.1", func(conn *net.TCPConn, r *http.Request, _ int) bool {
				status := c.status
				if r.Method == http.MethodGet && c.kind == storage.List {
					status = "200 OK"
				}
				_, _ = fmt.Fprintf(conn, "HTTP/1.1 %s\r\nConnection: Close\r\nContent-Length: %d\r\n\r\n%s", status, len(c.body), c.body)
				return false
			})
			_, err := clientAt(t, p.url, storage.Credentials{}).Do(t.Context(), &storage.Op{Kind: c.kind, Path: "x", Size: 0, Sum: "md5",
				Timeout: 20 * time.Second}, &events{})
			if !errors.Is(err, c.want) {
				t.Errorf("error %v, want %v", err, c.want)
			}
		})
	}
}

func TestStaleConnection(t *testing.T) {
	closed := make(chan struct{}, 10)
	p := speak(t, "127.0.0.1", func(c *net.TCPConn, _ *http.Request, _ int) bool {
		_, _ = io.WriteString(c, "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello")
		_ = c.Close()
		closed <- struct{}{}
		return false
	})
	c := clientAt(t, p.url, storage.Credentials{})
	wires := []int64{}
	for range 3 {
		var e events
		res, err := c.Do(t.Context(), &storage.Op{Kind: storage.Read, Path: "x", Size: 5, Timeout: 20 * time.Second}, &e)
		require.NoError(t, err)
		if e.moved != 5 || !slices.Contains(e.phases, storage.Connected) {
			t.Errorf("moved %d, phases %v", e.moved, e.phases)
		}
		wires = append(wires, res.Wire)
		<-closed
	}
	if wires[1] <= wires[0] {
		t.Errorf("bytes on the wire %v: the request that was lost is not among them", wires)
	}
}

func TestOnlyOneSilentReconnect(t *testing.T) {
	p := speak(t, "127.0.0.1", func(c *net.TCPConn, _ *http.Request, nth int) bool {
		if nth > 0 {
			return false // every second request of a connection is lost
		}
		_, err := io.WriteString(c, "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello")
		return err == nil
	})
	c := clientAt(t, p.url, storage.Credentials{})
	op := storage.Op{Kind: storage.Read, Path: "x", Size: 5, Timeout: 20 * time.Second}
	for range 2 {
		if _, err := c.Do(t.Context(), &op, &events{}); err != nil {
			t.Fatal(err)
		}
	}
	if n := len(p.requests()); n != 3 {
		t.Errorf("%d requests for two reads, one of them lost; want 3", n)
	}
	lost := speak(t, "127.0.0.1", sayAndClose(""))
	c = clientAt(t, lost.url, storage.Credentials{})
	if _, err := c.Do(t.Context(), &op, &events{}); storage.Classify(err) != storage.Reset {
		t.Errorf("error %v, want a reset", err)
	}
	if n := len(lost.requests()); n != 1 {
		t.Errorf("%d requests on fresh connections, want 1: there are no hidden retries", n)
	}
}

func TestNothingCanBeInjected(t *testing.T) {
	p := speak(t, "127.0.0.1", say("HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n"))
	c := clientAt(t, p.url+"/base?token=a%20b", storage.Credentials{})
	path := "a\r\nX-Evil: 1\r\n\r\nGET /b c?d#e%41\x00\xff"
	for _, k := range []storage.Kind{storage.Read, storage.Write, storage.Stat, storage.Mkdir, storage.Remove} {
		if _, err := c.Do(t.Context(), &storage.Op{Kind: k, Path: path, Timeout: 20 * time.Second}, &events{}); err != nil {
			t.Fatal(k, err)
		}
	}
	for _, r := range p.requests() {
		if got := strings.TrimSuffix(r.URL.Path, "/"); got != "/base/"+path || r.URL.RawQuery != "token=a%20b" || r.Header.Get("X-Evil") != "" {
			t.Errorf("%s arrived as path %q, query %q, header %v", r.Method, got, r.URL.RawQuery, r.Header)
		}
	}
	if n := len(p.requests()); n != 5 {
		t.Errorf("%d requests, want 5", n)
	}
	for _, path := range []string{"../x", "a/../../x", "a/..", ".", "a/./b"} {
		if _, err := c.Do(t.Context(), &storage.Op{Kind: storage.Read, Path: path, Size: -1}, &events{}); !errors.Is(err, fs.ErrInvalid) {
			t.Errorf("path %q gives %v", path, err)
		}
	}
}

// TestBodyOfHEAD checks that a body sent after the response to HEAD is not taken for the response
// to the next request, even if it arrives late.
func TestBodyOfHEAD(t *testing.T) {
	said := make(chan struct{}, 10)
	p := speak(t, "127.0.0.1", func(c *net.TCPConn, r *http.Request, nth int) bool {
		if r.Method != http.MethodHead {
			_, err := io.WriteString(c, "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nright")
			return err == nil
		}
		_, _ = io.WriteString(c, "HTTP/1.1 200 OK\r\nContent-Length: 5\r\nDigest: adler32=00000001\r\n\r\n")
		time.Sleep(10 * time.Millisecond)
		_, err := io.WriteString(c, "HTTP/1.1 200 OK\r\nContent-Length: 5\r\nDigest: adler32=00000002\r\n\r\nwrong")
		said <- struct{}{}
		return err == nil
	})
	c := clientAt(t, p.url, storage.Credentials{})
	for range 3 {
		res, err := c.Do(t.Context(), &storage.Op{Kind: storage.Checksum, Path: "x", Sum: "adler32", Timeout: 20 * time.Second}, &events{})
		if err != nil || res.Sum != "adler32:00000001" {
			t.Errorf("%q, %v", res.Sum, err)
		}
		<-said
		read := storage.Op{Kind: storage.Read, Path: "x", Size: 5, Sum: "adler32", Timeout: 20 * time.Second}
		if res, err := c.Do(t.Context(), &read, &events{}); err != nil || res.Sum != "adler32:065c021f" {
			t.Errorf("%q, %v", res.Sum, err)
		}
	}
}

// TestUnrequestedEncoding checks that a content encoding that was not requested is reported unless
// the known size of the file is the size of the response.
func TestUnrequestedEncoding(t *testing.T) {
	for encoding, want := range map[string]string{"gzip": "gzip", "x-gzip\x01, br": "x-gzip , br", "identity": "", "": ""} {
		p := speak(t, "127.0.0.1", say("HTTP/1.1 200 OK\r\nContent-Encoding: "+encoding+"\r\nContent-Length: 4\r\n\r\nabcd"))
		for size, want := range map[int64]string{-1: want, 4: ""} {
			res, err := clientAt(t, p.url, storage.Credentials{}).Do(t.Context(), &storage.Op{Kind: storage.Read, Path: "f", Size: size,
				Timeout: 20 * time.Second}, &events{})
			if require.NoError(t, err); res.Encoding != want {
				t.Errorf("%q, size %d: encoding %q, want %q", encoding, size, res.Encoding, want)
			}
		}
	}
}
