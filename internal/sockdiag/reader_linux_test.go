package sockdiag

import (
	"context"
	"io"
	"net"
	"os"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"weir/internal/burn"
	"weir/internal/require"
)

// pair returns the two ends of a connection to address.
func pair(t testing.TB, address string) (client, server *net.TCPConn) {
	t.Helper()
	l, err := net.Listen("tcp", address)
	require.NoError(t, err)
	defer l.Close()
	c, err := net.Dial("tcp", l.Addr().String())
	require.NoError(t, err)
	s, err := l.Accept()
	require.NoError(t, err)
	t.Cleanup(func() { c.Close(); s.Close() })
	return c.(*net.TCPConn), s.(*net.TCPConn)
}

func openReader(t testing.TB) *Reader {
	t.Helper()
	r, err := Open()
	require.NoError(t, err)
	t.Cleanup(func() { r.Close() })
	return r
}

// of returns the socket with the local address of c.
func of(all []Socket, c *net.TCPConn) *Socket {
	for i := range all {
		if all[i].Local == c.LocalAddr().(*net.TCPAddr).AddrPort() && all[i].Remote == c.RemoteAddr().(*net.TCPAddr).AddrPort() {
			return &all[i]
		}
	}
	return nil
}

// All ways to choose a socket return it with the numbers of its transfer, for IPv4 and IPv6.
func TestSockets(t *testing.T) {
	for _, address := range []string{"127.0.0.1:0", "[::1]:0"} {
		client, server := pair(t, address)
		_, err := server.Write(make([]byte, 1000))
		require.NoError(t, err)
		inodes, err := Inodes(os.Getpid())
		require.NoError(t, err)
		remote := client.RemoteAddr().(*net.TCPAddr).AddrPort()
		r := openReader(t)
		for name, f := range map[string]Filter{"all": {}, "inodes": {Inodes: inodes}, "remote": {Remote: remote},
			"both": {Inodes: inodes, Remote: remote}} {
			all, err := r.Sockets(f, nil)
			require.NoError(t, err)
			c := of(all, client)
			if c == nil {
				t.Fatalf("%s %s: no socket among %d", address, name, len(all))
			}
			if c.BytesReceived != 1000 || c.RecvQueue != 1000 || c.State != Established || c.Congestion == "" ||
				c.RecvBuffer == 0 || c.DataSegsIn != 1 || !inodes[c.Inode] {
				t.Errorf("%s %s: %+v", address, name, *c)
			}
			if s := of(all, server); f.Remote.IsValid() == (s != nil) || s != nil && (s.BytesAcked != 1001 && s.BytesAcked != 1000) {
				t.Errorf("%s %s: server %+v", address, name, s)
			}
			if f.Remote.IsValid() && len(all) != 1 {
				t.Errorf("%s %s: %d sockets", address, name, len(all))
			}
		}
	}
}

// sampled returns the trace of c in 100 samples.
func sampled(t *testing.T, c *net.TCPConn) Trace {
	t.Helper()
	inodes, err := Inodes(os.Getpid())
	require.NoError(t, err)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	var traces Traces
	result := make(chan error)
	r := openReader(t)
	go func() {
		result <- Sample(ctx, r, time.Millisecond, func() Filter { return Filter{Inodes: inodes} }, &traces)
	}()
	var found Trace
	require.Eventually(t, "the samples", func() bool {
		for _, trace := range traces.All() {
			if trace.Local == c.LocalAddr().(*net.TCPAddr).AddrPort() && trace.Remote == c.RemoteAddr().(*net.TCPAddr).AddrPort() {
				found = trace
			}
		}
		return found.Samples >= 100
	})
	cancel()
	require.NoError(t, <-result)
	return found
}

// A peer that does not read makes the sender window limited, and the queue of the reader full.
func TestPeerDoesNotRead(t *testing.T) {
	sender, reader := pair(t, "127.0.0.1:0")
	require.NoError(t, reader.SetReadBuffer(64<<10))
	go func() {
		b := make([]byte, 1<<16)
		for {
			if _, err := sender.Write(b); err != nil {
				return
			}
		}
	}()
	r := openReader(t)
	require.Eventually(t, "full queues", func() bool {
		all, err := r.Sockets(Filter{Remote: sender.RemoteAddr().(*net.TCPAddr).AddrPort()}, nil)
		require.NoError(t, err)
		s := of(all, sender)
		return s != nil && s.NotSent > 0 && s.RwndLimited > 0
	})
	trace := sampled(t, sender)
	if trace.RwndLimited < trace.Span/2 || trace.Unsent < 0.9*trace.Span || trace.Sending > trace.Span/2 {
		t.Errorf("sender: %+v", trace)
	}
	trace = sampled(t, reader)
	if trace.Unread < 0.9*trace.Span || trace.Empty > 0 || trace.RecvBuffer > 256<<10 || trace.RecvBuffer < 64<<10 {
		t.Errorf("reader: %+v", trace)
	}
}

