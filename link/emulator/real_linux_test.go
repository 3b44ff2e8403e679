package emulator

import (
	"context"
	"io"
	"net"
	"os"
	"sync"
	"testing"
	"time"

	"weir/internal/require"
	"weir/internal/tier"
	"weir/internal/unit"
	"weir/link"
)

// needSpaces skips t where links are not possible, unless they are required.
func needSpaces(t testing.TB) {
	t.Helper()
	if why := Probe(); why != "" {
		tier.Without(t, "links", "no links here: "+why)
	}
}

// A recorder stores the samples of links.
type recorder struct {
	mu  sync.Mutex
	all []Sample
}

func (r *recorder) take(s *Sample) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.all = append(r.all, *s)
}

func (r *recorder) samples() []Sample {
	r.mu.Lock()
	defer r.mu.Unlock()
	return append([]Sample(nil), r.all...)
}

// latest returns the last sample of the link of that name.
func (r *recorder) latest(name string) (last Sample) {
	for _, s := range r.samples() {
		if s.Link == name {
			last = s
		}
	}
	return last
}

func moverOptions(t testing.TB) Options {
	exe, err := os.Executable()
	require.NoError(t, err)
	return Options{Mover: []string{"env", asMover + "=1", exe}, Log: os.Stderr, Seed: 1}
}

// up makes links for a test.
func up(t testing.TB, specs ...link.Spec) (*Network, *recorder) {
	t.Helper()
	var links []link.Named
	for i, s := range specs {
		links = append(links, link.Named{Name: string(rune('a' + i)), Spec: s})
	}
	return upLinks(t, links)
}

// upLinks makes links with names for a test.
func upLinks(t testing.TB, links []link.Named) (*Network, *recorder) {
	t.Helper()
	needSpaces(t)
	o, r := moverOptions(t), &recorder{}
	o.Take = r.take
	n, err := Up(t.Context(), links, o)
	require.NoError(t, err)
	t.Cleanup(func() {
		if err := n.Close(); err != nil {
			t.Errorf("close: %v", err)
		}
	})
	return n, r
}

// dial connects from a site.
func dial(t testing.TB, s *Site, address string) *net.TCPConn {
	t.Helper()
	there, err := s.Reach(t.Context(), address)
	require.NoError(t, err)
	var c net.Conn
	try := func() error {
		c, err = (&net.Dialer{Timeout: time.Minute}).DialContext(t.Context(), "tcp", there)
		return err
	}
	if sp, ok := s.over.(*spoke); ok {
		err = sp.space.in(try)
	} else {
		err = try()
	}
	require.NoError(t, err)
	t.Cleanup(func() { _ = c.Close() })
	return c.(*net.TCPConn)
}

// serve listens where all sites reach it and gives each connection to handle.
func serve(t testing.TB, n *Network, handle func(*net.TCPConn)) string {
	t.Helper()
	at := n.Service
	if at == "" {
		at = "127.0.0.1"
	}
	l, err := net.Listen("tcp", net.JoinHostPort(at, "0"))
	require.NoError(t, err)
	var group sync.WaitGroup
	ctx, stop := context.WithCancel(context.Background())
	group.Go(func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			group.Go(func() {
				defer c.Close()
				defer context.AfterFunc(ctx, func() { c.Close() })()
				handle(c.(*net.TCPConn))
			})
		}
	})
	t.Cleanup(func() { stop(); l.Close(); group.Wait() })
	return l.Addr().String()
}

func echo(c *net.TCPConn) { io.Copy(c, c) }

// pour sends until the connection breaks.
func pour(c *net.TCPConn) {
	b := make([]byte, 1<<20)
	for {
		if _, err := c.Write(b); err != nil {
			return
		}
	}
}

// received counts the bytes that arrive over conns in a time that begins after warm, in bytes per
// second.
func received(t testing.TB, warm, span time.Duration, conns ...*net.TCPConn) float64 {
	t.Helper()
	total := 0.0
	for _, rate := range receivedEach(t, warm, span, conns...) {
		total += rate
	}
	return total
}

// receivedEach is received for each of conns.
func receivedEach(t testing.TB, warm, span time.Duration, conns ...*net.TCPConn) []float64 {
	t.Helper()
	begin := time.Now().Add(warm)
	end := begin.Add(span)
	sums := make([]float64, len(conns))
	var group sync.WaitGroup
	for i, c := range conns {
		group.Go(func() {
			b := make([]byte, 256<<10)
			_ = c.SetReadDeadline(end)
			for {
				n, err := c.Read(b)
				if time.Now().After(begin) {
					sums[i] += float64(n)
				}
				if err != nil {
					return
				}
			}
		})
	}
	group.Wait()
	for i := range sums {
		sums[i] /= span.Seconds()
	}
	return sums
}

// rtt returns the shortest time of n exchanges of one byte.
func roundTrip(t testing.TB, c *net.TCPConn, n int) time.Duration {
	t.Helper()
	best := time.Hour
	b := []byte{1}
	_ = c.SetDeadline(time.Now().Add(time.Minute))
	for range n {
		begin := time.Now()
		if _, err := c.Write(b); err != nil {
			t.Fatal(err)
		}
		if _, err := io.ReadFull(c, b); err != nil {
			t.Fatal(err)
		}
		best = min(best, time.Since(begin))
	}
	return best
}

const ms = unit.Duration(time.Millisecond)
