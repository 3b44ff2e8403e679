package xrootd

import (
	"fmt"
	"net"
	"net/url"
	"strconv"
	"strings"
	"sync"
)

const defaultPort = 1094

// A server is a host and port that clients connect to.
type server struct {
	host   string
	port   uint16
	secure bool // TLS, or nothing
	name   string
}

// serverOf reads the server's name from a URL.
func serverOf(u *url.URL) (*server, error) {
	s := &server{host: strings.ToLower(u.Hostname()), port: defaultPort}
	switch strings.ToLower(u.Scheme) {
	case "root", "xroot":
	case "roots", "xroots":
		s.secure = true
	default:
		return nil, fmt.Errorf("scheme %q: use one of root, roots, xroot, xroots", u.Scheme)
	}
	if err := checkHost(s.host); err != nil {
		return nil, err
	}
	if p := u.Port(); p != "" {
		n, err := strconv.ParseUint(p, 10, 16)
		if err != nil || n == 0 {
			return nil, fmt.Errorf("port %q: use 1 to 65535", p)
		}
		s.port = uint16(n)
	}
	s.name = net.JoinHostPort(s.host, strconv.Itoa(int(s.port)))
	return s, nil
}

func (s *server) scheme() string {
	if s.secure {
		return "roots"
	}
	return "root"
}

// servers keeps one server for each name, so that thousands of clients share
// its strings.
type servers struct {
	mu    sync.Mutex
	known map[string]*server
}

// named returns the server called host:port.
func (k *servers) named(name string, home *server) (*server, error) {
	host, text, err := net.SplitHostPort(name)
	if err != nil {
		return nil, fmt.Errorf("server %q: %w", name, err)
	}
	port, err := strconv.ParseUint(text, 10, 16)
	if err != nil {
		return nil, fmt.Errorf("server %q: %w", name, err)
	}
	return k.of(host, uint16(port), home.secure, home), nil
}

// of returns the server at host and port, as home's clients see it.
func (k *servers) of(host string, port uint16, secure bool, home *server) *server {
	name := net.JoinHostPort(strings.ToLower(host), strconv.Itoa(int(port)))
	if name == home.name && secure == home.secure {
		return home
	}
	key := name
	if secure {
		key = "s" + key
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	if s := k.known[key]; s != nil {
		return s
	}
	s := &server{host: strings.ToLower(host), port: port, secure: secure, name: name}
	if k.known == nil {
		k.known = map[string]*server{}
	}
	if len(k.known) < 4096 { // more is a fault of the service, not a reason to grow
		k.known[key] = s
	}
	return s
}
