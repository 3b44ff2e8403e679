// Package emulator makes the links that package link describes, for as long as a run lasts, and takes them away
// again, also when the run is killed.
//
// The clients of a link live in a network namespace, a site, which has nothing but the link.
// Packets pass through a process that keeps them as long as the link takes, and the kernel's TCP
// runs at both ends. [Best] determines the possibility: in this process, in one with a network of
// its own, or nowhere.
//
// Nothing that was there before is changed: no interface, route, setting or queue that this package did not make.
// Everything it creates is bound to open files of processes that end with the run, so nothing needs to be found and removed
// later.
package emulator

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/netip"
	"os/exec"
	"slices"
	"strconv"
	"sync"

	"weir/link"
)

// Options configure how links are made.
type Options struct {
	// Mover is a program and its arguments that calls Move: this program, usually.
	Mover []string
	// Log receives the standard error of the mover. It may be nil.
	Log io.Writer
	// Take is called with the sample of each link, at each whole second of the wall clock, by one
	// goroutine at a time. It may be nil.
	Take func(*Sample)
	// Seed is the start of all that is drawn: losses and jitter.
	Seed uint64

	// Outside makes connections for an isolated process, as HostDialer.Dial does, to destinations
	// that it cannot reach itself; nil for other processes.
	Outside Dial
	// OutsideListen listens at any port of all addresses outside for an isolated process, as HostDialer.Listen does; nil
	// elsewhere.
	OutsideListen func(ctx context.Context) (net.Listener, error)

	device string // TUN device file of tests
}

// A Dial makes a TCP connection to address, host:port.
type Dial func(ctx context.Context, address string) (*net.TCPConn, error)

// A Network is links that are up: each site has its own, and all lead to the service, some over a trunk. Its methods may be
// called by several goroutines.
type Network struct {
	// Sites are the places of the clients, in the order of the links that are not trunks.
	Sites []*Site
	// Trunks are the links that others lead over, in the order of the links.
	Trunks []*Line
	// Service is the address of this machine by which all sites reach the servers that listen on
	// all its addresses, over their links.
	Service string

	pids  []int           // of the processes of the emulation, except this process
	over  <-chan struct{} // closed when the emulation has ended by itself; nil if that is impossible
	fail  func() error    // error that ended the emulation, if it has ended
	close func() error    // called once
	once  sync.Once
	ended error
}

// Site returns the site of the link of that name, nil if there is no such link.
func (n *Network) Site(name string) *Site {
	if i := slices.IndexFunc(n.Sites, func(s *Site) bool { return s.Name == name }); i >= 0 {
		return n.Sites[i]
	}
	return nil
}

// Err returns the reason if the emulation has ended before Close, nil while it runs.
func (n *Network) Err() error { return n.fail() }

// Close removes the links and returns when all their resources are released, except resources of
// processes that are still in a site. It may be called again.
func (n *Network) Close() error {
	n.once.Do(func() { n.ended = n.close() })
	return n.ended
}

// Line returns the link of that name, a site's or a trunk, nil if there is no such link.
func (n *Network) Line(name string) *Line {
	if s := n.Site(name); s != nil {
		return &s.Line
	}
	if i := slices.IndexFunc(n.Trunks, func(l *Line) bool { return l.Name == name }); i >= 0 {
		return n.Trunks[i]
	}
	return nil
}

// A Line is a link that is up: that of a site, or a trunk.
type Line struct {
	Name string

	mu    sync.Mutex
	now   setting
	apply func(s setting) error // has the link work otherwise from now on
}

// A Site is the place of the clients of one link.
type Site struct {
	Line
	// Address is the address of the site, by which this machine reaches its servers over the link.
	Address string

	over emulation
}

// An emulation is a site's end of its link.
type emulation interface {
	// start starts cmd at the site.
	start(cmd *exec.Cmd) error
	// reach returns the address, host:port, by which the site reaches the server that this machine
	// reaches as address.
	reach(ctx context.Context, address string) (string, error)
	// forward returns the port at which connections from an address are passed on over the link to address.
	forward(ctx context.Context, address string, from netip.Addr) (uint16, error)
}

