package fts

import (
	"net"
	"net/netip"
	"net/url"
	"strings"
)

// canonical returns a scheme in the form that is used on the wire.
func canonical(scheme string) string {
	switch scheme {
	case "dav":
		return "http"
	case "davs":
		return "https"
	case "xroot":
		return "root"
	case "xroots":
		return "roots"
	}
	return scheme
}

// defaultPort returns the port of URLs without a port, or "" if weir does not support the scheme.
func defaultPort(scheme string) string {
	switch scheme {
	case "http":
		return "80"
	case "https":
		return "443"
	case "root", "roots":
		return "1094"
	}
	return ""
}

// host returns the host of a URL in the form in which it is compared: in lower case, without a dot at its end, addresses in their
// shortest form.
func host(u *url.URL) string {
	name := strings.ToLower(strings.TrimSuffix(u.Hostname(), "."))
	if ip, err := netip.ParseAddr(name); err == nil {
		return ip.Unmap().String()
	}
	return name
}

// Server returns the server of a URL as HOST or HOST:PORT, the same for all URLs with which it is
// accessed: the default port of the scheme is left out.
func Server(u *url.URL) string {
	name, port := host(u), u.Port()
	switch {
	case port != "" && port != defaultPort(u.Scheme):
		return net.JoinHostPort(name, port)
	case strings.Contains(name, ":"):
		return "[" + name + "]"
	}
	return name
}

// SE returns the storage element of a URL in the notation of FTS: scheme and host, an IPv6 address
// without brackets.
func SE(u *url.URL) string { return u.Scheme + "://" + host(u) }

// ReadSE parses the name of a storage element that a person has written: any name of a scheme that
// weir supports, and a port, which is ignored. It returns the result of SE for URLs of this storage
// element, and false if the text is not such a name.
func ReadSE(text string) (string, bool) {
	scheme, name, _ := strings.Cut(strings.TrimRight(text, "/"), "://")
	if ip, err := netip.ParseAddr(name); err == nil && ip.Is6() {
		name = "[" + name + "]"
	}
	u, err := url.Parse(canonical(strings.ToLower(scheme)) + "://" + name)
	if err != nil || defaultPort(u.Scheme) == "" || u.User != nil || u.Path != "" || u.RawQuery != "" || u.Fragment != "" || host(u) == "" {
		return "", false
	}
	return SE(u), true
}

// seOf returns the storage element of a URL in the notation of a client.
func seOf(text string) string {
	u, err := url.Parse(text)
	if err != nil {
		return ""
	}
	return SE(u)
}
