package emulator

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"sync"
	"syscall"
	"time"
)

// listeners take connections for services: one listener for each service.
type listeners struct {
	ctx   context.Context
	serve func(c *net.TCPConn, to string) // the life of a connection; it closes c

	mu     sync.Mutex
	all    map[string]net.Listener // by the address that they lead to
	closed bool
	group  sync.WaitGroup // listeners and connections
}

// mostServers is more servers than any service has that redirects to them.
const mostServers = 1000

// open returns the address of the listener at host that leads to address.
func (l *listeners) open(ctx context.Context, host, address string) (string, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	switch old := l.all[address]; {
	case l.closed:
		return "", net.ErrClosed
	case old != nil:
		return old.Addr().String(), nil
	case len(l.all) >= mostServers:
		return "", fmt.Errorf("more than %d servers are to be reached over the links", mostServers)
	}
	n, err := (&net.ListenConfig{}).Listen(ctx, "tcp4", net.JoinHostPort(host, "0"))
	if err != nil {
		return "", err
	}
	if l.all == nil {
		l.all = map[string]net.Listener{}
	}
	l.all[address] = n
	l.group.Go(func() { l.accept(n, address) })
	return n.Addr().String(), nil
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

func (l *listeners) accept(n net.Listener, to string) {
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
		l.group.Go(func() { l.serve(c.(*net.TCPConn), to) })
	}
}

// Gates pass connections on to services that a site has no route to: those that listen on the loopback only, and
// those on other machines.
type gates struct {
	listeners
	stop    context.CancelFunc
	outside Dial // for what this process does not reach; nil: nothing
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

// pass copies both ways until both have ended, or one has failed.
func (g *gates) pass(c *net.TCPConn, to string) {
	defer c.Close()
	s, err := g.dial(to)
	if err != nil {
		_ = c.SetLinger(0) // so that the client sees that it was refused
		return
	}
	defer s.Close()
	stop := context.AfterFunc(g.ctx, func() { _, _ = c.Close(), s.Close() })
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