// Start starts cmd as cmd.Start does, but at the site: all connections that the process makes go
// over its link. Namespaces hold only their network: the process has the same files and processes.
// It must not set Pdeathsig, which is sent when a thread ends, and here threads do.
func (s *Site) Start(cmd *exec.Cmd) error { return s.over.start(cmd) }

// Reach returns the address, as host:port, by which clients at the site reach over their link the
// server that this machine reaches as address. It is address itself if that is one of this
// machine's own addresses, except loopback addresses; otherwise a gate at the service's end of the
// link passes connections on. Gates stay until Close.
func (s *Site) Reach(ctx context.Context, address string) (string, error) {
	if err := checkPort(address); err != nil {
		return "", err
	}
	return s.over.reach(ctx, address)
}

// Forward returns a port of this machine for processes that are not at the site, such as workers on
// other machines. Over the site's link the port leads to the server that this machine reaches as
// address: each connection to the port is continued by a connection from the site. Only connections
// from the address from, and from the addresses of other calls, are accepted. Forwards stay until
// Close.
func (s *Site) Forward(ctx context.Context, address string, from netip.Addr) (uint16, error) {
	if err := checkPort(address); err != nil {
		return 0, err
	}
	return s.over.forward(ctx, address, from)
}

func checkPort(address string) error {
	_, port, err := net.SplitHostPort(address)
	if err != nil {
		return fmt.Errorf("reach a service over a link: %w", err)
	}
	if n, err := strconv.ParseUint(port, 10, 16); err != nil || n == 0 {
		return fmt.Errorf("reach a service over a link: %q: a port is a number from 1 to 65535, as in localhost:1094", address)
	}
	return nil
}

// Spec returns the current properties of the link.
func (l *Line) Spec() link.Spec {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.now.Spec
}

// Change changes the properties of the link to spec, from now on; MTU, Congestion and Trunk stay
// unchanged. Packets on their way arrive as before.
func (l *Line) Change(spec link.Spec) error {
	spec.Trunk = ""
	if err := link.Check([]link.Named{{Name: l.Name, Spec: spec}}); err != nil {
		return err
	}
	return l.set(func(now *setting) {
		spec.MTU, spec.Congestion, spec.Trunk = now.Spec.MTU, now.Spec.Congestion, now.Spec.Trunk
		now.Spec = spec.Complete()
	})
}

// SetDown cuts the link, with all packets on it, or restores it. A trunk takes with it all links
// over it.
func (l *Line) SetDown(down bool) error {
	return l.set(func(now *setting) { now.Down = down })
}

func (l *Line) set(how func(*setting)) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	next := l.now
	how(&next)
	if err := l.apply(next); err != nil {
		return fmt.Errorf("change link %s: %w", l.Name, err)
	}
	l.now = next
	return nil
}

// Up makes links. They are up, and were tried, when it returns. The caller closes the Network.
func Up(ctx context.Context, links []link.Named, o Options) (*Network, error) {
	if err := link.Check(links); err != nil {
		return nil, err
	}
	if len(links) == 0 {
		return nil, errors.New("no links are given")
	}
	links = slices.Clone(links)
	for i := range links {
		links[i].Spec = links[i].Spec.Complete()
	}
	return newStar(ctx, links, o)
}

// The two ways of a link.
const (
	toClients   = 0
	fromClients = 1
)

// A setting has the properties that can be changed while a link is up.
type setting struct {
	Spec link.Spec `json:"spec"`
	Down bool      `json:"down"`
}

// both returns the parameters to and from the clients.
func (s setting) both() [2]params {
	return [2]params{paramsOf(s.Spec, s.Spec.Rate, s.Down), paramsOf(s.Spec, s.Spec.FromClients(), s.Down)}
}
