// Package ftp is the driver for FTP: plain FTP servers, and GridFTP servers that accept anonymous users, passwords or
// X.509 proxies.
//
// It is built for many clients: replies are read into buffers that only running operations hold, payload that is
// not checked is discarded in the kernel, and an idle client holds one socket and a few hundred bytes.
//
// # Operations
//
// A Read of a whole file is one RETR in passive mode, up to the end of its data connection. A range
// is ERET P where the server supports it (GridFTP). Elsewhere it is REST and RETR, closed when the
// range has arrived; bytes that the server has sent beyond it are lost. Op.Chunk has no effect.
//
// With Op.Ahead of 2 or more, that many data connections carry the file in extended block mode
// (MODE E, GridFTP). In this mode the sender connects, so the client listens on the address that
// faces the server's data interface, which PASV names, and the server must be able to reach it. The
// connections are kept for the client's next reads. Without MODE E, for a Read with Op.Sum, whose
// bytes must arrive in order, and over links (Target.Reach), one connection is used. Any host that
// finds the port can connect to it: only a checksum detects foreign bytes.
//
// A Write is STOR of Op.Size bytes of package content from Op.Seed. STOR replaces existing files,
// so the client first checks with MLST or SIZE and fails with fs.ErrExist; it overwrites only a
// file that its own last write left incomplete. A file that another client creates between check
// and STOR is replaced: FTP cannot prevent that. The same holds for Move (RNFR, RNTO). Op.Sync has
// no effect.
//
// Stat is MLST (else SIZE), List is MLSD (else CWD and LIST in the formats of Unix and Windows
// servers), Mkdir MKD, Remove DELE or RMD, Checksum CKSM, Ping NOOP. Login connects and logs in.
//
// # Sessions
//
// A session is a control connection, logged in and set to TYPE I at once, because GridFTP servers
// fix the type when they receive PASV. A kept session that the server has closed is replaced. A
// server's support for ERET, MLST and MLSD is determined from its first reply and remembered for
// all clients.
//
// # Proxies
//
// With a gsiftp URL the client authenticates with AUTH GSSAPI and ADAT (RFC 2228, GFD.20) in the
// format of Globus's GSSAPI: the records of a TLS 1.2 handshake as base64, then a byte that
// indicates whether a proxy is delegated. Commands are sent as ENC; replies have to be protected.
// The server's certificate is verified before the client authenticates. A proxy is delegated if
// Auth.Delegate or Auth.DataChannel requires it: a limited proxy, for at most 12 hours. With
// DataChannel, both sides of a data connection present the proxy (DCAU A); data servers have to
// present a proxy that descends from the client's proxy. Reads then use one connection. Over PROT S
// and P, data is TLS records in user space.
//
// # Data connections
//
// PASV is sent before each transfer, EPSV only over IPv6: EPSV returns a port without an address,
// so data would flow through the address of the control connection, which may be a load balancer.
// The address in a PASV reply may be any other than the target's, as GridFTP servers behind a load
// balancer need, except loopback (unless the target is on loopback), link-local and multicast
// addresses, and ports below 1024. 0.0.0.0 represents the target's address.
//
// Progress.ServedBy receives the address of the data interface without the port, which differs from
// transfer to transfer.
package ftp

import (
	"context"
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

// Driver returns the driver for ftp and gsiftp URLs.
func Driver() storage.Driver {
	return storage.Driver{
		Name:    storage.FTP,
		Schemes: []string{"ftp", "gsiftp"},
		Kinds:   methods().Kinds(),
		OpenFiles: func(inFlight int) int {
			if inFlight > 1 {
				return 2 + inFlight // control connection, listening port, data connections
			}
			return 2 // control and data connection
		},
		Ports: true,
		Open:  func(_ context.Context, t storage.Target) (storage.Service, error) { return open(t) },
	}
}

// A service is the state that all clients of one target share.
type service struct {
	shown  string // the target's URL without credentials, for errors
	host   string
	port   uint16
	root   string // path of the target, unescaped, without a slash at its end
	user   string
	pass   string
	grid   *grid // clients log in with a proxy; nil: with user and password
	linked bool  // servers are reached at addresses other than their own
	local  bool  // the target is on this machine according to its name
	dialer *tcp.Dialer

	calls   sync.Pool  // of *call
	small   *sync.Pool // of *[]byte, for commands and replies
	buffers *sync.Pool // of *[]byte, for payload that has to be read
	methods wireclient.Methods[*call]
	hosts   wireclient.Shared[netip.Addr, string] // texts of the data servers' addresses

	// Features that the server turned out not to support.
	noFacts, noPartial, noMachineList, noBlocks atomic.Bool
	ascii                                       atomic.Bool // it is Globus's server, which drops bytes above 127 from commands
}

func open(t storage.Target) (storage.Service, error) {
	if t.URL == nil {
		return nil, errors.New("no target URL")
	}
	s := &service{
		root: strings.TrimRight(t.URL.Path, "/"), linked: t.Reach != nil, dialer: tcp.NewDialer(t.Reach),
		small: wireclient.NewBuffers(bufferSize), buffers: wireclient.NewBuffers(256 << 10), methods: methods(),
	}
	if err := s.address(t.URL); err != nil {
		return nil, fmt.Errorf("target %s: %w", redact.URL(t.URL.String()), err)
	}
	if err := s.credentials(t); err != nil {
		return nil, fmt.Errorf("target %s: %w", s.shown, err)
	}
	s.calls.New = func() any { return newCall(s) }
	return s, nil
}

// address sets the target's address from u.
func (s *service) address(u *url.URL) error {
	scheme, port := "ftp", uint16(21)
	switch strings.ToLower(u.Scheme) {
	case "ftp":
	case "gsiftp":
		scheme, port = "gsiftp", 2811
	default:
		return fmt.Errorf("scheme %q: use ftp or gsiftp", u.Scheme)
	}
	var err error
	if s.host, s.port, err = wireclient.HostPort(u, port); err != nil {
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
	s.shown = scheme + "://" + name + (&url.URL{Path: s.root}).EscapedPath()
	return nil
}

// credentials sets the identity of the clients.
func (s *service) credentials(t storage.Target) error {
	s.user, s.pass = "anonymous", "weir@"
	if strings.HasPrefix(s.shown, "gsiftp:") {
		return s.certificates(t)
	}
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
		return fmt.Errorf("auth method x509: ftp:// has no certificates: use a gsiftp:// URL: %w", errors.ErrUnsupported)
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

// certificates configures logins with a proxy, to the account mapped to it or to auth.user.
func (s *service) certificates(t storage.Target) (err error) {
	s.user, s.pass = ":globus-mapping:", "dummy" // sent by clients of Globus
	switch t.Cred.Method {
	case "", storage.X509Auth:
	default:
		return fmt.Errorf("auth method %q: gsiftp:// has x509 only: %w", t.Cred.Method, errors.ErrUnsupported)
	}
	if t.URL.User != nil {
		return errors.New("gsiftp:// logs in with a proxy, without user and password in the URL: auth.user names another account")
	}
	if user := t.Cred.User; user != "" {
		if sendable(user) != nil {
			return errors.New("the user has characters that no FTP command can have")
		}
		s.user = user
	}
	s.small = wireclient.NewBuffers(maxReply) // tokens are one line
	s.grid, err = newGrid(t)
	return err
}

// sendable refuses bytes that would end a command or have a meaning in Telnet, which the control
// connection follows (RFC 959, 2.3 and 4.1).
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

// Close releases the service's resources; its clients must be closed before.
func (s *service) Close() error { return s.dialer.Close() }
