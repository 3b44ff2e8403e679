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

// gates are what passes connections on to services that a site has no route
// to: those that listen on the loopback only, and those on other machines.
type gates struct {
	outside Dial // where there is no service within; nil: nothing

	mu  sync.Mutex
	all map[string]*gate
}

// A gate passes the connections to one address on to another.
type gate struct {
	listener net.Listener
	to       string
	outside  Dial
	ctx      context.Context
	stop     context.CancelFunc
	group    sync.WaitGroup
}

// mostGates is more servers than any service has that redirects to them.
const mostGates = 1000

// open returns the address of the gate at here that leads to address.
func (g *gates) open(ctx context.Context, here, address string) (string, error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if old := g.all[address]; old != nil {
		return old.listener.Addr().String(), nil
	}
	if len(g.all) >= mostGates {
		return "", fmt.Errorf("more than %d servers are to be reached over the links", mostGates)
	}
	l, err := (&net.ListenConfig{}).Listen(ctx, "tcp4", net.JoinHostPort(here, "0"))
	if err != nil {
		return "", err
	}
	n := &gate{listener: l, to: address, outside: g.outside}
	n.ctx, n.stop = context.WithCancel(context.WithoutCancel(ctx))
	n.group.Go(n.accept)
	if g.all == nil {
		g.all = map[string]*gate{}
	}
	g.all[address] = n
	return l.Addr().String(), nil
}

// close closes all gates and the connections through them.
func (g *gates) close() error {
	g.mu.Lock()
	defer g.mu.Unlock()
	var err error
	for _, n := range g.all {
		n.stop()
		err = errors.Join(err, n.listener.Close())
		n.group.Wait()
	}
	g.all = nil
	return err
}

func (n *gate) accept() {
	for {
		c, err := n.listener.Accept()
		if errors.Is(err, syscall.EMFILE) || errors.Is(err, syscall.ENFILE) { // clients wait in the queue until others leave
			select {
			case <-time.After(100 * time.Millisecond):
				continue
			case <-n.ctx.Done():
			}
		}
		if err != nil {
			return // it was closed
		}
		n.group.Go(func() { n.pass(c.(*net.TCPConn)) })
	}
}

// pass copies both ways until both have ended, or one has failed.
func (n *gate) pass(c *net.TCPConn) {
	defer c.Close()
	s, err := n.dial()
	if err != nil {
		_ = c.SetLinger(0) // so that the client sees that it was refused
		return
	}
	defer s.Close()
	stop := context.AfterFunc(n.ctx, func() { _, _ = c.Close(), s.Close() })
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

// dial connects to the service, first as this process can, then as Outside
// can.
func (n *gate) dial() (*net.TCPConn, error) {
	c, err := (&net.Dialer{}).DialContext(n.ctx, "tcp", n.to)
	switch {
	case err == nil:
		return c.(*net.TCPConn), nil
	case n.outside == nil:
		return nil, err
	}
	return n.outside(n.ctx, n.to)
}
