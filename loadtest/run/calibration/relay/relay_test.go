package relay

import (
	"bufio"
	"context"
	"encoding/binary"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"weir/internal/require"
)

// request makes the head of an XRootD request, with n bytes behind it.
func request(code int, options uint16, n int) []byte {
	b := make([]byte, head+n)
	binary.BigEndian.PutUint16(b[2:], uint16(code))
	binary.BigEndian.PutUint16(b[6:], options)
	binary.BigEndian.PutUint32(b[20:], uint32(n))
	return b
}

func greeting() []byte {
	b := make([]byte, handshakeSize)
	b[15] = 4
	binary.BigEndian.PutUint32(b[16:], 2012)
	return b
}

func streams() map[string]struct {
	text []byte
	want map[string]int64
	lost bool
} {
	join := func(parts ...[]byte) (all []byte) {
		for _, p := range parts {
			all = append(all, p...)
		}
		return all
	}
	return map[string]struct {
		text []byte
		want map[string]int64
		lost bool
	}{
		"xrootd": {join(greeting(), request(3006, 0, 0), request(3007, 0, 76), request(3010, 0x450, 30), request(3030, 0, 2), request(3030, 0, 0),
			request(3003, 0, 0)), map[string]int64{"handshake": 1, "protocol": 1, "login": 1, "open" + Async: 1, "page read": 2, "close": 1}, false},
		"payload that looks like requests": {join(greeting(), request(3010, 0x28, 4), request(3019, 0, 3*head)),
			map[string]int64{"handshake": 1, "open": 1, "write": 1}, false},
		"TLS behind the protocol": {join(greeting(), request(3006, 0, 0), []byte("\x16\x03\x01\x02\x00"), make([]byte, 64)),
			map[string]int64{"handshake": 1, "protocol": 1}, true},
		"TLS": {[]byte("\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03 and so on and on"), nil, true},
		"a length below zero": {join(greeting(), func() []byte { b := request(3010, 0, 0); b[20] = 0xff; return b }()),
			map[string]int64{"handshake": 1}, true},
		"http": {[]byte("GET /a HTTP/1.1\r\nHost: x\r\n\r\nPUT /b HTTP/1.1\r\nContent-Length: 9\r\n\r\nGET / HT\nHEAD /c HTTP/1.1\r\n\r\n"),
			map[string]int64{"GET": 1, "PUT": 1, "HEAD": 1}, false},
		"http, chunks": {[]byte("PUT /b HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n5;x=y\r\nGET /\r\n2\r\nab\r\n0\r\nT: " +
			"1\r\n\r\nGET /c HTTP/1.1\r\n\r\n"), map[string]int64{"PUT": 1, "GET": 1}, false},
		"http/2":  {[]byte("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"), nil, true},
		"another": {[]byte("\x00\x00\x00\x01 nobody knows what this is"), nil, true},
		"endless": {[]byte("GET " + strings.Repeat("a", 2*mostHead)), nil, true},
		"nothing": {nil, nil, false},
	}
}

// The bytes of a client are parsed in the same way for any division into pieces.
func TestParser(t *testing.T) {
	for name, c := range streams() {
		for _, piece := range []int{1, 7, 25, 1 << 20} {
			t.Run(fmt.Sprintf("%s/%d", name, piece), func(t *testing.T) {
				var p parser
				var got Seen
				for rest := c.text; len(rest) > 0; {
					n := min(piece, len(rest))
					add(&got, p.feed(rest[:n]))
					rest = rest[n:]
				}
				if diff := cmp.Diff(c.want, got.Requests); diff != "" || p.lost != c.lost {
					t.Errorf("lost %v, want %v; requests (-want +got):\n%s", p.lost, c.lost, diff)
				}
			})
		}
	}
}

func FuzzParser(f *testing.F) {
	for _, c := range streams() {
		f.Add(c.text, 5)
	}
	f.Fuzz(func(t *testing.T, b []byte, piece int) {
		whole, cut := &parser{}, &parser{}
		var a, z Seen
		add(&a, whole.feed(b))
		for piece = max(piece, 1); len(b) > 0; {
			n := min(piece, len(b))
			add(&z, cut.feed(b[:n]))
			b = b[n:]
		}
		if len(cut.head) > mostHead || cut.skip < 0 {
			t.Fatalf("%d bytes kept, %d to skip", len(cut.head), cut.skip)
		}
		if whole.lost != cut.lost || cmp.Diff(a.Requests, z.Requests) != "" {
			t.Errorf("in one piece %v (lost %v), in pieces %v (lost %v)", a.Requests, whole.lost, z.Requests, cut.lost)
		}
	})
}

// A relay changes nothing, counts all, and ends.
func TestRelay(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		n, _ := io.Copy(io.Discard, r.Body)
		_, _ = fmt.Fprintf(w, "%s %d", r.Method, n)
	}))
	defer server.Close()
	r, err := Listen(t.Context(), server.Listener.Addr().String())
	require.NoError(t, err)
	client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
	for _, body := range []string{"", strings.Repeat("x", 100_000)} {
		req, err := http.NewRequestWithContext(t.Context(), http.MethodPut, "http://"+r.Address()+"/a", strings.NewReader(body))
		require.NoError(t, err)
		res, err := client.Do(req)
		require.NoError(t, err)
		said, err := io.ReadAll(res.Body)
		_ = res.Body.Close()
		if want := fmt.Sprintf("PUT %d", len(body)); err != nil || string(said) != want {
			t.Errorf("%q, %v; want %q", said, err, want)
		}
	}
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
	defer cancel()
	r.Idle(ctx)
	s := r.Take()
	if s.Connections != 2 || s.Requests["PUT"] != 2 || s.Up < 100_000 || s.Down == 0 || s.Opaque != 0 {
		t.Errorf("%+v", s)
	}
	if again := r.Take(); again.Connections != 0 || len(again.Requests) != 0 {
		t.Errorf("taken twice: %+v", again)
	}
	held, err := net.Dial("tcp", r.Address())
	require.NoError(t, err)
	defer held.Close()
	if err := r.Close(); err != nil {
		t.Error(err)
	}
	if _, err := bufio.NewReader(held).ReadByte(); err == nil {
		t.Error("a connection outlived its relay")
	}
}
