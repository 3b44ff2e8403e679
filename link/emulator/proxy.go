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
	wires [2]*wire
	listeners
	movers sync.WaitGroup // the wires

	mu  sync.Mutex
	now setting
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
		p := &proxyLink{now: setting{Spec: l.Spec}, listeners: listeners{ctx: ctx}}
		p.listeners.serve = p.serve
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
	return s.sample(name, now, span, func(way int) link.Traffic { return p.wires[way].look(int64(span)).traffic() })
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
	return p.open(ctx, "127.0.0.1", address)
}

// close ends all connections at once; bytes on the way are lost.
func (p *proxyLink) close() error {
	p.mu.Lock()
	p.now.Down = false
	for i, params := range p.now.both() {
		p.wires[i].over.Store(true)
		p.wires[i].set(params)
	}
	p.mu.Unlock()
	err := p.listeners.close()
	p.wait()
	for _, w := range p.wires {
		close(w.chunks)
	}
	p.movers.Wait()
	return err
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

// pass passes on what one side sends, not before the time at which a connection over the link would be up.
func (p *proxyLink) pass(w *wire, from, to *net.TCPConn, up time.Time) {
	arrived := make(chan []byte, window+1)
	room := make(chan struct{}, window)
	var writer sync.WaitGroup
	writer.Go(func() {
		broken := false
		for b := range arrived {
			if b == nil {
				_ = to.CloseWrite() // the other side ends as well, or has ended
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
