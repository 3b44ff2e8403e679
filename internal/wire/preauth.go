package wire

import (
	"crypto/tls"
	"errors"
	"net"
	"net/netip"
	"slices"
	"sync"
	"syscall"
	"time"
)

// mostWaiting is the number of connections that may wait at a preAuthLimiter.
const mostWaiting = 4096

// A preAuthLimiter is a listener that limits the connections that have not presented a token, and those of one
// address (IPv6: of one /64 network) to half of that. The others wait, and addresses take turns: a client that
// opens ten thousand connections does not exclude others.
type preAuthLimiter struct {
	net.Listener
	places int
	once   sync.Once
	in     chan net.Conn

	mu      sync.Mutex
	inside  map[netip.Prefix]int
	all     int
	waiting map[netip.Prefix][]*visitor
	turns   []netip.Prefix // addresses with waiting connections, the next one first
	held    int            // connections that wait
	err     error          // of the listener, after its end
}

func newPreAuthLimiter(l net.Listener, places int) *preAuthLimiter {
	return &preAuthLimiter{Listener: l, places: places, in: make(chan net.Conn, places), inside: map[netip.Prefix]int{},
		waiting: map[netip.Prefix][]*visitor{}}
}

// Accept implements net.Listener.
func (t *preAuthLimiter) Accept() (net.Conn, error) {
	t.once.Do(func() { go t.run() })
	if c, ok := <-t.in; ok {
		return c, nil
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	return nil, t.err
}

// run accepts connections until the listener is closed.
func (t *preAuthLimiter) run() {
	for {
		c, err := t.Listener.Accept()
		if errors.Is(err, syscall.EMFILE) || errors.Is(err, syscall.ENFILE) || errors.Is(err, syscall.ECONNABORTED) {
			time.Sleep(20 * time.Millisecond) // others will have closed some
			continue
		}
		t.mu.Lock()
		if err != nil {
			t.err = err
			for _, all := range t.waiting {
				for _, v := range all {
					_ = v.Conn.Close()
				}
			}
			t.waiting, t.turns = nil, nil
			close(t.in)
			t.mu.Unlock()
			return
		}
		v := &visitor{Conn: c, of: t, from: prefixOf(c.RemoteAddr()), since: time.Now()}
		if t.waiting[v.from] == nil {
			t.turns = append(t.turns, v.from)
		}
		t.waiting[v.from] = append(t.waiting[v.from], v)
		t.held++
		t.admit()
		if t.held > mostWaiting {
			t.turnAway()
		}
		t.mu.Unlock()
	}
}

// admit hands over waiting connections while there are places. t is locked.
func (t *preAuthLimiter) admit() {
	for t.all < t.places {
		i := slices.IndexFunc(t.turns, func(p netip.Prefix) bool { return t.inside[p] < max(1, t.places/2) })
		if i < 0 {
			return
		}
		from := t.turns[i]
		v := t.waiting[from][0]
		t.turns = slices.Delete(t.turns, i, i+1)
		if t.waiting[from] = t.waiting[from][1:]; len(t.waiting[from]) == 0 {
			delete(t.waiting, from)
		} else {
			t.turns = append(t.turns, from)
		}
		t.held--
		if time.Since(v.since) > 6*patience { // the client has given up by now
			_ = v.Conn.Close()
			continue
		}
		t.inside[from]++
		t.all++
		v.out = time.AfterFunc(patience, func() { _ = v.Close() })
		t.in <- v // there is a place for each
	}
}

// turnAway closes the latest connection of the address with the most waiting ones. t is locked.
func (t *preAuthLimiter) turnAway() {
	most := slices.MaxFunc(t.turns, func(a, b netip.Prefix) int { return len(t.waiting[a]) - len(t.waiting[b]) })
	last := len(t.waiting[most]) - 1
	_ = t.waiting[most][last].Conn.Close()
	t.held--
	if t.waiting[most] = t.waiting[most][:last]; last == 0 {
		delete(t.waiting, most)
		t.turns = slices.DeleteFunc(t.turns, func(p netip.Prefix) bool { return p == most })
	}
}

// left frees a place.
func (t *preAuthLimiter) left(from netip.Prefix) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.all--
	if t.inside[from]--; t.inside[from] == 0 {
		delete(t.inside, from)
	}
	if t.err == nil {
		t.admit()
	}
}

// prefixOf returns the network that counts as one address.
func prefixOf(a net.Addr) netip.Prefix {
	at, ok := a.(*net.TCPAddr)
	if !ok {
		return netip.Prefix{}
	}
	ip := at.AddrPort().Addr().Unmap().WithZone("")
	bits := 32
	if ip.Is6() {
		bits = 64
	}
	p, _ := ip.Prefix(bits) // of an address it always is one
	return p
}

// A visitor is a connection. Until a token was presented it occupies a place, and it is closed after patience.
type visitor struct {
	net.Conn
	of    *preAuthLimiter
	from  netip.Prefix
	since time.Time
	once  sync.Once
	out   *time.Timer // closes it; set when it is admitted
}

// known is called after a token was presented.
func (v *visitor) known() {
	v.once.Do(func() {
		v.out.Stop()
		v.of.left(v.from)
	})
}

// Close implements net.Conn.
func (v *visitor) Close() error {
	v.known()
	return v.Conn.Close()
}

type visitorKey struct{}

func visitorOf(c net.Conn) *visitor {
	if secure, ok := c.(*tls.Conn); ok {
		c = secure.NetConn()
	}
	v, _ := c.(*visitor)
	return v
}
