// Package relay stands between clients and a server on plain connections and counts, byte for byte,
// the requests of the clients: requests of the XRootD protocol and of HTTP/1 by their names.
//
// It reads and changes nothing, so a client behaves as it would without it, only slower. Encrypted
// connections cannot be parsed and are reported as such. A client that is redirected to another
// server leaves the relay.
package relay

import (
	"context"
	"errors"
	"io"
	"maps"
	"net"
	"sync"
	"time"
)

// Seen has the counts of a relay since the last call of Take.
type Seen struct {
	Connections int64            // made by clients
	Up, Down    int64            // bytes from the clients, and to them
	Requests    map[string]int64 // by name: "login", "page read", "GET"
	Opaque      int64            // connections that could not be followed to their end: encrypted, or another protocol
}

// A Relay accepts connections until it is closed. Its methods are safe for
// concurrent use.
type Relay struct {
	to       string
	listener net.Listener
	ctx      context.Context
	cancel   context.CancelFunc
	runs     sync.WaitGroup

	mu   sync.Mutex
	seen Seen
	open map[net.Conn]bool
}

// dialTimeout is the time limit for connecting to the server.
const dialTimeout = 10 * time.Second

// Listen starts a relay to the server at host:port on a free port of the loopback interface. The
// caller closes it.
func Listen(ctx context.Context, to string) (*Relay, error) {
	var lc net.ListenConfig
	l, err := lc.Listen(ctx, "tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	r := &Relay{to: to, listener: l, open: map[net.Conn]bool{}}
	r.ctx, r.cancel = context.WithCancel(ctx)
	r.runs.Go(r.accept)
	return r, nil
}

// Address returns host:port to which clients connect.
func (r *Relay) Address() string { return r.listener.Addr().String() }

// Take returns the counts since the last call, and begins anew.
func (r *Relay) Take() Seen {
	r.mu.Lock()
	defer r.mu.Unlock()
	s := r.seen
	r.seen = Seen{}
	return s
}

// Idle waits until no connection is open, or ctx ends: the last bytes of clients are still on their
// way when the clients have ended already.
func (r *Relay) Idle(ctx context.Context) {
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	for ctx.Err() == nil {
		r.mu.Lock()
		n := len(r.open)
		r.mu.Unlock()
		if n == 0 {
			return
		}
		select {
		case <-ctx.Done():
		case <-tick.C:
		}
	}
}

// Close ends all connections and waits for the end.
func (r *Relay) Close() error {
	r.cancel()
	err := r.listener.Close()
	r.mu.Lock()
	for c := range r.open {
		_ = c.Close()
	}
	r.mu.Unlock()
	r.runs.Wait()
	return err
}

func (r *Relay) accept() {
	for {
		c, err := r.listener.Accept()
		if err != nil {
			if errors.Is(err, net.ErrClosed) || r.ctx.Err() != nil {
				return
			}
			select { // out of files, perhaps: not for ever
			case <-time.After(10 * time.Millisecond):
			case <-r.ctx.Done():
			}
			continue
		}
		if r.keep(c) {
			r.runs.Go(func() { r.serve(c) })
		}
	}
}

// keep records a connection; it returns false if the relay is closed already.
func (r *Relay) keep(c net.Conn) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.ctx.Err() != nil {
		_ = c.Close()
		return false
	}
	r.open[c] = true
	return true
}

func (r *Relay) drop(c net.Conn) {
	_ = c.Close()
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.open, c)
}

func (r *Relay) serve(client net.Conn) {
	defer r.drop(client)
	r.count(func(s *Seen) { s.Connections++ })
	d := net.Dialer{Timeout: dialTimeout}
	server, err := d.DialContext(r.ctx, "tcp", r.to)
	if err != nil || !r.keep(server) {
		return
	}
	defer r.drop(server)
	p := &parser{}
	var both sync.WaitGroup
	both.Go(func() {
		r.copy(server, client, func(b []byte) {
			found := p.feed(b)
			r.count(func(s *Seen) {
				s.Up += int64(len(b))
				add(s, found)
			})
		})
	})
	both.Go(func() {
		r.copy(client, server, func(b []byte) { r.count(func(s *Seen) { s.Down += int64(len(b)) }) })
	})
	both.Wait()
	if p.lost {
		r.count(func(s *Seen) { s.Opaque++ })
	}
}

func add(s *Seen, found map[string]int64) {
	if s.Requests == nil && len(found) > 0 {
		s.Requests = map[string]int64{}
	}
	for name, n := range maps.All(found) {
		s.Requests[name] += n
	}
}

func (r *Relay) count(change func(*Seen)) {
	r.mu.Lock()
	defer r.mu.Unlock()
	change(&r.seen)
}

// copy forwards the bytes of one side, then its end.
func (*Relay) copy(to, from net.Conn, look func([]byte)) {
	buf := make([]byte, 64<<10)
	for {
		n, err := from.Read(buf)
		if n > 0 {
			look(buf[:n])
			if _, werr := to.Write(buf[:n]); werr != nil {
				_ = from.Close()
				return
			}
		}
		if err != nil {
			if t, ok := to.(*net.TCPConn); ok && errors.Is(err, io.EOF) {
				_ = t.CloseWrite()
			} else {
				_ = to.Close()
			}
			return
		}
	}
}
