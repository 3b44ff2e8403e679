package emulator

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"os/exec"
	"slices"
	"sync"
	"syscall"
	"time"

	"github.com/vishvananda/netlink"
	"github.com/vishvananda/netns"
	"golang.org/x/sys/unix"

	"weir/link"
)

// A star is links whose sites are network namespaces. The service's ends are devices in the namespace of this
// process.
type star struct {
	block   block
	own     []netip.Addr // of this machine, to which the sites get routes
	spokes  []*spoke
	trunks  []*trunk
	gates   *gates
	outside func(context.Context) (net.Listener, error)
	closers []func() error // last first

	mu sync.Mutex // protects the settings of links and trunks that are up
}

// A spoke is one link of a star.
type spoke struct {
	star     *star
	name     string
	spec     link.Spec
	address  netip.Addr
	space    *space
	here     end    // at the service
	there    end    // at the site
	trunk    *trunk // nil: it leads to the service
	forwards *forwards
	adjust   func(s setting) error
}

// A trunk is a line that several spokes share.
type trunk struct {
	name   string
	spec   link.Spec
	adjust func(s setting) error
}

// path returns the link between the site and the service.
func (sp *spoke) path() link.Spec {
	links := []link.Named{{Name: sp.name, Spec: sp.spec}}
	if sp.trunk != nil {
		links = append(links, link.Named{Name: sp.trunk.name, Spec: sp.trunk.spec})
	}
	return link.Path(links, links[0])
}

// newStar makes the namespaces and their devices, then the links.
func newStar(ctx context.Context, links []link.Named, o Options) (*Network, error) {
	s := &star{gates: newGates(o.Outside), outside: o.OutsideListen}
	n := &Network{close: s.close, fail: func() error { return nil }}
	err := s.prepare(links)
	if err == nil {
		err = s.userspace(ctx, n, o)
	}
	if err == nil {
		err = s.try(ctx)
	}
	for _, sp := range s.spokes {
		if err == nil && sp.spec.Loss > 0 {
			err = sp.adjust(setting{Spec: sp.spec})
		}
	}
	for _, t := range s.trunks {
		if err == nil && t.spec.Loss > 0 {
			err = t.adjust(setting{Spec: t.spec})
		}
	}
	if err != nil {
		return nil, errors.Join(err, s.close())
	}
	n.Service = s.block.service.String()
	for _, sp := range s.spokes {
		n.Sites = append(n.Sites, &Site{Line: Line{Name: sp.name, now: setting{Spec: sp.spec}, apply: sp.adjust}, Address: sp.address.String(),
			over: sp})
	}
	for _, t := range s.trunks {
		n.Trunks = append(n.Trunks, &Line{Name: t.name, now: setting{Spec: t.spec}, apply: t.adjust})
	}
	return n, nil
}

func (s *star) prepare(links []link.Named) (err error) {
	if s.own, err = ownAddresses(); err != nil {
		return err
	}
	if s.block, err = newBlock(); err != nil {
		return err
	}
	s.own = append(s.own, s.block.service)
	s.gates.listen = at(s.block.service.String())
	here, err := netlink.NewHandle()
	if err != nil {
		return err
	}
	s.closers = append(s.closers, func() error { here.Close(); return nil })
	for _, l := range link.Trunks(links) {
		s.trunks = append(s.trunks, &trunk{name: l.Name, spec: l.Spec})
	}
	for i, l := range link.Sites(links) {
		sp := &spoke{star: s, name: l.Name, spec: l.Spec, address: s.block.site(i)}
		sp.forwards = newForwards(s.gates.ctx, s.outside, sp.carry)
		if k := slices.IndexFunc(s.trunks, func(t *trunk) bool { return t.name == l.Spec.Trunk }); k >= 0 {
			sp.trunk = s.trunks[k]
		}
		if sp.space, err = newSpace(); err != nil {
			return err
		}
		there, err := netlink.NewHandleAt(netns.NsHandle(int(sp.space.file.Fd())))
		if err != nil {
			return errors.Join(err, sp.space.close())
		}
		s.closers = append(s.closers, func() error { there.Close(); return sp.space.close() })
		if err := loopbackUp(there); err != nil {
			return fmt.Errorf("loopback of a site: %w", err)
		}
		sp.here = end{handle: here, own: s.block.service, peer: sp.address}
		sp.there = end{handle: there, own: sp.address, peer: s.block.service}
		s.spokes = append(s.spokes, sp)
	}
	return nil
}

