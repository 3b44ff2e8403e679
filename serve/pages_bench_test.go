package serve

import (
	"bufio"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"testing"

	"weir/internal/require"
	"weir/serve/servetest/requests"
)

// BenchmarkPages reads pages of 8 KiB one at a time on one connection, as an analysis job does,
// from this server and from nginx, and reports the CPU time per page.
func BenchmarkPages(b *testing.B) {
	dir, sides := contestants(b)
	f, err := os.Create(filepath.Join(dir, "big"))
	require.NoError(b, err)
	if _, err := io.WriteString(f, requests.Content(1, gib/4)); err != nil {
		b.Fatal(err)
	}
	require.NoError(b, f.Close())
	for b.Loop() {
		compare(b, sides, 5, func(s *side) float64 { return s.pages(b, 20_000) })
	}
}

// pages reads n pages at random and returns n.
func (s *side) pages(b *testing.B, n int) float64 {
	u, err := url.Parse(s.url)
	require.NoError(b, err)
	c, err := new(net.Dialer).DialContext(b.Context(), "tcp", u.Host)
	require.NoError(b, err)
	defer c.Close()
	in := bufio.NewReaderSize(c, 32<<10)
	for range n {
		at := rand.IntN(gib/4/8192) * 8192
		if _, err := fmt.Fprintf(c, "GET %s/%s HTTP/1.1\r\nHost: %s\r\nRange: bytes=%d-%d\r\n\r\n", u.Path, s.big, u.Host, at, at+
			8191); err != nil {
			b.Fatal(err)
		}
		resp, err := http.ReadResponse(in, nil)
		if err != nil || resp.StatusCode != http.StatusPartialContent {
			b.Fatal(err, resp)
		}
		if m, err := io.Copy(io.Discard, resp.Body); err != nil || m != 8192 {
			b.Fatal(m, err)
		}
	}
	return float64(n)
}
