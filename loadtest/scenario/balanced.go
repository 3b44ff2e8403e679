package scenario

import (
	"fmt"
	"net"
	"net/url"
	"slices"
	"strings"

	"weir/internal/document"
	"weir/monitor"
)

// maxEndpoints bounds a list of targets.
const maxEndpoints = 1000

// onlyBackendsHere reports whether backends are monitored on this machine and no host represents
// the machine itself, whose samples include the samples of the backends.
func (s *Scenario) onlyBackendsHere() bool {
	found := false
	for i := range s.Hosts {
		h := &s.Hosts[i]
		switch {
		case h.NodeExporter+h.XRootDReport != "":
		case !h.Backend():
			return false
		default:
			found = found || h.Interface != "" || len(h.Processes)+len(h.Pids)+len(h.Groups) > 0
		}
	}
	return found
}

// serviceText describes the built-in server, the other endpoints and the balancer.
func (p *Plan) serviceText(row func(name, format string, args ...any)) {
	if p.Origin != nil {
		row("origin", "%s", p.originText())
	}
	p.serverText(row)
	for _, door := range p.Others {
		row("and", "%s", door)
	}
	if p.Balancer != (monitor.BalancerConfig{}) {
		row("balancer", "%s", p.Balancer)
	}
}

// Endpoints returns the URLs of all endpoints of the service, the target first.
func (p *Plan) Endpoints() []string { return append([]string{p.Target}, p.Others...) }

// endpoints checks a list of targets.
func (c *checker) endpoints() {
	all := append([]string{c.Target}, c.Others...)
	if len(all) > maxEndpoints {
		c.say("target", "%d endpoints: use up to %d", len(all), maxEndpoints)
		return
	}
	first, _ := url.Parse(c.Target)
	for i, target := range all {
		path := fmt.Sprintf("target.%d", i)
		if target == BuiltIn || target == "" {
			c.say(path, "%s is not a URL; write the URL of each of the equal servers, as in [https://dav-1:2880/data, https://dav-2:2880/data]",
				document.Quote(target))
			continue
		}
		c.endpoint(path, target)
		u, err := url.Parse(target)
		switch {
		case slices.Index(all, target) < i:
			c.say(path, "%s is there twice", document.Quote(target))
		case err == nil && first != nil && u.Scheme != first.Scheme && u.Scheme != "" && first.Scheme != "":
			c.say(path, "is %s:// and the first is %s://; equal servers use the same protocol, and a matrix compares two", u.Scheme, first.Scheme)
		}
	}
}

// balancer checks the sources of the figures of a balancer.
func (c *checker) balancer() {
	b := c.Balancer
	switch {
	case b == monitor.BalancerConfig{}:
	case b.HAProxy != "" && b.IPVS != "":
		c.say("balancer.ipvs", "haproxy and ipvs exclude each other; name the one that the clients connect to")
	case b.HAProxy == "" && b.IPVS == "":
		c.say("balancer", "haproxy and ipvs are missing; name one of them, or omit balancer")
	case b.HAProxy != "":
		if strings.Contains(b.HAProxy, "://") {
			c.page("balancer.haproxy", b.HAProxy, "http://lb:8404/stats")
		} else if _, port := hostPort(b.HAProxy); !strings.HasPrefix(b.HAProxy, "/") && (port == "" || !isAddress(b.HAProxy)) {
			c.say("balancer.haproxy", "%s is neither a socket nor a URL; write it as in /run/haproxy/admin.sock, lb:9999, or http://lb:8404/stats",
				document.Quote(b.HAProxy))
		}
	case b.IPVS != monitor.LocalIPVS:
		c.page("balancer.ipvs", b.IPVS, "http://lvs:9100/metrics")
	}
	c.refuse(b.IPVS != "" && b.Service != "" && !isAddress(b.Service),
		"balancer.service", "%s; write the virtual service as ADDRESS:PORT, as in 192.0.2.1:2811", document.Quote(b.Service))
}

// page checks the URL of a page without secrets.
func (c *checker) page(path, text, like string) {
	u, err := url.Parse(text)
	switch {
	case err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Host == "":
		c.say(path, "not the URL of a page; write it as in %s", like)
	case u.User != nil:
		c.say(path, "a scenario must not contain secrets; omit the part before the @")
	}
}

// backend checks the keys of a host that is one of several servers.
func (c *checker) backend(path string, h monitor.Host) {
	for i, a := range h.Address {
		if !isAddress(a) {
			c.say(fmt.Sprintf("%s.address.%d", path, i), "%s; write a name or an address, with a port or without, as in 192.0.2.11, or gftp-1:2811",
				document.Quote(a))
			continue
		}
		for k := range c.Hosts {
			if o := &c.Hosts[k]; o.Name != h.Name && slices.ContainsFunc(o.Address, func(b string) bool { return overlap(a, b) }) &&
				c.before(o.Name, h.Name) {
				c.say(fmt.Sprintf("%s.address.%d", path, i), "%s is also an address of %s", document.Quote(a), o.Name)
			}
		}
	}
	c.refuse(h.Interface != "" && (len(h.Interface) > 15 || strings.ContainsAny(h.Interface, "/ \t\n")),
		path+".interface", "%s is not an interface; write its name, as in eth0", document.Quote(h.Interface))
	c.refuse(h.Backend() && h.Role == monitor.RoleClient, path+".role", "a backend (address, interface, transfer_log) is a server; omit role")
}

// before reports whether the host named a precedes the host named b.
func (c *checker) before(a, b string) bool {
	at := func(name string) int {
		return slices.IndexFunc(c.Hosts, func(h monitor.Host) bool { return h.Name == name })
	}
	return at(a) < at(b)
}

// overlap reports whether two addresses can mean the same server: equal addresses, or equal hosts
// with a port in only one of the addresses.
func overlap(a, b string) bool {
	if a == b {
		return true
	}
	aHost, aPort := hostPort(a)
	bHost, bPort := hostPort(b)
	return aHost == bHost && (aPort == bPort || aPort == "" || bPort == "")
}

// hostPort splits HOST:PORT; the port is "" if it is missing.
func hostPort(s string) (host, port string) {
	if h, p, err := net.SplitHostPort(s); err == nil {
		return h, p
	}
	return strings.Trim(s, "[]"), ""
}
