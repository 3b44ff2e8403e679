package emulator

import (
	"context"
	"errors"
	"io"
	"net"
	"net/netip"
	"sync"
	"sync/atomic"
	"syscall"
	"time"
)

// listeners take connections for services: one listener for each service.
type listeners struct {
	ctx    context.Context
	serve  func(c *net.TCPConn, to string)                 // the life of a connection; it closes c
	listen func(ctx context.Context) (net.Listener, error) // makes one

	mu     sync.Mutex
	all    map[string]*listener // by the address that they lead to
	closed bool
	group  sync.WaitGroup // listeners and connections
}

// A listener leads to one address.
type listener struct {
	net.Listener
	used atomic.Int64 // seconds; time of the last request for it or connection to it
}

func (n *listener) use() { n.used.Store(time.Now().Unix()) }

// fewServers is more servers than any service has that redirects to them. If there are more, as
// with a port for each data connection, listeners that were not used for a while are closed.
const (
	fewServers = 1000
	unused     = 2 * time.Minute
)

// at listens at any port of an IPv4 address.
func at(host string) func(ctx context.Context) (net.Listener, error) {
	return func(ctx context.Context) (net.Listener, error) {
		return (&net.ListenConfig{}).Listen(ctx, "tcp4", net.JoinHostPort(host, "0"))
	}
}

// listenAnywhere listens at any port of all addresses of this machine.
func listenAnywhere(ctx context.Context) (net.Listener, error) {
	return (&net.ListenConfig{}).Listen(ctx, "tcp", ":0")
}

// open returns the address of the listener that leads to address.
func (l *listeners) open(ctx context.Context, address string) (string, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	switch old := l.all[address]; {
	case l.closed:
		return "", net.ErrClosed
	case old != nil:
		old.use()
		return old.Addr().String(), nil
	case len(l.all) >= fewServers:
		l.tidy(time.Now().Add(-unused).Unix())
	}
	made, err := l.listen(ctx)
	if err != nil {
		return "", err
	}
	if l.all == nil {
		l.all = map[string]*listener{}
	}
	n := &listener{Listener: made}
	n.use()
	l.all[address] = n
	l.group.Go(func() { l.accept(n, address) })
	return n.Addr().String(), nil
}

// tidy closes listeners that have been unused since before; their connections stay.
func (l *listeners) tidy(before int64) {
	for address, n := range l.all {
		if n.used.Load() < before {
			_ = n.Close() // clients that still need it request it again
			delete(l.all, address)
		}
	}
}

// close closes all listeners. The connections end with ctx; wait waits for them.
func (l *listeners) close() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.closed = true
	var err error
	for _, n := range l.all {
		err = errors.Join(err, n.Close())
	}
	l.all = nil
	return err
}

func (l *listeners) wait() { l.group.Wait() }

func (l *listeners) accept(n *listener, to string) {
	for {
		c, err := n.Accept()
		if errors.Is(err, syscall.EMFILE) || errors.Is(err, syscall.ENFILE) { // clients wait in the queue until others leave
			select {
			case <-time.After(100 * time.Millisecond):
				continue
			case <-l.ctx.Done():
			}
		}
		if err != nil {
			return // it was closed
		}
		n.use()
		l.group.Go(func() { l.serve(c.(*net.TCPConn), to) })
	}
}

// Gates pass connections on to services that a site has no route to: services that listen on the
// loopback only, and services on other machines.
type gates struct {
	listeners
	stop    context.CancelFunc
	outside Dial // for destinations that this process cannot reach; may be nil
}

func newGates(outside Dial) *gates {
	g := &gates{outside: outside}
	g.ctx, g.stop = context.WithCancel(context.Background())
	g.serve = g.pass
	return g
}

// close closes all gates and the connections through them.
func (g *gates) close() error {
	g.stop()
	err := g.listeners.close()
	g.wait()
	return err
}

// pass copies in the two directions until each has ended, or one has failed.
func (g *gates) pass(c *net.TCPConn, to string) {
	defer c.Close()
	s, err := g.dial(to)
	if err != nil {
		_ = c.SetLinger(0) // so that the client receives a refusal
		return
	}
	Join(g.ctx, c, s)
}

// Join copies between two connections in the two directions until each has ended, or one has failed,
// or ctx ends. It closes s; c belongs to the caller.
func Join(ctx context.Context, c, s *net.TCPConn) {
	defer s.Close()
	stop := context.AfterFunc(ctx, func() { _, _ = c.Close(), s.Close() })
	defer stop()
	var both sync.WaitGroup
	for _, way := range [...][2]*net.TCPConn{{c, s}, {s, c}} {
		both.Go(func() {
			if _, err := io.Copy(way[1], way[0]); err != nil { // splice(2): nothing is copied to here
				_, _ = c.SetLinger(0), s.SetLinger(0)
				_, _ = c.Close(), s.Close()
				return
			}
			_ = way[1].CloseWrite()
		})
	}
	both.Wait()
}

// dial connects to the service, from this process or else from outside.
func (g *gates) dial(to string) (*net.TCPConn, error) {
	c, err := (&net.Dialer{}).DialContext(g.ctx, "tcp", to)
	switch {
	case err == nil:
		return c.(*net.TCPConn), nil
	case g.outside == nil:
		return nil, err
	}
	return g.outside(g.ctx, to)
}

// Forwards accept connections of workers on other machines, or on this machine, and continue them
// over the link of a site, as if the workers were there. They accept only connections from
// addresses that forward was called with.
type forwards struct {
	listeners
	mu   sync.Mutex
	from map[netip.Addr]bool
}

// newForwards returns forwards that have carry pass connections on; outside listens for an isolated process, nil
// elsewhere.
func newForwards(ctx context.Context, outside func(context.Context) (net.Listener, error),
	carry func(c *net.TCPConn, to string)) *forwards {
	f := &forwards{from: map[netip.Addr]bool{}}
	if outside == nil {
		outside = listenAnywhere
	}
	f.listeners = listeners{ctx: ctx, listen: outside, serve: func(c *net.TCPConn, to string) {
		if !f.knows(c.RemoteAddr()) {
			_, _ = c.SetLinger(0), c.Close()
			return
		}
		_ = c.SetReadBuffer(forwardBuffer) // the bytes received from a client should not be far ahead of the bytes that the link has carried
		carry(c, to)
	}}
	return f
}

// forwardBuffer is the number of bytes of a connection that a forward reads ahead of the link.
const forwardBuffer = 128 << 10

func (f *forwards) knows(a net.Addr) bool {
	t, ok := a.(*net.TCPAddr)
	if !ok {
		return false
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.from[t.AddrPort().Addr().Unmap()]
}

// forward returns the port at which connections from an address are passed on to another.
func (f *forwards) forward(ctx context.Context, address string, from netip.Addr) (uint16, error) {
	f.mu.Lock()
	f.from[from.Unmap()] = true
	f.mu.Unlock()
	there, err := f.open(ctx, address)
	if err != nil {
		return 0, err
	}
	a, err := netip.ParseAddrPort(there)
	return a.Port(), err
}
