package emulator

import (
	"context"
	"errors"
	"io"
	"net"
	"net/netip"
	"os/exec"
	"sync"
	"time"

	"weir/link"
)

// A proxyLine is a link or a trunk of the way Proxy.
type proxyLine struct {
	name   string
	wires  [2]*wire
	movers sync.WaitGroup // the wires

	mu  sync.Mutex
	now setting
}

// A proxyLink is a link of the way Proxy, with the listeners at its far end.
type proxyLink struct {
	*proxyLine
	trunk *proxyLine // nil: it leads to the service
	listeners
	forwards *forwards
}

func newProxyLine(base time.Time, l link.Named, seed uint64) *proxyLine {
	p := &proxyLine{name: l.Name, now: setting{Spec: l.Spec}}
	for k, params := range p.now.both() {
		p.wires[k] = newWire(base, params, seed+uint64(k))
		p.movers.Go(p.wires[k].run)
	}
	return p
}

func newProxies(links []link.Named, o Options) (*Network, error) {
	ctx, cancel := context.WithCancel(context.Background())
	n := &Network{fail: func() error { return nil }}
	var all []*proxyLine
	var sites []*proxyLink
	var looker sync.WaitGroup
	n.close = func() error {
		cancel()
		for _, p := range all {
			p.hurry()
		}
		var err error
		for _, p := range sites {
			err = errors.Join(err, p.close(), p.forwards.close())
			p.wait()
			p.forwards.wait()
		}
		for _, p := range all {
			p.end()
		}
		looker.Wait()
		return err
	}
	base := time.Now()
	trunks := map[string]*proxyLine{}
	for i, l := range link.Trunks(links) {
		p := newProxyLine(base, l, o.Seed+2*uint64(len(links)-1-i))
		all, trunks[l.Name] = append(all, p), p
		n.Trunks = append(n.Trunks, &Line{Name: l.Name, now: p.now, apply: p.change})
	}
	for i, l := range link.Sites(links) {
		p := &proxyLink{
			proxyLine: newProxyLine(base, l, o.Seed+2*uint64(i)), trunk: trunks[l.Spec.Trunk],
			listeners: listeners{ctx: ctx, listen: at("127.0.0.1")},
		}
		p.serve = p.carry
		p.forwards = newForwards(ctx, o.OutsideListen, p.carry)
		all, sites = append(all, p.proxyLine), append(sites, p)
		n.Sites = append(n.Sites, &Site{Line: Line{Name: l.Name, now: p.now, apply: p.change}, over: p})
	}
	if o.Take != nil {
		looker.Go(func() {
			eachSecond(ctx.Done(), func(now time.Time, span time.Duration) {
				for _, p := range all {
					o.Take(p.sample(now, span))
				}
			})
		})
	}
	return n, nil
}

func (p *proxyLine) sample(now time.Time, span time.Duration) *Sample {
	p.mu.Lock()
	s := p.now
	p.mu.Unlock()
	return s.sample(p.name, now, span, func(way int) link.Traffic { return p.wires[way].look(int64(span)).traffic() })
}

func (p *proxyLine) change(s setting) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.now = s
	for i, params := range s.both() {
		p.wires[i].set(params)
	}
	return nil
}

// hurry has nothing wait any more.
func (p *proxyLine) hurry() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.now.Down = false
	for i, params := range p.now.both() {
		p.wires[i].over.Store(true)
		p.wires[i].set(params)
	}
}

// end ends the wires, on which nothing is sent any more.
func (p *proxyLine) end() {
	for _, w := range p.wires {
		close(w.chunks)
	}
	p.movers.Wait()
}

func (p *proxyLine) rtt() time.Duration {
	if p == nil {
		return 0
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	return time.Duration(p.now.Spec.RTT)
}

// hops are the wires that one way of a connection passes, in their order.
func (p *proxyLink) hops(way int) []*wire {
	switch {
	case p.trunk == nil:
		return []*wire{p.wires[way]}
	case way == toClients:
		return []*wire{p.trunk.wires[way], p.wires[way]}
	}
	return []*wire{p.wires[way], p.trunk.wires[way]}
}

func (p *proxyLink) start(cmd *exec.Cmd) error { return cmd.Start() }

func (p *proxyLink) reach(ctx context.Context, address string) (string, error) {
	return p.open(ctx, address)
}

func (p *proxyLink) forward(ctx context.Context, address string, from netip.Addr) (uint16, error) {
	return p.forwards.forward(ctx, address, from)
}

// carry is the life of one connection.
func (p *proxyLink) carry(c *net.TCPConn, to string) {
	defer c.Close()
	born := time.Now()
	rtt := p.rtt() + p.trunk.rtt()
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
	both.Go(func() { p.pass(p.hops(fromClients), c, s, born.Add(rtt)) })
	both.Go(func() { p.pass(p.hops(toClients), s, c, born.Add(rtt/2)) })
	both.Wait()
}

// window is how many chunks of one connection may be under way each way.
const window = 1024

// pass passes on what one side sends, not before the time at which a connection over the link would be up.
func (p *proxyLink) pass(hops []*wire, from, to *net.TCPConn, up time.Time) {
	w := hops[0]
	arrived := make(chan chunk, window+1)
	room := make(chan struct{}, window)
	var others sync.WaitGroup
	last := arrived
	for _, next := range hops[1:] {
		come, on := last, make(chan chunk, window+1)
		others.Go(func() {
			for c := range come {
				if next.send(c.bytes, c.at, on); c.bytes == nil {
					return
				}
			}
		})
		last = on
	}
	others.Go(func() {
		broken := false
		for c := range last {
			if c.bytes == nil {
				_ = to.CloseWrite() // the other side ends as well, or has ended
				return
			}
			if _, err := to.Write(c.bytes); err != nil && !broken {
				broken = true
				_, _ = from.SetLinger(0), from.Close()
			}
			w.done(c.bytes)
			<-room
		}
	})
	for ready := int64(-1); ; {
		size := mostOfPiece
		for _, hop := range hops {
			size = min(size, hop.piece())
		}
		b, asked := w.buffer(size), w.now()
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
	others.Wait()
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
