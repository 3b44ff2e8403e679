package webdav

import (
	"fmt"
	"net"
	"net/url"
	"strconv"
	"strings"

	"weir/storage/wireclient"
)

// An origin is a server: scheme, host and port.
type origin struct {
	secure    bool
	trusted   bool // may see the credentials
	host      string
	port      uint16
	authority string // as the Host line has it
	name      string // host:port
}

func (o *origin) scheme() string {
	if o.secure {
		return "https"
	}
	return "http"
}

func (o *origin) same(p *origin) bool { return o.secure == p.secure && o.name == p.name }

// originOf reads the server's name from an absolute URL.
func originOf(u *url.URL) (*origin, error) {
	o := &origin{port: 80}
	switch strings.ToLower(u.Scheme) {
	case "http", "dav":
	case "https", "davs":
		o.port, o.secure = 443, true
	default:
		return nil, fmt.Errorf("scheme %q: use one of http, https, dav, davs", u.Scheme)
	}
	var err error
	if o.host, o.port, err = wireclient.HostPort(u, o.port); err != nil {
		return nil, err
	}
	bare, _, zoned := strings.Cut(o.host, "%") // a zone means nothing to the other side
	if zoned && !strings.Contains(bare, ":") {
		return nil, fmt.Errorf("host %q has a percent sign", o.host)
	}
	port := strconv.Itoa(int(o.port))
	o.name = net.JoinHostPort(o.host, port)
	o.authority = strings.TrimSuffix(net.JoinHostPort(bare, port), map[bool]string{false: ":80", true: ":443"}[o.secure])
	return o, nil
}

// originAt returns the server of u. Servers are shared by all clients.
func (s *service) originAt(u *url.URL) (*origin, error) {
	o, err := originOf(u)
	if err != nil {
		return nil, err
	}
	if o.same(s.home) {
		return s.home, nil
	}
	o.trusted = o.host == s.home.host && (o.secure || !s.home.secure)
	return s.origins.Get(o.scheme()+"://"+o.name, func() *origin { return o }), nil
}

const hexDigits = "0123456789ABCDEF"

// appendPath appends a path, escaped so that nothing in it can be taken for
// anything but a part of a path (RFC 3986). Only unreserved characters and
// slashes stay as they are.
func appendPath(dst []byte, path string) []byte {
	for i := range len(path) {
		c := path[i]
		if c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9' || c == '/' || c == '.' || c == '-' || c == '_' || c == '~' {
			dst = append(dst, c)
			continue
		}
		dst = append(dst, '%', hexDigits[c>>4], hexDigits[c&15])
	}
	return dst
}

// appendPrintable appends text that is escaped already, and escapes only what
// would end or break a request line.
func appendPrintable(dst []byte, text string) []byte {
	for i := range len(text) {
		if c := text[i]; c <= ' ' || c >= 0x7f {
			dst = append(dst, '%', hexDigits[c>>4], hexDigits[c&15])
		} else {
			dst = append(dst, c)
		}
	}
	return dst
}

// parseReference reads the Location of a redirect, relative to where it came
// from.
func parseReference(location string, from *origin, path string) (*url.URL, error) {
	base, err := url.Parse(from.scheme() + "://" + from.authority + path)
	if err != nil {
		return nil, err
	}
	return base.Parse(location)
}
