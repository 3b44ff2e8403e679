package wire

import (
	"context"
	"io"
	"net"
	"net/http"
	"net/netip"
	"testing"
	"time"

	"weir/internal/require"
)

// TestOneAddressKeepsNobodyOut: while one address holds as many connections open as it
// can, others are answered at once, and it gets at most half of the slots.
func TestOneAddressKeepsNobodyOut(t *testing.T) {
	s, err := Serve(t.Context(), "127.0.0.1:0", Config{Check: func(r *http.Request) (context.Context, error) { return r.Context(), nil }})
	require.NoError(t, err)
	s.Public("GET /ok", http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, "ok") }))
	s.Begin()
	defer s.Close()
	from := func(ip string) *net.Dialer { return &net.Dialer{LocalAddr: &net.TCPAddr{IP: net.ParseIP(ip)}} }
	for range maxUnauthenticated + 100 {
		c, err := from("127.0.0.2").Dial("tcp", s.Addr().String())
		require.NoError(t, err)
		defer c.Close()
	}
	client := &http.Client{Timeout: patience / 2, Transport: &http.Transport{DisableKeepAlives: true,
		DialContext: from("127.0.0.3").DialContext}}
	for range 5 {
		begin := time.Now()
		res, err := client.Get("http://" + s.Addr().String() + "/ok")
		if err != nil {
			t.Fatalf("after %v: %v", time.Since(begin), err)
		}
		_ = res.Body.Close()
	}
	limiter := s.listener.(*preAuthLimiter)
	limiter.mu.Lock()
	defer limiter.mu.Unlock()
	if n := limiter.admitted[netip.MustParsePrefix("127.0.0.2/32")]; n > maxUnauthenticated/2 || limiter.queued < 300 {
		t.Errorf("%d inside, %d wait", n, limiter.queued)
	}
}

// TestTooManyWait: of those who wait the last ones of the address with most of them
// are closed, and slots are given in turn.
func TestTooManyWait(t *testing.T) {
	l := newPreAuthLimiter(nil, 4)
	add := func(ip string) net.Conn {
		near, far := net.Pipe()
		v := &limitedConn{Conn: near, limiter: l, from: netip.PrefixFrom(netip.MustParseAddr(ip), 32), since: time.Now()}
		l.mu.Lock()
		defer l.mu.Unlock()
		if l.waiting[v.from] == nil {
			l.queue = append(l.queue, v.from)
		}
		l.waiting[v.from] = append(l.waiting[v.from], v)
		l.queued++
		l.admit()
		return far
	}
	for range 10 {
		add("10.0.0.1")
	}
	last := add("10.0.0.1")
	add("10.0.0.2")
	if len(l.in) != 3 || l.queued != 9 {
		t.Errorf("%d inside, %d wait", len(l.in), l.queued)
	}
	l.mu.Lock()
	l.closeNewest()
	l.mu.Unlock()
	if _, err := last.Read(make([]byte, 1)); err == nil || l.queued != 8 {
		t.Errorf("the last one: %v; %d wait", err, l.queued)
	}
	first := (<-l.in).(*limitedConn)
	first.authenticated()
	if len(l.in) != 3 || l.admitted[first.from] != 2 {
		t.Errorf("after one was known: %d, %v", len(l.in), l.admitted)
	}
}
