package tcp

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"os"
	"runtime"
	"syscall"
	"time"
)

// attemptTimeout limits the time for one address if nothing else limits the time for the
// connection; connectFloor is the least time for an address.
const (
	attemptTimeout = 30 * time.Second
	connectFloor   = 2 * time.Second
)

// A Dialer makes connections. It is safe for concurrent use.
type Dialer struct {
	clock *clock
	watch *watch
	hosts *hosts
	opens chan struct{} // holds a value for each connection that is being opened
	reach func(ctx context.Context, host string, port uint16) (netip.AddrPort, error)
}

// NewDialer returns a dialer. The caller closes it after its connections. reach returns the address
// for a port of a host; nil: at the host's addresses.
func NewDialer(reach func(ctx context.Context, host string, port uint16) (netip.AddrPort, error)) *Dialer {
	c := newClock()
	return &Dialer{reach: reach, clock: c, watch: newWatch(), hosts: newHosts(c), opens: make(chan struct{}, runtime.GOMAXPROCS(0))}
}

// Close releases the resources of the dialer. Its connections must be closed before.
func (d *Dialer) Close() error {
	d.hosts.close()
	return nil
}

// Dial connects to a port of host, a name or a literal address, and begins the connection's first
// operation (see Conn.Begin). A name is looked up once and remembered for a minute; clients take
// its addresses in turn and continue with the next when an address refuses or does not respond.
func (d *Dialer) Dial(ctx context.Context, host string, port uint16, deadline time.Time) (*Conn, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	until := d.clock.at(deadline)
	if d.reach != nil {
		to, err := d.reach(ctx, host, port)
		if err != nil {
			return nil, err
		}
		return d.connect(ctx, to, until, 1)
	}
	addrs, turn, err := d.addresses(ctx, host, deadline)
	if err != nil {
		return nil, err
	}
	for i := range addrs {
		at := (turn + i) % len(addrs)
		var c *Conn
		c, err = d.connect(ctx, netip.AddrPortFrom(addrs[at], port), until, len(addrs)-i)
		if err == nil {
			if i > 0 {
				d.hosts.worked(host, at)
			}
			return c, nil
		}
		if ctx.Err() != nil || until != 0 && d.clock.now() >= until {
			break
		}
	}
	return nil, err
}

// addresses returns a host's addresses. It is a function of its own so that its context, which is
// needed only if a lookup has to be waited for, costs nothing otherwise.
func (d *Dialer) addresses(ctx context.Context, host string, deadline time.Time) ([]netip.Addr, int, error) {
	if n := d.hosts.find(host); deadline.IsZero() || isClosed(n.ready) {
		return d.hosts.of(ctx, host)
	}
	ctx, cancel := context.WithDeadline(ctx, deadline)
	defer cancel()
	return d.hosts.of(ctx, host)
}

func isClosed(c <-chan struct{}) bool {
	select {
	case <-c:
		return true
	default:
		return false
	}
}

// connect tries one address. left is the number of addresses still to be tried, including this
// address: they share the time that is left.
func (d *Dialer) connect(ctx context.Context, to netip.AddrPort, until int64, left int) (*Conn, error) {
	c := &Conn{clock: d.clock, watch: d.watch, peer: to}
	if err := d.open(c, to); errors.Is(err, syscall.EADDRNOTAVAIL) {
		return nil, fmt.Errorf("connect to %s: every port of this machine is in use, or was within the last minute: %w", to, err)
	} else if err != nil {
		return nil, fmt.Errorf("connect to %s: %w", to, Unconnected(err))
	}
	d.watch.join(ctx, c)
	if !c.sock.connected() {
		c.limit(d.attempt(until, left))
	}
	for {
		err := c.sock.connect(to)
		if err == nil {
			c.limit(until)
			return c, nil
		}
		if err = c.again(err); err != nil {
			_ = c.Close() // it never was a connection
			return nil, fmt.Errorf("connect to %s: %w", to, Unconnected(err))
		}
	}
}

// Unconnected returns err, for which a connection was not made, with the errno that explains it:
// ETIMEDOUT if the other side has not responded, and EHOSTUNREACH if this machine has a route
// (blackhole, prohibit) or a firewall that forbids it.
func Unconnected(err error) error {
	switch {
	case errors.Is(err, os.ErrDeadlineExceeded), errors.Is(err, context.DeadlineExceeded):
		return fmt.Errorf("%w (%w)", syscall.ETIMEDOUT, err)
	case errors.Is(err, syscall.EINVAL), errors.Is(err, syscall.EACCES), errors.Is(err, syscall.EPERM):
		return fmt.Errorf("%w: %s", syscall.EHOSTUNREACH, err.Error()) // the errno itself would be that of a missing right to the file
	}
	return err
}

// open begins a connection. If few ports are free the kernel searches for a free port for so long
// that a thousand clients at once would keep a thousand threads busy, and no other goroutine would
// get a core: clients take turns.
func (d *Dialer) open(c *Conn, to netip.AddrPort) error {
	d.opens <- struct{}{}
	err := c.sock.open(to)
	<-d.opens
	return err
}

func (d *Dialer) attempt(until int64, left int) int64 {
	now := d.clock.now()
	if until == 0 {
		return now + int64(attemptTimeout)
	}
	share := max((until-now)/int64(left), int64(connectFloor))
	return min(until, now+share)
}
