package monitor

import (
	"context"
	"fmt"
	"net"
	"net/netip"
	"net/url"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"time"
)

// DefaultPort returns the default port of a URL's scheme, 0 for other schemes.
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

// HeaderBytes returns the bytes of headers in each TCP segment as an interface counts it, and the
// number of them that it may leave out: 32 of TCP with timestamps, 20 of IPv4 or 40 of IPv6, and 14
// of Ethernet. The loopback interface counts no Ethernet header; bridges, VLANs and tunnels leave
// it out in one direction or in the two directions (Linux: loopback_xmit, br_pass_frame_up,
// vlan_do_receive). The kernel counts large packets before they are cut.
func HeaderBytes(device string, ipv6 bool) (counted, unsure int64) {
	counted = 32 + 20
	if ipv6 {
		counted += 20
	}
	switch {
	case device == "lo":
		return counted, 0
	case ethernetName.MatchString(device):
		return counted + 14, 0
	}
	return counted + 14, 14
}

// ethernetName matches the names of Ethernet devices, and of the ends of virtual cables, without VLANs.
var ethernetName = regexp.MustCompile(`^(eth|en|veth|bond|team)[^.]*$`)
