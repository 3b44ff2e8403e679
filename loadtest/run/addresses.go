package run

import (
	"context"
	"net"
	"net/netip"
	"slices"
	"strings"
	"sync"
	"time"

	"weir/loadtest/scenario"
	"weir/monitor"
)

// lookUp is the time limit for looking up names of backends before a run.
const lookUp = 3 * time.Second

// withAddresses returns p with the addresses of the names of its backends: clients and balancers
// may have only the address of a data server. Names that cannot be looked up stay as they are, and
// so do names of different backends with one address.
func withAddresses(ctx context.Context, p *scenario.Plan, resolve func(ctx context.Context, host string) ([]netip.Addr,
	error)) *scenario.Plan {
	ctx, cancel := context.WithTimeout(ctx, lookUp)
	defer cancel()
	found := make([][]string, len(p.Hosts))
	var wg sync.WaitGroup
	for i := range p.Hosts {
		if h := &p.Hosts[i]; h.Backend() {
			wg.Go(func() { found[i] = addressesOf(ctx, h, resolve) })
		}
	}
	wg.Wait()
	owners := map[string]int{}
	for _, all := range found {
		for _, a := range all {
			owners[a]++
		}
	}
	with := *p
	with.Hosts = slices.Clone(p.Hosts)
	for i := range with.Hosts {
		h := &with.Hosts[i]
		own := slices.DeleteFunc(found[i], func(a string) bool { return owners[a] > 1 || slices.Contains(h.Address, a) })
		if len(own) == 0 {
			continue
		}
		if len(h.Address) == 0 {
			h.Address = []string{h.Name}
		}
		h.Address = append(slices.Clone(h.Address), own...)
	}
	return &with
}

// addressesOf looks up the names that a backend has for clients, each once.
func addressesOf(ctx context.Context, h *monitor.Host, resolve func(ctx context.Context, host string) ([]netip.Addr, error)) []string {
	names := h.Address
	if len(names) == 0 {
		names = []string{h.Name}
	}
	var all []string
	for _, name := range names {
		host, port, err := net.SplitHostPort(name)
		if err != nil {
			host, port = strings.Trim(name, "[]"), ""
		}
		if _, err := netip.ParseAddr(host); err == nil {
			continue
		}
		ips, err := resolve(ctx, host)
		if err != nil {
			continue
		}
		for _, ip := range ips {
			a := ip.Unmap().WithZone("").String()
			if port != "" {
				a = net.JoinHostPort(a, port)
			}
			if !slices.Contains(all, a) {
				all = append(all, a)
			}
		}
	}
	return all
}

func lookUpAddresses(ctx context.Context, host string) ([]netip.Addr, error) {
	return net.DefaultResolver.LookupNetIP(ctx, "ip", host)
}
