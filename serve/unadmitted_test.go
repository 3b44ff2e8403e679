package serve_test

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"strings"
	"testing"
	"time"

	"weir/internal/require"
	"weir/serve"
	"weir/serve/servetest"
)

// slow writes the beginning of a request, then a byte now and then until the connection ends, and returns the answer. It fails t if the
// connection is open after a minute.
func slow(t *testing.T, address, begin string) string {
	t.Helper()
	c, err := new(net.Dialer).DialContext(t.Context(), "tcp", address)
	require.NoError(t, err)
	defer c.Close()
	require.NoError(t, c.SetDeadline(time.Now().Add(time.Minute)))
	_, err = io.WriteString(c, begin)
	require.NoError(t, err)
	ended := make(chan struct{})
	go func() {
		for tick := time.NewTicker(50 * time.Millisecond); ; <-tick.C {
			if _, err := io.WriteString(c, "x"); err != nil {
				tick.Stop()
				close(ended)
				return
			}
		}
	}()
	answer, err := io.ReadAll(c)
	if errors.Is(err, os.ErrDeadlineExceeded) {
		t.Errorf("%.40q: the connection is open after a minute: %q", begin, answer)
	}
	_ = c.Close()
	<-ended
	return string(answer)
}

// A request without credentials is refused before its body is read, and its connection ends.
func TestRefusedBodiesAreNotRead(t *testing.T) {
	t.Parallel()
	address := strings.TrimPrefix(servetest.Start(t, serve.Config{Dir: t.TempDir(), Token: "secret"}), "http://")
	for _, length := range []int{100_000, 300_000} {
		for _, method := range []string{http.MethodPut, http.MethodGet, "PROPFIND"} {
			answer := slow(t, address, fmt.Sprintf("%s /x HTTP/1.1\r\nHost: a\r\nContent-Length: %d\r\n\r\nx", method, length))
			if !strings.HasPrefix(answer, "HTTP/1.1 401 ") || !strings.Contains(answer, "Connection: close") {
				t.Errorf("%s with %d bytes: %q", method, length, answer)
			}
		}
	}
	answer := slow(t, address, "PUT /x HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\nfff\r\n")
	if !strings.HasPrefix(answer, "HTTP/1.1 401 ") {
		t.Errorf("a chunked body: %q", answer)
	}
}

// Bodies that are never read, and bodies of requests that wait for their end, have a time limit
// without credentials as well.
func TestBodiesThatDoNotEnd(t *testing.T) {
	t.Parallel()
	address := strings.TrimPrefix(servetest.Start(t, serve.Config{Dir: t.TempDir(), StallTimeout: 300 * time.Millisecond}), "http://")
	for _, method := range []string{http.MethodGet, "PROPFIND", "MKCOL", http.MethodDelete, http.MethodOptions, "PATCH"} {
		slow(t, address, method+" /x HTTP/1.1\r\nHost: a\r\nContent-Length: 100000\r\n\r\n")
	}
}

// While one address holds all connections that it can get, other clients are served. The held
// connections are silent connections, unfinished headers, and bodies without credentials.
func TestSlowClientsExcludeNobody(t *testing.T) {
	t.Parallel()
	url := servetest.Start(t, serve.Config{Dir: t.TempDir(), Token: "secret", Unadmitted: 8})
	from := &net.Dialer{LocalAddr: &net.TCPAddr{IP: net.IPv4(127, 0, 0, 2)}}
	for _, begin := range []string{"", "GET /x HTTP/1.1\r\nHo", "PUT /x HTTP/1.1\r\nHost: a\r\nContent-Length: 100000\r\n\r\nx"} {
		for range 30 {
			c, err := from.DialContext(t.Context(), "tcp", strings.TrimPrefix(url, "http://"))
			require.NoError(t, err)
			defer c.Close()
			_, err = io.WriteString(c, begin)
			require.NoError(t, err)
		}
	}
	for range 20 { // each on a connection of its own
		c, err := new(net.Dialer).DialContext(t.Context(), "tcp", strings.TrimPrefix(url, "http://"))
		require.NoError(t, err)
		require.NoError(t, c.SetDeadline(time.Now().Add(time.Minute)))
		_, err = io.WriteString(c, "PUT /file HTTP/1.1\r\nHost: a\r\nAuthorization: Bearer secret\r\nContent-Length: 1\r\n\r\nx")
		require.NoError(t, err)
		res, err := http.ReadResponse(bufio.NewReader(c), nil)
		require.NoError(t, err)
		if res.Body.Close(); res.StatusCode/100 != 2 {
			t.Errorf("status %d", res.StatusCode)
		}
		defer c.Close() // with credentials a connection takes no place from others
	}
}
