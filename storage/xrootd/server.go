package xrootd

import (
	"fmt"
	"net"
	"net/url"
	"strconv"
	"strings"

	"weir/storage/wireclient"
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
	s := &server{}
	switch strings.ToLower(u.Scheme) {
	case "root", "xroot":
	case "roots", "xroots":
		s.secure = true
	default:
		return nil, fmt.Errorf("scheme %q: use one of root, roots, xroot, xroots", u.Scheme)
	}
	var err error
	if s.host, s.port, err = wireclient.HostPort(u, defaultPort); err != nil {
		return nil, err
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

// serverNamed returns the server called host:port.
func (s *service) serverNamed(name string) (*server, error) {
	host, text, err := net.SplitHostPort(name)
	if err != nil {
		return nil, fmt.Errorf("server %q: %w", name, err)
	}
	port, err := strconv.ParseUint(text, 10, 16)
	if err != nil {
		return nil, fmt.Errorf("server %q: %w", name, err)
	}
	return s.serverAt(host, uint16(port), s.home.secure), nil
}

// serverAt returns the server at host and port. Servers are shared by all clients.
func (s *service) serverAt(host string, port uint16, secure bool) *server {
	host = strings.ToLower(host)
	at := server{host: host, port: port, secure: secure, name: net.JoinHostPort(host, strconv.Itoa(int(port)))}
	if at.name == s.home.name && secure == s.home.secure {
		return s.home
	}
	return s.servers.Get(at, func() *server {
		shared := at // so that only a new server is allocated
		return &shared
	})
}