// first returns the link's setting until it has been tested: no packet is lost, so that the failure
// of a test has another cause.
func (sp *spoke) first() setting { return withoutLoss(sp.spec) }

func withoutLoss(s link.Spec) setting {
	s.Loss = 0
	return setting{Spec: s}
}

// up takes both ends of a link into service.
func (sp *spoke) up() error {
	if err := errors.Join(sp.here.up(sp.path()), sp.there.up(sp.path())); err != nil {
		return err
	}
	dev, err := sp.there.handle.LinkByName(sp.there.name)
	if err != nil {
		return err
	}
	for _, a := range sp.star.own { // and nowhere else: nothing of a site ever leaves this machine
		if err := sp.there.route(dev, a, sp.spec); err != nil {
			return fmt.Errorf("route of a site to %s: %w", a, err)
		}
	}
	return nil
}

func (s *star) close() error {
	for _, sp := range s.spokes {
		_ = sp.forwards.close() // their connections end with the gates'
	}
	err := s.gates.close()
	for _, sp := range s.spokes {
		sp.forwards.wait()
	}
	for _, f := range slices.Backward(s.closers) {
		err = errors.Join(err, f())
	}
	s.closers = nil
	return err
}

// start implements emulation.
func (sp *spoke) start(cmd *exec.Cmd) error { return sp.space.in(cmd.Start) }

// reach implements emulation.
func (sp *spoke) reach(ctx context.Context, address string) (string, error) {
	name, port, err := net.SplitHostPort(address)
	if err != nil {
		return "", err
	}
	found, err := net.DefaultResolver.LookupNetIP(ctx, "ip", name)
	if err != nil && sp.star.gates.outside == nil {
		return "", err
	}
	for _, a := range found {
		if slices.Contains(sp.star.own, a.Unmap()) {
			return net.JoinHostPort(a.Unmap().String(), port), nil
		}
	}
	return sp.star.gates.open(ctx, address)
}

// forward implements emulation.
func (sp *spoke) forward(ctx context.Context, address string, from netip.Addr) (uint16, error) {
	return sp.forwards.forward(ctx, address, from)
}

// carry continues a connection from the site until it ends.
func (sp *spoke) carry(c *net.TCPConn, to string) {
	defer c.Close()
	s, err := sp.dial(to)
	if err != nil {
		_ = c.SetLinger(0) // so that the client receives a refusal
		return
	}
	Join(sp.forwards.ctx, c, s)
}

// dial connects from the site to the server that this machine reaches as address.
func (sp *spoke) dial(address string) (*net.TCPConn, error) {
	there, err := sp.reach(sp.forwards.ctx, address)
	if err != nil {
		return nil, err
	}
	var c net.Conn
	dialer := &net.Dialer{Control: func(_, _ string, raw syscall.RawConn) error {
		return raw.Control(func(fd uintptr) { // optional: the forward reads no more from the client than the link can carry soon
			_ = unix.SetsockoptInt(int(fd), unix.IPPROTO_TCP, unix.TCP_NOTSENT_LOWAT, forwardBuffer)
		})
	}}
	err = sp.space.in(func() (err error) {
		c, err = dialer.DialContext(sp.forwards.ctx, "tcp4", there)
		return err
	})
	if err != nil {
		return nil, err
	}
	return c.(*net.TCPConn), nil
}

// patience limits the time for a connection over a new link, in addition to its round trips.
const patience = 5 * time.Second

// try makes a connection over each link: a cause that blocks packets, such as a firewall, is better
// reported before the run than during it.
func (s *star) try(ctx context.Context) error {
	l, err := (&net.ListenConfig{}).Listen(ctx, "tcp4", net.JoinHostPort(s.block.service.String(), "0"))
	if err != nil {
		return fmt.Errorf("listen at the service's end of the links: %w", err)
	}
	defer l.Close()
	for _, sp := range s.spokes {
		most := patience + 10*time.Duration(sp.path().RTT)
		err := sp.space.in(func() error {
			c, err := (&net.Dialer{Timeout: most}).DialContext(ctx, "tcp4", l.Addr().String())
			if err != nil {
				return err
			}
			return c.Close()
		})
		if late, ok := errors.AsType[net.Error](err); ok && late.Timeout() {
			err = fmt.Errorf("%w: does a firewall of this machine drop what comes from the devices weir*?", err)
		}
		if err != nil {
			return fmt.Errorf("try the link %s: %w", sp.name, err)
		}
	}
	return nil
}
