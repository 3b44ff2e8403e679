package agent

import (
	"context"
	"fmt"
	"net"
	"net/http/httptrace"
	"net/netip"
	"net/url"
	"sync"
	"time"

	"weir/internal/tpc"
)

// A reach restricts the addresses to which an agent connects to move files. They come from the
// coordinator, which has them from other agents: no agent may make this machine send requests to
// servers that only it, or its neighbors, can reach.
//
// Addresses of the public internet are always allowed. Addresses of private networks are allowed if
// the coordinator has such an address, or if this site's own endpoint is reached at such an
// address. Addresses of this machine are allowed if the coordinator runs on this machine. All other
// addresses, such as link-local addresses, at which clouds provide credentials to machines, are
// refused. Options.Private overrides these rules for all addresses that are not public.
type reach struct {
	site  string
	given *bool

	mu    sync.Mutex
	boss  net.Addr // address of the coordinator at its last response
	areas map[tpc.Area]bool
}

func newReach(site string, given *bool) *reach { return &reach{site: site, given: given} }

// trace stores the address of the coordinator when a request with the returned context is sent.
func (r *reach) trace(ctx context.Context) context.Context {
	return httptrace.WithClientTrace(ctx, &httptrace.ClientTrace{GotConn: func(i httptrace.GotConnInfo) {
		r.mu.Lock()
		defer r.mu.Unlock()
		r.boss = i.Conn.RemoteAddr()
	}})
}

// resolveTime bounds the time to look up the address of the site's own endpoint.
const resolveTime = 5 * time.Second

// learn sets the allowed areas, after the coordinator has responded. endpoint is the URL of the
// site's own endpoint, "" if it has no endpoint.
func (r *reach) learn(ctx context.Context, endpoint string) {
	if r.given != nil {
		return
	}
	areas := map[tpc.Area]bool{}
	if areaOfURL(ctx, endpoint) == tpc.Network {
		areas[tpc.Network] = true
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if tcp, ok := r.boss.(*net.TCPAddr); ok {
		switch tpc.AreaOf(tcp.AddrPort().Addr()) {
		case tpc.Loopback:
			areas[tpc.Loopback], areas[tpc.Network] = true, true
		case tpc.Network:
			areas[tpc.Network] = true
		}
	}
	r.areas = areas
}

// areaOfURL returns the farthest area in which the host of a URL has an address, or Special if it
// has no address.
func areaOfURL(ctx context.Context, address string) tpc.Area {
	ctx, cancel := context.WithTimeout(ctx, resolveTime)
	defer cancel()
	area := tpc.Special
	u, err := url.Parse(address)
	if err != nil || u.Hostname() == "" {
		return area
	}
	found, _ := net.DefaultResolver.LookupNetIP(ctx, "ip", u.Hostname()) // empty if the lookup fails
	for _, ip := range found {
		area = min(area, tpc.AreaOf(ip))
	}
	return area
}

// check is the mover's guard. It is called with the address of each connection, after names were
// looked up, also after redirects.
func (r *reach) check(to netip.AddrPort) error {
	area := tpc.AreaOf(to.Addr())
	r.mu.Lock()
	good := area == tpc.Public || r.areas[area]
	r.mu.Unlock()
	if r.given != nil {
		good = area == tpc.Public || *r.given
	}
	if good {
		return nil
	}
	what := map[tpc.Area]string{tpc.Network: "of a private network", tpc.Loopback: "of this machine itself",
		tpc.Special: "that no site has"}[area]
	return fmt.Errorf("%s is an address %s: the agent of site %s does not connect there, unless it is started with --allow-private",
		to.Addr(), what, r.site)
}
