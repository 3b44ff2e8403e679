package monitor

import (
	"context"
	"fmt"
	"net"
	"net/netip"
	"net/url"
	"strconv"
	"strings"
	"time"
)

// defaultPort returns the port of a URL's scheme, 0 if it has none.
func defaultPort(scheme string) int {
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

// splitTarget returns host and port of a URL or of host:port; an empty host
// means that the target is nothing that listens.
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
		return u.Hostname(), defaultPort(u.Scheme), nil
	}
	port, err = strconv.Atoi(u.Port())
	return u.Hostname(), port, err
}

// localTarget returns the address and port of a target on this machine; ok is
// false if it is elsewhere, has no port, or if its name cannot be resolved.
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

// here tells whether an address is one of this machine's.
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

// InterfaceFor returns the name of the interface through which this machine
// reaches an address: a host name, an IP address, host:port or a URL. For the
// machine itself, by whichever of its addresses, that is "lo". It follows the
// routing table at this moment and sends nothing. Traffic may come back
// through another interface where routes are not symmetric.
func InterfaceFor(addr string) (string, error) {
	host, _, err := splitTarget(addr)
	if err != nil || host == "" {
		return "", fmt.Errorf("interface for %q: no host in it", addr)
	}
	// Connecting a datagram socket asks for a route and sends no packet.
	conn, err := net.DialTimeout("udp", net.JoinHostPort(strings.Trim(host, "[]"), "9"), 2*time.Second)
	if err != nil {
		return "", fmt.Errorf("interface for %q: %w", addr, err)
	}
	defer func() { _ = conn.Close() }()
	to := conn.RemoteAddr().(*net.UDPAddr).AddrPort().Addr()
	if here(to) {
		return "lo", nil
	}
	from := conn.LocalAddr().(*net.UDPAddr).AddrPort().Addr().Unmap().WithZone("")
	return interfaceOf(from)
}

func interfaceOf(from netip.Addr) (string, error) {
	list, err := net.Interfaces()
	if err != nil {
		return "", fmt.Errorf("list the interfaces: %w", err)
	}
	for _, i := range list {
		addrs, err := i.Addrs()
		if err != nil {
			continue
		}
		for _, a := range addrs {
			if p, err := netip.ParsePrefix(a.String()); err == nil && p.Addr().WithZone("") == from {
				return i.Name, nil
			}
		}
	}
	return "", fmt.Errorf("no interface has the address %s", from)
}

// Bytes of headers in each TCP segment as interfaces count it: 14 of
// Ethernet (the loopback interface counts them too), 20 of IPv4 or 40 of
// IPv6, and 32 of TCP with timestamps.
const (
	HeaderBytes4 = 14 + 20 + 32
	HeaderBytes6 = 14 + 40 + 32
)

// Payload estimates the TCP payload in what an interface counted in one
// direction: bytes - 66 x packets for IPv4, bytes - 86 x packets for IPv6. An
// acknowledgment without payload so counts nothing. Packets that the kernel
// splits or joins below the interface's counters (segmentation offload) have
// one header there and are counted with one. Other traffic on the interface
// is in it, and SYN and SACK options make it a few bytes too high.
func Payload(bytes, packets int64, ipv6 bool) int64 {
	if ipv6 {
		return max(0, bytes-HeaderBytes6*packets)
	}
	return max(0, bytes-HeaderBytes4*packets)
}
