package cluster

import (
	"context"
	"io"
	"net"
	"net/url"
	"strings"
	"sync"
	"testing"

	"weir/internal/require"
	"weir/loadtest/measure"
)

// A relay forwards connections to a server. While it is cut, it forwards nothing in either
// direction and closes no connection.
type relay struct {
	to   string
	l    net.Listener
	mu   sync.Mutex
	cond *sync.Cond
	off  bool
	end  bool
	wg   sync.WaitGroup
}

// between returns a relay to the server of the pass p, and the pass with which a worker connects
// through it.
func between(t *testing.T, p Pass) (*relay, Pass) {
	t.Helper()
	u, err := url.Parse(p.URLs[0])
	require.NoError(t, err)
	l, err := new(net.ListenConfig).Listen(t.Context(), "tcp", "127.0.0.1:0")
	require.NoError(t, err)
	r := &relay{to: u.Host, l: l}
	r.cond = sync.NewCond(&r.mu)
	r.wg.Go(r.accept)
	t.Cleanup(func() {
		r.set(func() { r.end, r.off = true, false })
		_ = l.Close()
		r.wg.Wait()
	})
	p.URLs = []string{"https://" + l.Addr().String()}
	return r, p
}

func (r *relay) set(f func()) {
	r.mu.Lock()
	f()
	r.mu.Unlock()
	r.cond.Broadcast()
}

func (r *relay) cut()  { r.set(func() { r.off = true }) }
func (r *relay) mend() { r.set(func() { r.off = false }) }

// pass waits until data may pass; it returns false if the relay has ended.
func (r *relay) pass() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	for r.off {
		r.cond.Wait()
	}
	return !r.end
}

func (r *relay) accept() {
	for {
		c, err := r.l.Accept()
		if err != nil {
			return
		}
		r.wg.Go(func() {
			defer c.Close()
			if !r.pass() {
				return
			}
			s, err := new(net.Dialer).DialContext(context.Background(), "tcp", r.to)
			if err != nil {
				return
			}
			defer s.Close()
			var both sync.WaitGroup
			for _, way := range [][2]net.Conn{{c, s}, {s, c}} {
				both.Go(func() {
					defer way[1].Close()
					defer way[0].Close()
					_, _ = io.Copy(gated{r, way[1]}, way[0])
				})
			}
			both.Wait()
		})
	}
}

type gated struct {
	r *relay
	w io.Writer
}

func (g gated) Write(b []byte) (int, error) {
	if !g.r.pass() {
		return 0, io.ErrClosedPipe
	}
	return g.w.Write(b)
}

func (n *notes) count(kind measure.EventKind, text string) (many int) {
	n.mu.Lock()
	defer n.mu.Unlock()
	for _, e := range n.events {
		if e.Kind == kind && strings.Contains(e.Text, text) {
			many++
		}
	}
	return many
}
