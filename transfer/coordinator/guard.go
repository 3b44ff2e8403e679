package coordinator

import (
	"net"
	"net/http"
	"net/netip"

	"weir/internal/tpc"
)

// guards say where the coordinator connects to ask the door of an agent, by where
// that agent has come from: who asks from the public internet cannot have it ask a
// private network, or itself. Sites that administrators add are asked wherever they are.
func guards() map[tpc.Area]*tpc.Guard {
	all := map[tpc.Area]*tpc.Guard{}
	for _, area := range []tpc.Area{tpc.Public, tpc.Network, tpc.Loopback} {
		all[area] = &tpc.Guard{Hosts: []string{"*"}, Upto: area}
	}
	return all
}

// cameFrom is the area from which a question comes.
func cameFrom(r *http.Request) tpc.Area {
	from, err := netip.ParseAddrPort(r.RemoteAddr)
	if err != nil {
		return tpc.Public
	}
	if to, ok := r.Context().Value(http.LocalAddrContextKey).(*net.TCPAddr); ok && to.AddrPort().Addr().Unmap() == from.Addr().Unmap() {
		return tpc.Loopback // by whatever address it has
	}
	if area := tpc.AreaOf(from.Addr()); area != tpc.Special {
		return area
	}
	return tpc.Network // link-local: a neighbor
}

// guard is that for a site; nil if an administrator has said where it is. The registry is
// locked.
func (c *Coordinator) guard(site string) *tpc.Guard {
	if c.registry.sites[site].Kind == httpKind {
		return nil
	}
	if a := c.registry.agents[site]; a != nil {
		return c.guards[a.area]
	}
	return c.guards[tpc.Public]
}
