package chaos

import (
	"context"
	"errors"
	"io"
	"math/rand/v2"
	"net"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"weir/internal/require"
)

// A way is the network to the endpoint of a site, which delays, stalls, cuts and changes data.
type way struct {
	listener net.Listener
	to       string
	tally    *tally
	calm     atomic.Bool
	flipping float64 // probability, of each piece of some size
	wait     sync.WaitGroup

	mu    sync.Mutex
	rand  *rand.Rand
	conns map[net.Conn]bool
	down  time.Time // refuses until then
	held  time.Time // nothing passes until then
}

func newWay(t *testing.T, to string, seed uint64, n *tally) *way {
	t.Helper()
	l, err := new(net.ListenConfig).Listen(t.Context(), "tcp", "127.0.0.1:0")
	require.NoError(t, err)
	w := &way{listener: l, to: to, tally: n, rand: rand.New(rand.NewPCG(seed, 2)), conns: map[net.Conn]bool{}, flipping: 0.01}
	w.wait.Go(w.accept)
	t.Cleanup(func() {
		_ = l.Close()
		w.cut(0)
		w.wait.Wait()
	})
	return w
}

func (w *way) url() string { return "http://" + w.listener.Addr().String() }

func (w *way) accept() {
	for {
		c, err := w.listener.Accept()
		if err != nil {
			return
		}
		w.wait.Go(func() { w.carry(c) })
	}
}

func (w *way) carry(in net.Conn) {
	defer in.Close()
	w.mu.Lock()
	down := time.Now().Before(w.down)
	w.mu.Unlock()
	if down {
		return
	}
	out, err := new(net.Dialer).DialContext(context.Background(), "tcp", w.to)
	if err != nil {
		return
	}
	defer out.Close()
	w.mu.Lock()
	w.conns[in], w.conns[out] = true, true
	w.mu.Unlock()
	var back sync.WaitGroup
	back.Go(func() { w.pump(in, out) })
	w.pump(out, in)
	back.Wait()
	w.mu.Lock()
	delete(w.conns, in)
	delete(w.conns, out)
	w.mu.Unlock()
}

// payload is the size from which on a piece ends in a file's bytes, not in a header. No header is
// so long, and no client sends a request before the response to the previous request.
const payload = 4096

// pump forwards the data that one end sends to the other.
func (w *way) pump(to, from net.Conn) {
	defer to.(*net.TCPConn).CloseWrite()
	buf := make([]byte, 32<<10)
	for {
		n, err := from.Read(buf)
		if n > 0 {
			w.trouble(buf[:n])
			if _, err := to.Write(buf[:n]); err != nil {
				_ = from.Close()
				return
			}
		}
		if err != nil {
			if !errors.Is(err, io.EOF) {
				_ = to.Close()
			}
			return
		}
	}
}

// trouble delays a piece, and changes some pieces.
func (w *way) trouble(p []byte) {
	w.mu.Lock()
	held := time.Until(w.held)
	delay := time.Duration(w.rand.IntN(3000)) * time.Microsecond
	flip := len(p) >= payload && w.rand.Float64() < w.flipping
	bit := w.rand.IntN(8)
	w.mu.Unlock()
	if w.calm.Load() {
		return
	}
	if flip {
		p[len(p)-1] ^= 1 << bit
		w.tally.flips.Add(1)
	}
	time.Sleep(max(delay, held))
}

// cut ends all connections, and refuses new connections for a while.
func (w *way) cut(d time.Duration) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.down = time.Now().Add(d)
	for c := range w.conns {
		_ = c.(*net.TCPConn).SetLinger(0) // a reset, not an end
		_ = c.Close()
	}
}

// hold stalls all data for a while.
func (w *way) hold(d time.Duration) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.held = time.Now().Add(d)
}

// peace ends all faults.
func (w *way) peace() {
	w.calm.Store(true)
	w.mu.Lock()
	defer w.mu.Unlock()
	w.down, w.held = time.Time{}, time.Time{}
}
