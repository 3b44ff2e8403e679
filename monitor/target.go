package monitor

import (
	"context"
	"fmt"
	"net"
	"net/netip"
	"net/url"
	"strconv"
	"strings"
	"sync"
	"time"
)

// DefaultPort returns the port of a URL's scheme, 0 if it has none.
func DefaultPort(scheme string) int {
	switch strings.ToLower(scheme) {
	case "http", "dav":
		return 80
	case "https", "davs", "s3":
		return 443
	case "root", "xroot", "roots", "xroots":
		return 1094
	case "gsiftp":
		return 2811
	case "ftp":
		return 21
	}
	return 0
}

// splitTarget returns host and port of a URL or of host:port; an empty host means that the target is nothing that
// listens.
func splitTarget(target string) (host string, port int, err error) {
	if !strings.Contains(target, "://") {
		h, p, err := net.SplitHostPort(target)
		if err != nil {
			return target, 0, nil
		}
		port, err := strconv.Atoi(p)
		return h, port, err
	}
	u, err := url.Parse(target)
	if err != nil {
		return "", 0, fmt.Errorf("target: %w", err)
	}
	if u.Port() == "" {
		return u.Hostname(), DefaultPort(u.Scheme), nil
	}
	port, err = strconv.Atoi(u.Port())
	return u.Hostname(), port, err
}

// localTarget returns the address and port of a target on this machine; ok is false if it is elsewhere, has no port,
// or if its name cannot be resolved.
func localTarget(ctx context.Context, target string) (addr netip.AddrPort, ok bool) {
	host, port, err := splitTarget(target)
	if err != nil || host == "" || port < 1 || port > 65535 {
		return netip.AddrPort{}, false
	}
	ctx, cancel := context.WithTimeout(ctx, 2*time.Second)
	defer cancel()
	addrs, err := net.DefaultResolver.LookupNetIP(ctx, "ip", host)
	if err != nil {
		return netip.AddrPort{}, false
	}
	for _, a := range addrs {
		if here(a) {
			return netip.AddrPortFrom(a.Unmap().WithZone(""), uint16(port)), true
		}
	}
	return netip.AddrPort{}, false
}

// localTargets returns the addresses of those targets that are on this machine.
func localTargets(ctx context.Context, targets []string) (local []netip.AddrPort) {
	found := make([]netip.AddrPort, len(targets))
	var all sync.WaitGroup
	for i, t := range targets { // together: a name may take seconds
		all.Go(func() { found[i], _ = localTarget(ctx, t) })
	}
	all.Wait()
	for _, a := range found {
		if a.IsValid() {
			local = append(local, a)
		}
	}
	return local
}

// here reports whether an address is one of this machine's.
func here(a netip.Addr) bool {
	a = a.Unmap().WithZone("")
	if a.IsLoopback() || a.IsUnspecified() {
		return true
	}
	own, err := net.InterfaceAddrs()
	if err != nil {
		return false
	}
	for _, o := range own {
		if p, err := netip.ParsePrefix(o.String()); err == nil && p.Addr().WithZone("") == a {
			return true
		}
	}
	return false
}

// Bytes of headers in each TCP segment as interfaces count it: 14 of Ethernet (the loopback interface counts them
// too), 20 of IPv4 or 40 of IPv6, and 32 of TCP with timestamps.
const (
	HeaderBytes4 = 14 + 20 + 32
	HeaderBytes6 = 14 + 40 + 32
)
