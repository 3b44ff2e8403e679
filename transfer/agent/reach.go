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

// A reach says to which addresses an agent connects to move files. They come from
// the coordinator, which has them from other agents: no agent may have this machine
// ask what only it, or its neighbors, can reach.
//
// Addresses of the public internet are always good. Those of private networks are
// where the coordinator answers from one, or others reach this site's own endpoint at
// one; those of this machine where the coordinator answers from this machine. What
// else there is, such as link-local addresses, at which clouds tell machines their
// credentials, is not. Options.Private says otherwise, for all of them.
type reach struct {
	site  string
	given *bool

	mu    sync.Mutex
	boss  net.Addr // from where the coordinator answered last
	areas map[tpc.Area]bool
}

func newReach(site string, given *bool) *reach { return &reach{site: site, given: given} }

// trace notes from where the coordinator answers what is asked with the context.
func (r *reach) trace(ctx context.Context) context.Context {
	return httptrace.WithClientTrace(ctx, &httptrace.ClientTrace{GotConn: func(i httptrace.GotConnInfo) {
		r.mu.Lock()
		defer r.mu.Unlock()
		r.boss = i.Conn.RemoteAddr()
	}})
}

// resolveTime is how long it may take to find the address of the site's own endpoint.
const resolveTime = 5 * time.Second

// learn finds out which addresses are good, once the coordinator has answered. endpoint
// is the URL of the site's own, "" if it has none.
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

// areaOfURL is the farthest area in which the host of a URL has an address; Special
// if it has none.
func areaOfURL(ctx context.Context, address string) tpc.Area {
	ctx, cancel := context.WithTimeout(ctx, resolveTime)
	defer cancel()
	area := tpc.Special
	u, err := url.Parse(address)
	if err != nil || u.Hostname() == "" {
		return area
	}
	found, _ := net.DefaultResolver.LookupNetIP(ctx, "ip", u.Hostname()) // none are found if it fails
	for _, ip := range found {
		area = min(area, tpc.AreaOf(ip))
	}
	return area
}

// check is the mover's guard. It sees the address that is connected to, after names
// were looked up, also behind redirects.
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
