// Package preauth limits the connections of a server that have not presented credentials yet.
package preauth

import (
	"errors"
	"net"
	"net/netip"
	"slices"
	"sync"
	"syscall"
	"time"
)

// Patience is the time after which a connection is closed that has not presented credentials.
const Patience = 10 * time.Second

// A Limiter is a listener that limits the number of connections that have not presented
// credentials. One address (IPv6: one /64 network) may have at most half of that number. The others
// wait in a queue that serves addresses in turn: a client that opens ten thousand connections does
// not exclude others.
type Limiter struct {
	net.Listener
	slots, places int // connections without credentials, and connections that wait
	once          sync.Once
	in            chan net.Conn

	mu       sync.Mutex
	admitted map[netip.Prefix]int
	total    int
	waiting  map[netip.Prefix][]*Conn
	queue    []netip.Prefix // addresses with waiting connections, the next one first
	queued   int            // connections that wait
	err      error          // of the listener, after its end
}

// Limit returns a Limiter of the connections of l: slots of them without credentials, and places of them that wait for a slot. Closing it
// closes l.
func Limit(l net.Listener, slots, places int) *Limiter {
	return &Limiter{Listener: l, slots: slots, places: places, in: make(chan net.Conn, slots), admitted: map[netip.Prefix]int{},
		waiting: map[netip.Prefix][]*Conn{}}
}

// Accept implements net.Listener.
func (t *Limiter) Accept() (net.Conn, error) {
	t.once.Do(func() { go t.run() })
	if c, ok := <-t.in; ok {
		return c, nil
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	return nil, t.err
}

// run accepts connections until the listener is closed.
func (t *Limiter) run() {
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
			t.waiting, t.queue = nil, nil
			close(t.in)
			t.mu.Unlock()
			return
		}
		v := &Conn{Conn: c, limiter: t, from: prefixOf(c.RemoteAddr()), since: time.Now()}
		if t.waiting[v.from] == nil {
			t.queue = append(t.queue, v.from)
		}
		t.waiting[v.from] = append(t.waiting[v.from], v)
		t.queued++
		t.admit()
		if t.queued > t.places {
			t.closeNewest()
		}
		t.mu.Unlock()
	}
}

// admit hands over waiting connections while there are free slots. t is locked.
func (t *Limiter) admit() {
	for t.total < t.slots {
		i := slices.IndexFunc(t.queue, func(p netip.Prefix) bool { return t.admitted[p] < max(1, t.slots/2) })
		if i < 0 {
			return
		}
		from := t.queue[i]
		v := t.waiting[from][0]
		t.queue = slices.Delete(t.queue, i, i+1)
		if t.waiting[from] = t.waiting[from][1:]; len(t.waiting[from]) == 0 {
			delete(t.waiting, from)
		} else {
			t.queue = append(t.queue, from)
		}
		t.queued--
		if time.Since(v.since) > 6*Patience { // the client has given up by now
			_ = v.Conn.Close()
			continue
		}
		t.admitted[from]++
		t.total++
		v.timeout = time.AfterFunc(Patience, func() { _ = v.Close() })
		t.in <- v // there is a place for each
	}
}

// closeNewest closes the latest connection of the address with the most waiting connections. t is
// locked.
func (t *Limiter) closeNewest() {
	most := slices.MaxFunc(t.queue, func(a, b netip.Prefix) int { return len(t.waiting[a]) - len(t.waiting[b]) })
	last := len(t.waiting[most]) - 1
	_ = t.waiting[most][last].Conn.Close()
	t.queued--
	if t.waiting[most] = t.waiting[most][:last]; last == 0 {
		delete(t.waiting, most)
		t.queue = slices.DeleteFunc(t.queue, func(p netip.Prefix) bool { return p == most })
	}
}

// release frees a slot.
func (t *Limiter) release(from netip.Prefix) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.total--
	if t.admitted[from]--; t.admitted[from] == 0 {
		delete(t.admitted, from)
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

// A Conn is a connection of a Limiter. It occupies a slot until credentials were presented, and is closed after Patience.
type Conn struct {
	net.Conn
	limiter *Limiter
	from    netip.Prefix
	since   time.Time
	once    sync.Once
	timeout *time.Timer // closes it; set when it is admitted
}

// Authenticated frees the slot. It is called when credentials were presented, once or more.
func (v *Conn) Authenticated() {
	v.once.Do(func() {
		v.timeout.Stop()
		v.limiter.release(v.from)
	})
}

// Close implements net.Conn.
func (v *Conn) Close() error {
	v.Authenticated()
	return v.Conn.Close()
}

// SyscallConn implements syscall.Conn, so that the kernel can send files.
func (v *Conn) SyscallConn() (syscall.RawConn, error) {
	c, ok := v.Conn.(syscall.Conn)
	if !ok {
		return nil, errors.ErrUnsupported
	}
	return c.SyscallConn()
}

// CloseWrite lets a server end an answer before it closes the connection.
func (v *Conn) CloseWrite() error {
	if c, ok := v.Conn.(interface{ CloseWrite() error }); ok {
		return c.CloseWrite()
	}
	return nil
}
