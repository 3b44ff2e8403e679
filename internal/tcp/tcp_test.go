package tcp

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net"
	"net/netip"
	"os"
	"runtime"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"weir/internal/require"
)

// server starts a server that calls treat with each connection and ends with the test.
func server(t testing.TB, address string, treat func(c *net.TCPConn)) uint16 {
	t.Helper()
	var conf net.ListenConfig
	l, err := conf.Listen(t.Context(), "tcp", address)
	if err != nil {
		t.Skipf("listen on %s: %v", address, err)
	}
	var all sync.WaitGroup
	end := make(chan struct{})
	all.Go(func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			all.Go(func() { <-end; _ = c.Close() })
			all.Go(func() { treat(c.(*net.TCPConn)) })
		}
	})
	t.Cleanup(func() {
		close(end)
		if err := l.Close(); err != nil {
			t.Error(err)
		}
		all.Wait()
	})
	return uint16(l.Addr().(*net.TCPAddr).Port)
}

func dialer(t testing.TB) *Dialer {
	t.Helper()
	d := NewDialer(nil)
	t.Cleanup(func() {
		if err := d.Close(); err != nil {
			t.Error(err)
		}
	})
	return d
}

func dial(t testing.TB, d *Dialer, host string, port uint16) *Conn {
	t.Helper()
	c, err := d.Dial(t.Context(), host, port, time.Now().Add(20*time.Second))
	require.NoError(t, err)
	t.Cleanup(func() { _ = c.Close() }) // some tests close it themselves
	return c
}

func echo(c *net.TCPConn) {
	_, _ = io.Copy(c, c)
	_ = c.CloseWrite()
}

func TestEcho(t *testing.T) {
	d := dialer(t)
	port := server(t, "127.0.0.1:0", echo)
	for _, host := range []string{"127.0.0.1", "localhost", "::ffff:127.0.0.1"} {
		c := dial(t, d, host, port)
		if _, err := c.WriteMore([]byte("hello, ")); err != nil {
			t.Fatal(err)
		}
		if _, err := c.Write([]byte("world")); err != nil {
			t.Fatal(err)
		}
		b := make([]byte, 12)
		if _, err := io.ReadFull(c, b); err != nil || string(b) != "hello, world" {
			t.Errorf("%q, %v", b, err)
		}
		if c.In() != 12 || c.Out() != 12 || c.Peer().Port() != port {
			t.Errorf("in %d, out %d, peer %v", c.In(), c.Out(), c.Peer())
		}
	}
}

func TestLocalhostOverIPv6(t *testing.T) {
	port := server(t, "[::1]:0", echo)
	c := dial(t, dialer(t), "localhost", port)
	if !c.Peer().Addr().Is6() {
		t.Errorf("peer %v", c.Peer())
	}
}

func TestRefused(t *testing.T) {
	var conf net.ListenConfig
	l, err := conf.Listen(t.Context(), "tcp", "127.0.0.1:0")
	require.NoError(t, err)
	port := uint16(l.Addr().(*net.TCPAddr).Port)
	require.NoError(t, l.Close())
	for _, host := range []string{"127.0.0.1", "localhost"} {
		_, err = dialer(t).Dial(t.Context(), host, port, time.Time{})
		if !errors.Is(err, syscall.ECONNREFUSED) {
			t.Errorf("%s: error %v", host, err)
		}
	}
}

// TestAddressesInTurn has one name with three addresses, one of them dead.
func TestAddressesInTurn(t *testing.T) {
	port := server(t, "127.0.0.1:0", echo)
	var conf net.ListenConfig
	l, err := conf.Listen(t.Context(), "tcp", netip.AddrPortFrom(netip.MustParseAddr("127.0.0.3"), port).String())
	if err != nil {
		t.Skipf("the port is taken on another address: %v", err)
	}
	defer l.Close()
	d := dialer(t)
	var lookups atomic.Int32
	d.hosts.lookup = func(context.Context, string, string) ([]netip.Addr, error) {
		lookups.Add(1)
		return []netip.Addr{netip.MustParseAddr("127.0.0.1"), netip.MustParseAddr("127.0.0.2"), netip.MustParseAddr("127.0.0.3")}, nil
	}
	seen := map[string]int{}
	for range 9 {
		c := dial(t, d, "cluster.example", port)
		seen[c.Peer().Addr().String()]++
	}
	if seen["127.0.0.1"] != 3 || seen["127.0.0.3"] != 6 || lookups.Load() != 1 {
		t.Errorf("connections %v after %d lookups", seen, lookups.Load())
	}
}

