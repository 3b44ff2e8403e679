package tcp

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"os/exec"
	"strings"
	"sync"
	"time"
)

// Lifetimes of cached responses of the resolver.
const (
	rememberAddresses = time.Minute
	rememberFailure   = time.Second // so that thousands of clients do not look up the same missing name at once
	lookupTimeout     = 10 * time.Second
)

// hosts remembers the addresses of names. For any number of clients, a name is looked up by one
// goroutine at a time.
type hosts struct {
	clock  *clock
	lookup func(ctx context.Context, network, host string) ([]netip.Addr, error)
	ctx    context.Context
	cancel context.CancelFunc
	wg     sync.WaitGroup
	mu     sync.Mutex
	names  map[string]*name
}

type name struct {
	ready   chan struct{} // closed when addrs and err are valid
	addrs   []netip.Addr
	err     error
	expires int64
	turn    int  // index at which the next client starts
	sticky  bool // stay with the address that worked: the addresses are one machine
}

func newHosts(c *clock) *hosts {
	ctx, cancel := context.WithCancel(context.Background())
	return &hosts{clock: c, ctx: ctx, cancel: cancel, lookup: lookup, names: map[string]*name{}}
}

// close stops lookups under way and waits for them.
func (h *hosts) close() {
	h.cancel()
	h.wg.Wait()
}

// of returns host's addresses and the index of the first address to try.
func (h *hosts) of(ctx context.Context, host string) ([]netip.Addr, int, error) {
	n := h.find(host)
	select {
	case <-n.ready:
	case <-ctx.Done():
		return nil, 0, fmt.Errorf("look up %s: %w", host, ctx.Err())
	}
	if n.err != nil {
		return nil, 0, n.err
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	turn := n.turn
	if !n.sticky {
		n.turn = (n.turn + 1) % len(n.addrs)
	}
	return n.addrs, turn, nil
}

// worked notes that address i of host responded.
func (h *hosts) worked(host string, i int) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if n := h.names[host]; n != nil && n.sticky {
		n.turn = i
	}
}

func (h *hosts) find(host string) *name {
	h.mu.Lock()
	defer h.mu.Unlock()
	n := h.names[host]
	if n != nil && (n.expires == 0 || h.clock.now() < n.expires) {
		return n
	}
	n = &name{ready: make(chan struct{})}
	h.names[host] = n
	if addrs := known(host); addrs != nil {
		n.addrs, n.sticky = addrs, true
		close(n.ready)
		return n
	}
	// A goroutine of its own, because a resolver needs a deep stack that a client would keep for life.
	h.wg.Go(func() { h.ask(host, n) })
	return n
}

func (h *hosts) ask(host string, n *name) {
	ctx, cancel := context.WithTimeout(h.ctx, lookupTimeout)
	defer cancel()
	addrs, err := h.lookup(ctx, "ip", host)
	if err == nil && len(addrs) == 0 {
		err = &net.DNSError{Err: "no address", Name: host, IsNotFound: true}
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	remember := rememberAddresses
	if err != nil {
		remember = rememberFailure
	}
	n.addrs, n.err, n.expires = addrs, err, h.clock.now()+int64(remember)
	close(n.ready)
}

// known returns the addresses of hosts that need no look-up.
func known(host string) []netip.Addr {
	if host == "localhost" {
		return []netip.Addr{netip.IPv6Loopback(), netip.AddrFrom4([4]byte{127, 0, 0, 1})}
	}
	if a, err := netip.ParseAddr(host); err == nil {
		return []netip.Addr{a}
	}
	return nil
}

// lookup finds the addresses of a name. A weir without a C library uses /etc/hosts and DNS; getent
// also uses the machine's other name services, for names such as its own name and the names of a
// local network.
func lookup(ctx context.Context, network, host string) ([]netip.Addr, error) {
	addrs, err := net.DefaultResolver.LookupNetIP(ctx, network, host)
	missing := (*net.DNSError)(nil)
	if !errors.As(err, &missing) || !missing.IsNotFound || strings.HasPrefix(host, "-") {
		return addrs, err
	}
	if found := getent(ctx, host); len(found) > 0 {
		return found, nil
	}
	return nil, err
}

// getent runs the program getent, if it is installed. It has a line for each address and kind of
// socket: "192.0.2.7 STREAM node7.example.org".
func getent(ctx context.Context, host string) (all []netip.Addr) {
	said, _ := exec.CommandContext(ctx, "getent", "ahosts", host).Output()
	for line := range strings.Lines(string(said)) {
		words := strings.Fields(line)
		if len(words) < 2 || words[1] != "STREAM" {
			continue
		}
		if a, err := netip.ParseAddr(words[0]); err == nil {
			all = append(all, a.Unmap())
		}
	}
	return all
}
