package diagnose

import (
	"context"
	"fmt"
	"net"
	"net/netip"
	"net/url"
	"slices"
	"strconv"
	"sync"
	"time"

	"weir/internal/say"
	"weir/internal/slow"
	"weir/internal/unit"
	"weir/monitor"
)

// patience is the time that one address has to answer.
const patience = 5 * time.Second

// A route finds the addresses of hosts, measures the look-ups and remembers which addresses answer.
type route struct {
	host string
	port uint16

	mu     sync.Mutex
	lookup float64         // s, since the last call of took
	good   map[string]bool // addresses that answered
}

func newRoute(u *url.URL) *route {
	port, err := strconv.ParseUint(u.Port(), 10, 16)
	if err != nil {
		port = uint64(monitor.DefaultPort(u.Scheme))
	}
	return &route{host: u.Hostname(), port: uint16(port), good: map[string]bool{}}
}

// reach is a storage.Reach.
func (r *route) reach(ctx context.Context, host string, port uint16) (netip.AddrPort, error) {
	all, err := r.find(ctx, host)
	if err != nil {
		return netip.AddrPort{}, err
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, a := range all {
		if r.good[netip.AddrPortFrom(a, port).String()] {
			return netip.AddrPortFrom(a, port), nil
		}
	}
	return netip.AddrPortFrom(all[0], port), nil
}

// find looks a host up.
func (r *route) find(ctx context.Context, host string) ([]netip.Addr, error) {
	begun := time.Now()
	all, err := net.DefaultResolver.LookupNetIP(ctx, "ip", host)
	if err == nil && len(all) == 0 {
		err = fmt.Errorf("%s has no address", host)
	}
	if err != nil {
		return nil, err
	}
	for i, a := range all {
		all[i] = a.Unmap()
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.lookup += time.Since(begun).Seconds()
	return all, nil
}

// took returns the time of the look-ups since the last call.
func (r *route) took() float64 {
	r.mu.Lock()
	defer r.mu.Unlock()
	t := r.lookup
	r.lookup = 0
	return t
}

// connect returns the time of a connect, made by the kernels of both hosts.
func connect(ctx context.Context, to string) (float64, error) {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	begun := time.Now()
	c, err := new(net.Dialer).DialContext(ctx, "tcp", to)
	if err != nil {
		return time.Since(begun).Seconds(), err
	}
	return time.Since(begun).Seconds(), c.Close()
}

// addresses connects to one address of each family.
func (d *diagnosis) addresses(ctx context.Context) (string, error) {
	all, err := d.route.find(ctx, d.route.host)
	if err != nil {
		return "", err
	}
	var said []string
	for _, v6 := range []bool{true, false} {
		i := slices.IndexFunc(all, func(a netip.Addr) bool { return a.Is6() == v6 })
		if i < 0 {
			continue
		}
		to := netip.AddrPortFrom(all[i], d.route.port).String()
		took, err := connect(ctx, to)
		at := slow.Address{IPv6: v6, Seconds: took}
		text := to + " answers in " + unit.Seconds(took)
		if err != nil {
			at.Failed = "no connection"
			text = to + " does not answer (" + unit.Seconds(took) + ")"
		} else {
			d.route.good[to] = true
		}
		d.seen.Families = append(d.seen.Families, at)
		said = append(said, text)
	}
	d.report.Spent.Requests += len(said)
	if len(d.route.good) == 0 {
		return "", fmt.Errorf("%s: %s", d.route.host, say.List(said))
	}
	return fmt.Sprintf("%s in %s; %s", say.Plural(len(all), "address"), unit.Seconds(d.route.lookup), say.List(said)), nil
}
