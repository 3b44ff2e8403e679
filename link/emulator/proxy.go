package emulator

import (
	"context"
	"errors"
	"io"
	"net"
	"os/exec"
	"sync"
	"time"

	"weir/link"
)

// A proxyLink is a link of the way Proxy.
type proxyLink struct {
	ctx   context.Context
	wires [2]*wire

	mu        sync.Mutex
	now       setting
	listeners map[string]net.Listener // by the address that they lead to
	closed    bool
	group     sync.WaitGroup // listeners and connections
	movers    sync.WaitGroup // the wires
}

func newProxies(links []link.Named, o Options) (*Network, error) {
	ctx, cancel := context.WithCancel(context.Background())
	n := &Network{fail: func() error { return nil }}
	var all []*proxyLink
	var looker sync.WaitGroup
	n.close = func() error {
		cancel()
		var err error
		for _, p := range all {
			err = errors.Join(err, p.close())
		}
		looker.Wait()
		return err
	}
	for i, l := range links {
		p := &proxyLink{ctx: ctx, now: setting{Spec: l.Spec}, listeners: map[string]net.Listener{}}
		for k, params := range p.now.both() {
			p.wires[k] = newWire(params, o.Seed+uint64(2*i+k))
			p.movers.Go(p.wires[k].run)
		}
		all = append(all, p)
		n.Sites = append(n.Sites, &Site{Name: l.Name, now: p.now, over: p})
	}
	if o.Take != nil {
		looker.Go(func() {
			eachSecond(ctx.Done(), func(now time.Time, span time.Duration) {
				for i, p := range all {
					o.Take(p.sample(links[i].Name, now, span))
				}
			})
		})
	}
	return n, nil
}

func (p *proxyLink) sample(name string, now time.Time, span time.Duration) *Sample {
	p.mu.Lock()
	s := p.now
	p.mu.Unlock()
	out := &Sample{Time: now, Seconds: span.Seconds(), Link: name, Rate: s.Spec.Rate, Up: s.Spec.FromClients(), Down: s.Down}
	for i, to := range []*link.Traffic{&out.ToClients, &out.FromClients} {
		t := p.wires[i].look(int64(span))
		*to = t.Traffic
		to.Wait, to.Late = t.wait.quantiles(), t.late.quantiles()
	}
	return out
}

func (p *proxyLink) start(cmd *exec.Cmd) error { return cmd.Start() }

func (p *proxyLink) change(s setting) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.now = s
	for i, params := range s.both() {
		p.wires[i].set(params)
	}
	return nil
}

func (p *proxyLink) reach(ctx context.Context, address string) (string, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.closed {
		return "", net.ErrClosed
	}
	if l := p.listeners[address]; l != nil {
		return l.Addr().String(), nil
	}
	l, err := (&net.ListenConfig{}).Listen(ctx, "tcp", "127.0.0.1:0")
	if err != nil {
		return "", err
	}
	p.listeners[address] = l
	p.group.Go(func() { p.accept(l, address) })
	return l.Addr().String(), nil
}

// close ends all connections at once; what is under way is lost.
func (p *proxyLink) close() error {
	p.mu.Lock()
	p.closed = true
	p.now.Down = false
	for i, params := range p.now.both() {
		p.wires[i].over.Store(true)
		p.wires[i].set(params)
	}
	var err error
	for _, l := range p.listeners {
		err = errors.Join(err, l.Close())
	}
	p.mu.Unlock()
	p.group.Wait()
	for _, w := range p.wires {
		close(w.chunks)
	}
	p.movers.Wait()
	return err
}

func (p *proxyLink) accept(l net.Listener, to string) {
	for {
		c, err := l.Accept()
		if err != nil {
			return // it was closed
		}
		p.group.Go(func() { p.serve(c.(*net.TCPConn), to) })
	}
}

// serve is the life of one connection.
func (p *proxyLink) serve(c *net.TCPConn, to string) {
	defer c.Close()
	born := time.Now()
	p.mu.Lock()
	rtt := time.Duration(p.now.Spec.RTT)
	p.mu.Unlock()
	there, err := (&net.Dialer{}).DialContext(p.ctx, "tcp", to)
	if err != nil {
		_ = c.SetLinger(0) // so that the client sees that it was refused
		return
	}
	s := there.(*net.TCPConn)
	defer s.Close()
	stop := context.AfterFunc(p.ctx, func() { _, _ = c.Close(), s.Close() })
	defer stop()
	var both sync.WaitGroup
	both.Go(func() { p.pass(p.wires[fromClients], c, s, born.Add(rtt)) })
	both.Go(func() { p.pass(p.wires[toClients], s, c, born.Add(rtt/2)) })
	both.Wait()
}

// window is how many chunks of one connection may be under way each way.
const window = 1024

// pass passes on what one side sends, not before the time at which a
// connection over the link would be up.
func (p *proxyLink) pass(w *wire, from, to *net.TCPConn, up time.Time) {
	arrived := make(chan []byte, window+1)
	room := make(chan struct{}, window)
	var writer sync.WaitGroup
	writer.Go(func() {
		broken := false
		for b := range arrived {
			if b == nil {
				_ = to.CloseWrite() // the other side ends, too, or has ended
				return
			}
			if _, err := to.Write(b); err != nil && !broken {
				broken = true
				_, _ = from.SetLinger(0), from.Close()
			}
			w.done(b)
			<-room
		}
	})
	for ready := int64(-1); ; {
		b, asked := w.buffer(), w.now()
		n, err := from.Read(b)
		if ready < 0 {
			p.until(up)
		}
		if got := w.now(); ready < 0 || got-asked > atOnce {
			ready = got
		}
		if n > 0 {
			room <- struct{}{}
			ready = w.send(b[:n], ready, arrived)
		}
		if err != nil {
			if !errors.Is(err, io.EOF) {
				_, _ = to.SetLinger(0), to.Close()
			}
			w.send(nil, ready, arrived)
			break
		}
	}
	writer.Wait()
}

// until waits for a time, or the end of the link.
func (p *proxyLink) until(t time.Time) {
	if d := time.Until(t); d > 0 {
		select {
		case <-time.After(d):
		case <-p.ctx.Done():
		}
	}
}