func TestManyClientsAskOnce(t *testing.T) {
	port := server(t, "127.0.0.1:0", echo)
	d := dialer(t)
	release := make(chan struct{})
	var lookups atomic.Int32
	d.hosts.lookup = func(context.Context, string, string) ([]netip.Addr, error) {
		lookups.Add(1)
		<-release
		return []netip.Addr{netip.MustParseAddr("127.0.0.1")}, nil
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := d.Dial(ctx, "a.example", port, time.Time{}); !errors.Is(err, context.Canceled) {
		t.Errorf("error %v", err)
	}
	_, err := d.Dial(t.Context(), "a.example", port, time.Now().Add(20*time.Millisecond))
	if !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("error %v while nobody answers", err)
	}
	var all sync.WaitGroup
	for range 50 {
		all.Go(func() {
			c, err := d.Dial(t.Context(), "a.example", port, time.Now().Add(20*time.Second))
			if err != nil {
				t.Error(err)
				return
			}
			_ = c.Close() // it has done its part
		})
	}
	close(release)
	all.Wait()
	if lookups.Load() != 1 {
		t.Errorf("%d lookups", lookups.Load())
	}
}

func TestFailedLookupIsRememberedShortly(t *testing.T) {
	d := dialer(t)
	var lookups atomic.Int32
	d.hosts.lookup = func(context.Context, string, string) ([]netip.Addr, error) {
		lookups.Add(1)
		return nil, nil
	}
	var dns *net.DNSError
	for range 5 {
		if _, err := d.Dial(t.Context(), "b.example", 1, time.Time{}); !errors.As(err, &dns) {
			t.Fatalf("error %v", err)
		}
	}
	if lookups.Load() > 2 {
		t.Errorf("%d lookups", lookups.Load())
	}
	d.hosts.names["b.example"].expires = 1 // long ago
	if _, err := d.Dial(t.Context(), "b.example", 1, time.Time{}); err == nil || lookups.Load() < 2 {
		t.Errorf("error %v after %d lookups", err, lookups.Load())
	}
}

func TestDeadlineAndLaterOperation(t *testing.T) {
	port := server(t, "127.0.0.1:0", echo)
	c := dial(t, dialer(t), "127.0.0.1", port)
	for range 3 {
		require.NoError(t, c.Begin(t.Context(), time.Now().Add(10*time.Millisecond)))
		if _, err := c.Read(make([]byte, 1)); !errors.Is(err, os.ErrDeadlineExceeded) {
			t.Errorf("read: %v", err)
		}
		l := &lender{}
		if _, err := c.ReadLate(l); !errors.Is(err, os.ErrDeadlineExceeded) || l.lent != 0 {
			t.Errorf("late read: %v, %d buffers not returned", err, l.lent)
		}
		// The timer that fired is not the next operation's.
		for _, deadline := range []time.Time{{}, time.Now().Add(20 * time.Second)} {
			require.NoError(t, c.Begin(t.Context(), deadline))
			if _, err := c.Write([]byte("x")); err != nil {
				t.Fatal(err)
			}
			if _, err := c.Read(make([]byte, 1)); err != nil {
				t.Fatal(err)
			}
		}
	}
}

func TestInterrupt(t *testing.T) {
	port := server(t, "127.0.0.1:0", echo)
	d := dialer(t)
	const clients = 20
	for range 3 {
		ctx, cancel := context.WithCancel(t.Context())
		var all sync.WaitGroup
		var waiting sync.WaitGroup
		waiting.Add(clients)
		for i := range clients {
			all.Go(func() {
				c, err := d.Dial(ctx, "127.0.0.1", port, time.Time{})
				if err != nil {
					t.Error(err)
					waiting.Done()
					return
				}
				defer c.Close()
				waiting.Done()
				if i%2 == 0 {
					_, err = c.Read(make([]byte, 1))
				} else {
					_, err = c.Discard(1<<20, nil)
				}
				if !errors.Is(err, context.Canceled) {
					t.Errorf("error %v", err)
				}
				// Another context, another operation.
				if err := c.Begin(ctx, time.Time{}); !errors.Is(err, context.Canceled) {
					t.Errorf("begin: %v", err)
				}
				if err := c.Begin(t.Context(), time.Time{}); err != nil {
					t.Errorf("begin: %v", err)
				}
				if _, err := c.Write([]byte("x")); err != nil {
					t.Error(err)
				}
				if _, err := c.Read(make([]byte, 1)); err != nil {
					t.Error(err)
				}
			})
		}
		waiting.Wait()
		cancel()
		all.Wait()
	}
	if n := len(d.watch.groups); n > 0 {
		t.Errorf("%d groups are left", n)
	}
}

func TestDiscard(t *testing.T) {
	const size = 5<<20 + 77
	port := server(t, "127.0.0.1:0", func(c *net.TCPConn) {
		for range 3 {
			if _, err := c.Write(make([]byte, size)); err != nil {
				return
			}
			if _, err := c.Write([]byte("mark")); err != nil {
				return
			}
		}
		_, _ = c.Write(make([]byte, 1000))
		_ = c.Close()
	})
	c := dial(t, dialer(t), "127.0.0.1", port)
	var moved int64
	for range 3 {
		moved = 0
		n, err := c.Discard(size, func(n int) { moved += int64(n) })
		if n != size || err != nil || moved != size {
			t.Fatalf("%d bytes, %d reported, error %v", n, moved, err)
		}
		b := make([]byte, 4)
		if _, err := io.ReadFull(c, b); err != nil || string(b) != "mark" {
			t.Fatalf("out of step: %q, %v", b, err)
		}
	}
	n, err := c.Discard(size, nil)
	if n != 1000 || !errors.Is(err, io.ErrUnexpectedEOF) {
		t.Errorf("%d bytes, error %v", n, err)
	}
	if want := int64(3*(size+4) + 1000); c.In() != want {
		t.Errorf("in %d, want %d", c.In(), want)
	}
}

