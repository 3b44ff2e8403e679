package emulator

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/netip"
	"testing"
	"time"

	"weir/internal/require"
	"weir/internal/tier"
	"weir/internal/unit"
	"weir/link"
)

// forwarded connects, from outside the links, to a forward that leads to address.
func forwarded(t *testing.T, s *Site, address string) *net.TCPConn {
	t.Helper()
	port, err := s.Forward(t.Context(), address, netip.MustParseAddr("127.0.0.1"))
	require.NoError(t, err)
	c, err := (&net.Dialer{Timeout: time.Minute}).DialContext(t.Context(), "tcp", fmt.Sprintf("127.0.0.1:%d", port))
	require.NoError(t, err)
	t.Cleanup(func() { _ = c.Close() })
	return c.(*net.TCPConn)
}

// Processes that are not at a site reach services over its link and trunk, with their rate and round trip time.
// The same service has one port, and only addresses that were named get through.
func TestForward(t *testing.T) {
	tier.Slow(t, "rates are measured for seconds")
	t.Parallel()
	links := append(overTrunk(link.Spec{Rate: 10e6, RTT: 10 * ms}, link.Spec{RTT: 20 * ms}),
		link.Named{Name: "beside", Spec: link.Spec{Rate: 10e6}})
	const rtt = 30 * time.Millisecond
	n, r := upLinks(t, links)
	site := n.Site("a")
	c := forwarded(t, site, serve(t, n, echo))
	roundTrip(t, c, 1)
	again(t, 8, func() error {
		got := roundTrip(t, c, 10)
		if got < rtt {
			t.Errorf("%v is faster than the link", got)
		}
		if got > rtt+20*time.Millisecond {
			return fmt.Errorf("%v, want %v", got, rtt)
		}
		return nil
	})
	address := serve(t, n, pour)
	again(t, 8, func() error {
		conn := forwarded(t, site, address)
		defer conn.Close()
		got := received(t, time.Second, 2*time.Second, conn)
		carried := r.latest("a").ToClients
		t.Logf("%s, the link carried %d bytes in its last second", unit.Bits(got), carried.Bytes)
		return errors.Join(within("bits/s", 8*got, 10e6*1448/1500, 0.05), within("bytes carried", float64(carried.Bytes), 10e6/8, 0.1))
	})
	first, err1 := site.Forward(t.Context(), address, netip.MustParseAddr("192.0.2.1"))
	second, err2 := site.Forward(t.Context(), address, netip.MustParseAddr("::ffff:127.0.0.1"))
	if err := errors.Join(err1, err2); err != nil || first != second {
		t.Errorf("ports %d and %d: %v", first, second, err)
	}
}

// Unnamed clients are refused, and the bytes received from a client are not far ahead of the bytes
// that the link carried.
func TestForwardRefusesOthersAndHoldsBack(t *testing.T) {
	tier.Slow(t, "measures links for seconds")
	n, _ := up(t, link.Spec{Rate: 1e6, Congestion: "cubic"})
	swallow := serve(t, n, func(c *net.TCPConn) { _, _ = io.Copy(io.Discard, c) })
	port, err := n.Sites[0].Forward(t.Context(), swallow, netip.MustParseAddr("192.0.2.1"))
	require.NoError(t, err)
	c, err := net.Dial("tcp", fmt.Sprintf("127.0.0.1:%d", port))
	if err == nil {
		_ = c.SetDeadline(time.Now().Add(time.Minute))
		if _, err := c.Read(make([]byte, 1)); err == nil || errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("a foreign connection: %v", err)
		}
		c.Close()
	}
	if _, err := n.Sites[0].Forward(t.Context(), "localhost:0", netip.MustParseAddr("127.0.0.1")); err == nil {
		t.Error("port 0 is not refused")
	}
	mine := forwarded(t, n.Sites[0], swallow)
	_ = mine.SetWriteBuffer(64 << 10)
	_ = mine.SetWriteDeadline(time.Now().Add(2 * time.Second))
	sent, b := 0, make([]byte, 32<<10)
	for {
		k, err := mine.Write(b)
		if sent += k; err != nil {
			break
		}
	}
	if sent > 2<<20 { // the link carries 250 kB meanwhile
		t.Errorf("%d bytes were taken in 2 s at 1 Mbit/s", sent)
	}
	t.Logf("%d bytes were taken in 2 s at 1 Mbit/s", sent)
}

// An isolated process listens outside of its network.
func TestListenOutside(t *testing.T) {
	_, inside := dialerPair(t)
	l, err := inside.Listen(t.Context())
	require.NoError(t, err)
	defer l.Close()
	go func() {
		if c, err := l.Accept(); err == nil {
			fmt.Fprint(c, "here")
			c.Close()
		}
	}()
	_, port, err := net.SplitHostPort(l.Addr().String())
	require.NoError(t, err)
	c, err := net.Dial("tcp", net.JoinHostPort("127.0.0.1", port))
	require.NoError(t, err)
	defer c.Close()
	if b, err := io.ReadAll(c); err != nil || string(b) != "here" {
		t.Errorf("%q, %v", b, err)
	}
}

// If there are many listeners, the listeners that were not used for a while are closed; a new
// request gets a new listener, and connections stay.
func TestUnusedListenersAreClosed(t *testing.T) {
	g := newGates(nil)
	g.listen = at("127.0.0.1")
	defer g.close()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	defer l.Close()
	used, err1 := g.open(t.Context(), l.Addr().String())
	idle, err2 := g.open(t.Context(), "127.0.0.1:1")
	require.NoError(t, errors.Join(err1, err2))
	c, err := net.Dial("tcp", used)
	require.NoError(t, err)
	defer c.Close()
	server, err := l.Accept()
	require.NoError(t, err)
	defer server.Close()
	g.mu.Lock()
	g.all["127.0.0.1:1"].used.Add(-100)
	g.tidy(time.Now().Add(-50 * time.Second).Unix())
	left := len(g.all)
	g.mu.Unlock()
	if _, err := net.Dial("tcp", idle); err == nil || left != 1 {
		t.Errorf("%d listeners are left, and one that is not used takes connections", left)
	}
	if again, err := g.open(t.Context(), l.Addr().String()); err != nil || again != used {
		t.Errorf("%s is reached at %s after %s: %v", l.Addr(), again, used, err)
	}
	if _, err := g.open(t.Context(), "127.0.0.1:1"); err != nil {
		t.Error(err)
	}
	if _, err := server.Write([]byte("x")); err != nil {
		t.Error(err)
	}
	if _, err := c.Read(make([]byte, 1)); err != nil {
		t.Errorf("a connection did not stay: %v", err)
	}
}
