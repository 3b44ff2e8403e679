package tpc

import (
	"errors"
	"fmt"
	"net"
	"net/netip"
	"net/url"
	"slices"
	"strings"
	"syscall"
	"time"
)

// A Guard defines the other servers to which a server connects on behalf of its clients. It is
// necessary if clients name addresses: without it they could make this machine send requests to
// services that only it can reach (server-side request forgery).
type Guard struct {
	// Hosts are the servers that are allowed: "host" at any port, "host:port", or "*.domain" for
	// all hosts of a domain; "*" allows all.
	Hosts []string
	// Private allows addresses that are not of the public internet: loopback,
	// private networks, link-local.
	Private bool
	// Upto allows the hosts in the areas up to this area.
	Upto Area
	// Encrypted refuses plain http.
	Encrypted bool
}

// ErrRefused is wrapped by all errors of a Guard.
var ErrRefused = errors.New("not allowed")

// Check reports whether the guard allows requests to a URL. The addresses of its host are checked
// later, by Dialing.
func (g *Guard) Check(u *url.URL) error {
	switch {
	case u.Scheme != "http" && u.Scheme != "https":
		return fmt.Errorf("%w: a copy goes over http or https, not %.20q", ErrRefused, u.Scheme)
	case u.Scheme == "http" && g.Encrypted:
		return fmt.Errorf("%w: a copy goes over https only", ErrRefused)
	case u.User != nil:
		return fmt.Errorf("%w: an URL with a user in it", ErrRefused)
	case u.Hostname() == "" || u.Opaque != "":
		return fmt.Errorf("%w: an URL without a host", ErrRefused)
	}
	if !slices.ContainsFunc(g.Hosts, func(h string) bool { return matches(h, u) }) {
		return fmt.Errorf("%w: %.200q is not in the list of hosts to copy with", ErrRefused, u.Host)
	}
	if ip, err := netip.ParseAddr(u.Hostname()); err == nil {
		return g.address(ip)
	}
	return nil
}

// IsHosts reports whether a text names servers as Guard.Hosts does.
func IsHosts(text string) bool {
	if text == "*" {
		return true
	}
	u, err := url.Parse("https://" + strings.TrimPrefix(text, "*."))
	return err == nil && u.Hostname() != "" && u.User == nil && u.Path == "" && u.RawQuery == "" && u.Fragment == "" &&
		!strings.ContainsAny(u.Host, "* ")
}

func matches(entry string, u *url.URL) bool {
	if entry == "*" {
		return true
	}
	host := strings.ToLower(strings.TrimSuffix(u.Hostname(), "."))
	entry = strings.ToLower(entry)
	if name, port, err := net.SplitHostPort(entry); err == nil {
		if _, own, _ := net.SplitHostPort(hostPort(u)); port != own {
			return false
		}
		entry = name
	}
	entry = strings.Trim(entry, "[]")
	if domain, ok := strings.CutPrefix(entry, "*"); ok && strings.HasPrefix(domain, ".") {
		return strings.HasSuffix(host, domain) && len(host) > len(domain)
	}
	return host == entry
}

// address refuses addresses that are not of the public internet.
func (g *Guard) address(ip netip.Addr) error {
	if g.Private || AreaOf(ip) <= g.Upto {
		return nil
	}
	return fmt.Errorf("%w: %s is an address of this machine or of a private network", ErrRefused, ip)
}

// Dialer returns a dialer that connects to an address only if every guard allows it, after names
// were resolved. A nil guard allows all. The coordinator and agents use it to connect to all
// addresses that others name (TestDialers, at the root, enforces that).
func Dialer(timeout time.Duration, guards ...*Guard) *net.Dialer {
	return &net.Dialer{Timeout: timeout, KeepAlive: 15 * time.Second, Control: func(network, address string, raw syscall.RawConn) error {
		for _, g := range guards {
			if g == nil {
				continue
			}
			if err := g.Dialing(network, address, raw); err != nil {
				return err
			}
		}
		return nil
	}}
}

// Dialing is a function for net.Dialer.Control. It checks the address to connect to after names
// were resolved, so a name that resolves to another address each time gains nothing.
func (g *Guard) Dialing(network, address string, _ syscall.RawConn) error {
	if !strings.HasPrefix(network, "tcp") {
		return fmt.Errorf("%w: a connection that is not TCP", ErrRefused)
	}
	at, err := netip.ParseAddrPort(address)
	if err != nil {
		return fmt.Errorf("%w: an address that cannot be read", ErrRefused)
	}
	return g.address(at.Addr())
}

// special returns the networks that are not of the public internet, after IANA's registries of
// special-purpose addresses (RFC 6890), and the networks whose addresses represent IPv4 addresses:
// 6to4, Teredo, NAT64.
func special() []string {
	return []string{
		"0.0.0.0/8", "10.0.0.0/8", "100.64.0.0/10", "127.0.0.0/8", "169.254.0.0/16", "172.16.0.0/12", "192.0.0.0/24", "192.0.2.0/24",
		"192.88.99.0/24", "192.168.0.0/16", "198.18.0.0/15", "198.51.100.0/24", "203.0.113.0/24", "224.0.0.0/4", "240.0.0.0/4",
		"::/96", "64:ff9b::/96", "64:ff9b:1::/48", "100::/64", "2001::/23", "2001:db8::/32", "2002::/16", "3fff::/20", "5f00::/16",
		"fc00::/7", "fe80::/10", "fec0::/10", "ff00::/8",
	}
}

// An Area is the distance of an address from this machine.
type Area int

// The areas, from the farthest area to the area that only this machine, or its nearest neighbors,
// can reach.
const (
	Public   Area = iota // the public internet
	Network              // a private network
	Loopback             // this machine
	Special              // link-local, multicast and others, at which no server of files is
)

// networks returns the private networks of special: RFC 1918, of providers (RFC 6598), of
// benchmarks (RFC 2544), and of IPv6 (RFC 4193).
func networks() []string {
	return []string{"10.0.0.0/8", "172.16.0.0/12", "192.168.0.0/16", "100.64.0.0/10", "198.18.0.0/15", "fc00::/7"}
}

// AreaOf returns the area of an address.
func AreaOf(ip netip.Addr) Area {
	ip = ip.Unmap().WithZone("")
	in := func(p string) bool { return netip.MustParsePrefix(p).Contains(ip) }
	switch {
	case ip.IsLoopback():
		return Loopback
	case slices.ContainsFunc(networks(), in):
		return Network
	case ip.IsGlobalUnicast() && !slices.ContainsFunc(special(), in):
		return Public
	}
	return Special
}