// A reader that waits for data has an empty queue.
func TestReaderWaits(t *testing.T) {
	sender, reader := pair(t, "127.0.0.1:0")
	stop := make(chan struct{})
	defer close(stop)
	go func() {
		tick := time.NewTicker(2 * time.Millisecond)
		defer tick.Stop()
		for {
			select {
			case <-stop:
				return
			case <-tick.C:
				_, _ = sender.Write(make([]byte, 1000))
			}
		}
	}()
	go func() { _, _ = io.Copy(io.Discard, reader) }()
	trace := sampled(t, reader)
	if trace.Empty < 0.5*trace.Span || trace.Unread > 0.1*trace.Span || trace.Receiving == 0 || trace.BytesReceived == 0 {
		t.Errorf("%+v", trace)
	}
}

// Sockets that close and open during the sampling cause no error, and are found within the next
// calls.
func TestSocketsThatCome(t *testing.T) {
	r := openReader(t)
	for range 3 {
		client, server := pair(t, "127.0.0.1:0")
		inodes, err := Inodes(os.Getpid())
		require.NoError(t, err)
		all, err := r.Sockets(Filter{Inodes: inodes}, nil)
		require.NoError(t, err)
		if of(all, client) == nil || of(all, server) == nil {
			t.Fatalf("not found among %d", len(all))
		}
		require.NoError(t, client.Close())
		require.NoError(t, server.Close())
		all, err = r.Sockets(Filter{Inodes: inodes}, nil)
		require.NoError(t, err)
		if of(all, client) != nil {
			t.Error("a closed socket is returned with its inode")
		}
	}
}

// A socket connects after it was opened: a program's list of inodes has it before the kernel's list
// of connections does.
func TestSocketThatConnectsLater(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	defer l.Close()
	fd, err := unix.Socket(unix.AF_INET, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	require.NoError(t, err)
	defer unix.Close(fd)
	inodes, err := Inodes(os.Getpid())
	require.NoError(t, err)
	r := openReader(t)
	_, err = r.Sockets(Filter{Inodes: inodes}, nil)
	require.NoError(t, err)
	port := l.Addr().(*net.TCPAddr).Port
	require.NoError(t, unix.Connect(fd, &unix.SockaddrInet4{Port: port, Addr: [4]byte{127, 0, 0, 1}}))
	for range patient {
		all, err := r.Sockets(Filter{Inodes: inodes}, nil)
		require.NoError(t, err)
		for i := range all {
			if int(all[i].Remote.Port()) == port {
				return
			}
		}
	}
	t.Errorf("not found in %d calls", patient)
}

// The costs in the comment of Sockets, in CPU time, with 4,000 other sockets on the machine.
func BenchmarkSockets(b *testing.B) {
	const others = 2000 // connections, of two sockets each
	keep := make([]*net.TCPConn, 0, 2*others)
	for range others {
		client, server := pair(b, "127.0.0.1:0")
		keep = append(keep, client, server)
	}
	inodes, err := Inodes(os.Getpid())
	require.NoError(b, err)
	one, hundred := map[uint32]bool{}, map[uint32]bool{}
	for n := range inodes {
		if len(one) < 1 {
			one[n] = true
		}
		if len(hundred) < 100 {
			hundred[n] = true
		}
	}
	remote := keep[0].RemoteAddr().(*net.TCPAddr).AddrPort()
	for _, c := range []struct {
		name string
		f    Filter
	}{{"one", Filter{Inodes: one}}, {"hundred", Filter{Inodes: hundred}}, {"all", Filter{}}, {"remote", Filter{Remote: remote}}} {
		b.Run(c.name, func(b *testing.B) {
			r := openReader(b)
			var all []Socket
			var traces Traces
			b.ReportAllocs()
			cpu := burn.Process()
			for i := 0; b.Loop(); i++ {
				all, err = r.Sockets(c.f, all[:0])
				require.NoError(b, err)
				traces.Add(time.Duration(i)*time.Second, all)
			}
			cpu = burn.Process() - cpu // the time on the clock is that of a busy machine
			b.ReportMetric(float64(cpu.Nanoseconds())/float64(b.N), "cpu-ns/op")
			b.ReportMetric(float64(cpu.Nanoseconds())/float64(b.N)/float64(max(1, len(all))), "cpu-ns/socket")
			b.ReportMetric(float64(len(all)), "sockets")
		})
	}
}
