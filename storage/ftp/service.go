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
	"weir/storage/wireclient"
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

	calls   sync.Pool  // of *call
	small   *sync.Pool // of *[]byte, for commands and replies
	buffers *sync.Pool // of *[]byte, for payload that has to be read
	methods wireclient.Methods[*call]
	hosts   wireclient.Shared[netip.Addr, string] // texts of the data servers' addresses

	// What the server turned out not to know.
	noFacts, noPartial, noMachineList, noBlocks atomic.Bool
	ascii                                       atomic.Bool // it is Globus's, which drops bytes above 127 from commands
}

func open(t storage.Target) (storage.Service, error) {
	if t.URL == nil {
		return nil, errors.New("ftp: no target URL")
	}
	s := &service{
		root: strings.TrimRight(t.URL.Path, "/"), linked: t.Reach != nil, dialer: tcp.NewDialer(t.Reach),
		small: wireclient.NewBuffers(bufferSize), buffers: wireclient.NewBuffers(256 << 10), methods: methods(),
	}
	if err := s.address(t.URL); err != nil {
		return nil, fmt.Errorf("ftp: target %s: %w", redact.URL(t.URL.String()), err)
	}
	if err := s.credentials(t); err != nil {
		return nil, fmt.Errorf("ftp: target %s: %w", s.shown, err)
	}
	s.calls.New = func() any { return newCall() }
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
	var err error
	if s.host, s.port, err = wireclient.HostPort(u, 21); err != nil {
		return err
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
	case method == storage.BasicAuth || method == "" && user != "":
		s.user, s.pass = user, pass
	case method == "" || method == storage.NoAuth:
	case method == storage.X509Auth:
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
