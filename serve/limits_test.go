package serve

import (
	"bufio"
	"errors"
	"io"
	"strings"
	"syscall"
	"testing"
	"time"

	"weir/internal/require"
	"weir/serve/servetest/requests"
)

func TestStalledGetEnds(t *testing.T) {
	s := start(t, Config{Synthetic: []Set{{1, 1 << 30}}, StallTimeout: 200 * time.Millisecond})
	requests.Dial(t, s.URL(), "GET /file000000.dat HTTP/1.1\r\nHost: x\r\n\r\n") // and reads nothing
	require.Eventually(t, "the request begins", func() bool { return s.metrics.payloadOut.Load() > 0 })
	require.Eventually(t, "the request is given up", func() bool { return s.metrics.inFlight.Load() == 0 && s.metrics.open.Load() == 0 })
}

func TestSlowHeadEnds(t *testing.T) {
	s := start(t, Config{Synthetic: []Set{{1, 1}}, HeaderTimeout: 200 * time.Millisecond})
	c := requests.Dial(t, s.URL(), "GET / HTTP/1.1\r\nHost:")
	if _, err := io.Copy(io.Discard, c); err != nil && !errors.Is(err, syscall.ECONNRESET) {
		t.Errorf("the connection is not closed: %v", err)
	}
}

func TestHostileHeads(t *testing.T) {
	t.Parallel()
	s := start(t, Config{Dir: t.TempDir()})
	for text, want := range map[string]string{
		"GET / HTTP/1.1\r\nHost: x\r\nA: " + strings.Repeat("a", 200_000) + "\r\n\r\n": "431",
		"GET / HTTP/9.9\r\n\r\n":                                                                 "505",
		"\x16\x03\x01\x02\x00\x01\x00\r\n\r\n":                                                   "400",
		"GET http://x/../../etc/passwd HTTP/1.1\r\nHost: x\r\n\r\n":                              "400",
		"GET ../etc/passwd HTTP/1.1\r\nHost: x\r\n\r\n":                                          "400",
		"CONNECT x:1 HTTP/1.1\r\nHost: x\r\n\r\n":                                                "4",
		"PUT /f HTTP/1.1\r\nHost: x\r\nContent-Length: -1\r\n\r\n":                               "400",
		"PUT /f HTTP/1.1\r\nHost: x\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\nab":         "400",
		"PUT /f HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\nnothex\r\n":             "400",
		"GET / HTTP/1.1\r\nHost: x\r\nRange: bytes=" + strings.Repeat("0-0,", 9000) + "\r\n\r\n": "200",
		"PROPFIND / HTTP/1.1\r\nHost: x\r\nDepth: 0\r\nContent-Length: 3\r\n\r\n<<<":             "400",
		"OPTIONS * HTTP/1.1\r\nHost: x\r\n\r\n":                                                  "200",
	} {
		c := requests.Dial(t, s.URL(), text)
		line, err := bufio.NewReader(c).ReadString('\n')
		if err != nil || !strings.HasPrefix(line, "HTTP/1.1 "+want) && !strings.HasPrefix(line, "HTTP/1.0 "+want) {
			t.Errorf("%.60q: %q, %v; want %s", text, line, err, want)
		}
	}
	check(t, s, exchange{Method: "GET", Path: "/", Code: 200}) // still there
}
