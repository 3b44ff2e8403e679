package ftp

import (
	"errors"
	"fmt"
	"net"
	"net/netip"
	"net/url"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"

	"weir/internal/redact"
	"weir/internal/tcp"
	"weir/storage"
)

// A service is what all clients of one target share.
type service struct {
	shown  string // the target's URL without credentials, for errors
	host   string
	port   uint16
	root   string // path of the target, unescaped, without a slash at its end
	user   string
	pass   string
	linked bool // servers are reached at other addresses than their own
	local  bool // the target is on this machine by its very name
	dialer *tcp.Dialer

	calls   sync.Pool // of *call
	small   sync.Pool // of *[]byte, for commands and replies
	buffers sync.Pool // of *[]byte, for payload that has to be read
	hosts   hosts

	// What the server turned out not to know.
	noFacts, noPartial, noMachineList, noBlocks atomic.Bool
	ascii                                       atomic.Bool // it is Globus's, which drops bytes above 127 from commands
}

func open(t storage.Target) (storage.Service, error) {
	if t.URL == nil {
		return nil, errors.New("ftp: no target URL")
	}
	s := &service{host: strings.ToLower(t.URL.Hostname()), port: 21, root: strings.TrimRight(t.URL.Path, "/"), linked: t.Reach != nil, dialer: tcp.NewDialer(t.Reach)}
	if err := s.address(t.URL); err != nil {
		return nil, fmt.Errorf("ftp: target %s: %w", redact.URL(t.URL.String()), err)
	}
	if err := s.credentials(t); err != nil {
		return nil, fmt.Errorf("ftp: target %s: %w", s.shown, err)
	}
	s.calls.New = func() any { return newCall() }
	s.small.New = func() any {
		b := make([]byte, bufferSize)
		return &b
	}
	s.buffers.New = func() any {
		b := make([]byte, 256<<10)
		return &b
	}
	return s, nil
}

// address notes where u leads.
func (s *service) address(u *url.URL) error {
	switch strings.ToLower(u.Scheme) {
	case "ftp":
	case "gsiftp":
		return fmt.Errorf("weir does not speak GSI itself: use client: gfal-copy, or client: globus-url-copy, with auth: {method: x509, proxy_file: ...}: %w", errors.ErrUnsupported)
	default:
		return fmt.Errorf("scheme %q: use ftp", u.Scheme)
	}
	if s.host == "" {
		return errors.New("no host")
	}
	if strings.ContainsFunc(s.host, func(r rune) bool { return r <= ' ' || r >= 0x7f || strings.ContainsRune(`/\?#@<>"`, r) }) {
		return fmt.Errorf("host %q has characters that no host name has", s.host)
	}
	if p := u.Port(); p != "" {
		n, err := strconv.ParseUint(p, 10, 16)
		if err != nil || n == 0 {
			return fmt.Errorf("port %q: use 1 to 65535", p)
		}
		s.port = uint16(n)
	}
	if u.RawQuery != "" {
		return errors.New("FTP has no queries: a question mark in a path is written %3F")
	}
	if err := sendable(s.root); err != nil {
		return fmt.Errorf("path: %w", err)
	}
	name := net.JoinHostPort(s.host, strconv.Itoa(int(s.port)))
	a, err := netip.ParseAddr(s.host)
	s.local = s.host == "localhost" || err == nil && a.Unmap().IsLoopback()
	s.shown = "ftp://" + name + (&url.URL{Path: s.root}).EscapedPath()
	return nil
}

// credentials notes who the clients are.
func (s *service) credentials(t storage.Target) error {
	s.user, s.pass = "anonymous", "weir@"
	method := t.Cred.Method
	user, pass := t.Cred.User, t.Cred.Password
	if in := t.URL.User; in != nil && method == "" {
		user = in.Username()
		pass, _ = in.Password()
	}
	switch {
	case method == "basic" || method == "" && user != "":
		s.user, s.pass = user, pass
	case method == "" || method == "none":
	case method == "x509":
		return fmt.Errorf("auth method x509: FTP has no certificates: use a gsiftp URL with client: gfal-copy or client: globus-url-copy: %w", errors.ErrUnsupported)
	default:
		return fmt.Errorf("auth method %q: use none or basic: %w", method, errors.ErrUnsupported)
	}
	for what, text := range map[string]string{"user": s.user, "password": s.pass} {
		if sendable(text) != nil {
			return fmt.Errorf("the %s has characters that no FTP command can have", what)
		}
	}
	return nil
}

// sendable refuses what would end a command or mean something to Telnet, which
// the control connection follows (RFC 959, 2.3 and 4.1).
func sendable(text string) error {
	for i := range len(text) {
		if c := text[i]; c < ' ' || c == 0x7f || c == 0xff {
			return fmt.Errorf("%q: byte %#02x cannot stand in a command of FTP", text, c)
		}
	}
	return nil
}

// Client returns a new client. It does not touch the network.
func (s *service) Client() storage.Client { return &client{s: s} }

// Close frees what the service holds; its clients are closed before.
func (s *service) Close() error { return s.dialer.Close() }

// hosts keeps one text for each data server, which thousands of clients share.
type hosts struct {
	mu    sync.RWMutex
	known map[netip.Addr]string
}

func (h *hosts) of(a netip.Addr) string {
	h.mu.RLock()
	name, ok := h.known[a]
	h.mu.RUnlock()
	if ok {
		return name
	}
	name = a.String()
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.known == nil {
		h.known = map[netip.Addr]string{}
	}
	if len(h.known) < 4096 { // more is a fault of the service, not a reason to grow
		h.known[a] = name
	}
	return name
}