func TestClientsShareWhatGathers(t *testing.T) {
	w := newWatch()
	for clients, want := range map[int64]int64{0: gulp, 1: gulp, 64: gulp, 256: 1 << 20, 2048: small, 20_000: small} {
		w.discarding.Store(clients)
		if got := w.share(); got != want {
			t.Errorf("each of %d clients gathers %d bytes, want %d", clients, got, want)
		}
	}
}

func TestSend(t *testing.T) {
	want := bytes.Repeat([]byte("0123456789abcdef"), 1<<18) // 4 MiB
	got := make(chan []byte, 1)
	port := server(t, "127.0.0.1:0", func(c *net.TCPConn) {
		b, _ := io.ReadAll(c)
		got <- b
	})
	c := dial(t, dialer(t), "127.0.0.1", port)
	if _, err := c.WriteMore([]byte("head")); err != nil {
		t.Fatal(err)
	}
	moved, calls := 0, 0
	n, err := c.Send(want, func(n int) { moved += n; calls++ })
	if n != len(want) || err != nil || moved != n || calls < 2 {
		t.Fatalf("%d bytes, %d reported in %d calls, error %v", n, moved, calls, err)
	}
	if c.Out() != int64(4+len(want)) {
		t.Errorf("out %d", c.Out())
	}
	require.NoError(t, c.Close())
	if b := <-got; !bytes.Equal(b, append([]byte("head"), want...)) {
		t.Errorf("%d bytes arrived, and not the right ones", len(b))
	}
}

func TestSendNoticesAnAnswer(t *testing.T) {
	port := server(t, "127.0.0.1:0", func(c *net.TCPConn) { _, _ = c.Write([]byte("no")) })
	c := dial(t, dialer(t), "127.0.0.1", port)
	large := make([]byte, 256<<20)
	if n, err := c.Send(large, nil); !errors.Is(err, ErrAnswered) || n >= len(large) {
		t.Errorf("%d bytes, error %v", n, err)
	}
}

// A lender counts the buffers that are lent.
type lender struct{ lent int }

func (l *lender) Lend() []byte {
	l.lent++
	return make([]byte, 1)
}

func (l *lender) Return() { l.lent-- }

func TestQuiet(t *testing.T) {
	texts := make(chan string)
	port := server(t, "127.0.0.1:0", func(c *net.TCPConn) {
		_, _ = c.Write([]byte(<-texts))
		_ = c.Close()
	})
	for _, last := range []string{"", "x"} {
		c := dial(t, dialer(t), "127.0.0.1", port)
		if !c.Quiet() {
			t.Error("a fresh connection is not quiet")
		}
		texts <- last
		for end := time.Now().Add(10 * time.Second); c.Quiet() && time.Now().Before(end); {
			runtime.Gosched()
		}
		if c.Quiet() {
			t.Errorf("quiet after %q and the end", last)
		}
		require.NoError(t, c.Close())
		if c.Quiet() {
			t.Error("a closed connection is quiet")
		}
	}
}

func TestOperationsAllocateNothing(t *testing.T) {
	port := server(t, "127.0.0.1:0", echo)
	c := dial(t, dialer(t), "127.0.0.1", port)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	b := make([]byte, 512<<10)
	moved := func(int) {}
	got := testing.AllocsPerRun(50, func() {
		require.NoError(t, c.Begin(ctx, time.Now().Add(time.Minute)))
		if _, err := c.Write(b); err != nil {
			t.Fatal(err)
		}
		n, err := c.Read(b[:100])
		require.NoError(t, err)
		if _, err := c.Discard(int64(len(b)-n), moved); err != nil {
			t.Fatal(err)
		}
	})
	if got != 0 {
		t.Errorf("%v allocations for each operation", got)
	}
}

func TestTimeIsSharedByAddresses(t *testing.T) {
	d := dialer(t)
	if got := d.attempt(0, 1) - d.clock.now(); got < int64(attemptTimeout)-int64(time.Second) {
		t.Errorf("an address gets %v without a deadline", time.Duration(got))
	}
	now := d.clock.now()
	if got := d.attempt(now+int64(9*time.Second), 3) - now; got < int64(2*time.Second) || got > int64(4*time.Second) {
		t.Errorf("one of three addresses gets %v of 9s", time.Duration(got))
	}
	if got := d.attempt(now+int64(time.Second), 3) - now; got > int64(time.Second) {
		t.Errorf("an address gets %v of 1s", time.Duration(got))
	}
}
