package webdav

import (
	"fmt"
	"net"
	"net/url"
	"strconv"
	"strings"
	"sync"
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
	o := &origin{host: strings.ToLower(u.Hostname())}
	switch strings.ToLower(u.Scheme) {
	case "http", "dav":
		o.port = 80
	case "https", "davs":
		o.port, o.secure = 443, true
	default:
		return nil, fmt.Errorf("scheme %q: use one of http, https, dav, davs", u.Scheme)
	}
	if o.host == "" {
		return nil, fmt.Errorf("no host")
	}
	if strings.ContainsFunc(o.host, func(r rune) bool { return r <= ' ' || r >= 0x7f || strings.ContainsRune(`/\?#@<>"`, r) }) {
		return nil, fmt.Errorf("host %q has characters that no host name has", o.host)
	}
	if p := u.Port(); p != "" {
		n, err := strconv.ParseUint(p, 10, 16)
		if err != nil || n == 0 {
			return nil, fmt.Errorf("port %q: use 1 to 65535", p)
		}
		o.port = uint16(n)
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

// origins keeps one origin for each data server, so that thousands of clients
// share its strings.
type origins struct {
	mu    sync.Mutex
	known map[string]*origin
}

// of returns the server of u, as home's clients see it.
func (s *origins) of(u *url.URL, home *origin) (*origin, error) {
	o, err := originOf(u)
	if err != nil {
		return nil, err
	}
	if o.same(home) {
		return home, nil
	}
	o.trusted = o.host == home.host && (o.secure || !home.secure)
	key := o.scheme() + "://" + o.name
	s.mu.Lock()
	defer s.mu.Unlock()
	if k := s.known[key]; k != nil {
		return k, nil
	}
	if s.known == nil {
		s.known = map[string]*origin{}
	}
	if len(s.known) < 4096 { // more is a fault of the service, not a reason to grow
		s.known[key] = o
	}
	return o, nil
}
