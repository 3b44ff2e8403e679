// Package xrootd is the driver for the XRootD protocol: XRootD, EOS, dCache, DPM and their
// redirectors.
//
// It is built for many clients: an idle session is a socket and a few hundred bytes, a request on a
// kept session allocates nothing, and payload that is not checked is discarded in the kernel.
//
// # Operations
//
// A Read opens the file, reads it in requests of Op.Chunk bytes (default 8 MiB), Op.Ahead of them
// in flight (default 4), and closes it. The defaults are the same as in xrdcp. Several Op.Ranges
// are one or more vector reads (kXR_readv). With Op.Keep the file stays open for the client's next
// read of it.
//
// Reads and writes are page reads and page writes (kXR_pgread, kXR_pgwrite) where the server
// supports them, as in xrdcp since version 5: the server computes a CRC32C for each page of 4 KiB,
// which costs it more than the transfer. A read with Op.Sum verifies each of them. With Op.Plain,
// in vector reads and over TLS there are no page checksums; xrdcp does the same.
//
// A Write creates the file and fails if it exists. List sends its request to all data servers that
// a redirector names. Login connects and authenticates, or sends a ping if that has been done.
//
// A Copy has the target's server fetch the file from that of the origin, as xrdcp --tpc only does
// without delegated credentials: both servers receive the same key. It fails if the file exists.
// The bytes are counted as the size of the unfinished file grows, which is requested every two
// seconds on a connection of its own. The end of the operation closes the connection to the target,
// with which its server gives the copy up. A copy whose file does not grow for five minutes fails
// with class storage.Timeout; before the first byte and after the last, the time for the whole file
// at 1 MB/s is added.
//
// # Redirectors
//
// Up to 16 redirects are followed, with the opaque information that they add to the path. kXR_wait
// and kXR_waitresp are obeyed and counted, up to the operation's timeout. If a data server fails
// during a read, the client returns to the redirector, names the server that it tried, opens the
// file again and continues from the same offset, up to three times (Result.Reopened). A write is
// never repeated.
//
// # Sessions
//
// A client keeps one connection to the target and up to eight to data servers. A kept connection
// that the server has closed is replaced once if no byte of a response was read. With Target.Shared
// all clients share one connection to each server, as the threads of one program do.
//
// # Credentials
//
// Package security has unix, krb5 and ztn, package gsi X.509 proxies. They are presented to every
// server that the redirector names, tokens only over TLS. A redirect from roots:// to a server
// without TLS is refused. TLS begins where the server requires it: before the login, after it, or
// for data. Requests are signed (kXR_sigver) as the server requires, with the key that a GSI login
// has agreed on. The other methods agree on no key; servers accept their requests unless signatures
// are forced (sec.level force). Result.Signed counts them. TLS sessions are resumed according to
// Target.Resume; XRootD's own client does not resume TLS sessions.
package xrootd

import (
	"cmp"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net/url"
	"os"
	"strings"
	"sync"
	"time"

	"weir/internal/redact"
	"weir/internal/tcp"
	"weir/internal/tlsconn"
	"weir/storage"
	"weir/storage/wireclient"
	"weir/storage/xrootd/security"
	"weir/storage/xrootd/security/gsi"
)

// Driver returns the driver for root, roots, xroot and xroots URLs.
func Driver() storage.Driver {
	return storage.Driver{
		Name:      storage.XRootD,
		Schemes:   []string{"root", "roots", "xroot", "xroots"},
		Kinds:     methods().Kinds(),
		OpenFiles: func(int) int { return 4 }, // the target; a kept session is redirected to several data servers
		Ports:     true,
		Open:      func(_ context.Context, t storage.Target) (storage.Service, error) { return open(t) },
	}
}

// Sizes of the buffers that clients borrow. A file of a few kilobytes comes in with its head, in one system call.
const (
	bufferSize  = 9 << 10
	payloadSize = 256 << 10
)

// A service is the state that all clients of one target share.
type service struct {
	home    *server
	root    string // path of the target, without a slash at its end
	opaque  string // the target's query
	tls     *tls.Config
	records tlsconn.Pool // buffers of TLS
	resume  storage.Resumption
	tickets tlsconn.Tickets // of all clients
	methods []security.Method
	actions wireclient.Methods[*call]
	user    string
	pid     uint32
	dialer  *tcp.Dialer
	servers wireclient.Shared[server, *server] // data servers
	calls   sync.Pool                          // of *call
	small   *sync.Pool                         // of *[]byte, for answers
	large   *sync.Pool                         // of *[]byte, for payload that has to be in memory
	shared  *sessionPool                       // nil: every client has its own connections
	origin  *service                           // of third-party copies; nil: there are none
	stall   time.Duration                      // longest time in which the file of a copy does not grow
	flow    string                             // opaque information of copies: the label of their flows, or ""
	ask     reporter
}

func open(t storage.Target) (storage.Service, error) {
	s, err := newService(t)
	if err != nil {
		return nil, err
	}
	if err := s.withCopies(t); err != nil {
		return nil, fmt.Errorf("target %s: %w", s.shown(), err)
	}
	return s, nil
}

func newService(t storage.Target) (*service, error) {
	if t.URL == nil {
		return nil, errors.New("no target URL")
	}
	home, err := serverOf(t.URL)
	if err != nil {
		return nil, fmt.Errorf("target %s: %w", redact.URL(t.URL.String()), err)
	}
	s := &service{
		home: home, root: "/" + strings.Trim(t.URL.Path, "/"), opaque: t.URL.RawQuery,
		tls: t.Cred.TLS, resume: t.Resume, dialer: tcp.NewDialer(t.Reach), pid: uint32(os.Getpid()),
		small: wireclient.NewBuffers(bufferSize), large: wireclient.NewBuffers(payloadSize), actions: methods(),
	}
	s.root = strings.TrimRight(s.root, "/")
	if err := checkPath(s.root); err != nil {
		return nil, fmt.Errorf("target %s: %w", redact.URL(t.URL.String()), err)
	}
	if s.methods, s.user, err = methodsOf(t); err != nil {
		return nil, fmt.Errorf("target %s: %w", s.shown(), err)
	}
	if s.tls == nil {
		s.tls = &tls.Config{MinVersion: tls.VersionTLS12}
	}
	s.calls.New = func() any { return newCall(s) }
	if t.Shared {
		s.shared = newSessionPool(s)
	}
	return s, nil
}

// renewals returns how often credentials were renewed since the last call.
func (s *service) renewals() (n int) {
	for _, m := range s.methods {
		if r, ok := m.(interface{ Renewals() int }); ok {
			n += r.Renewals()
		}
	}
	return n
}

// methodsOf returns the authentication methods of the clients, and the user name of their login.
func methodsOf(t storage.Target) ([]security.Method, string, error) {
	cred := t.Cred
	if cred.User == "" && t.URL.User != nil {
		cred.User = t.URL.User.Username()
	}
	if cred.Method == storage.BasicAuth || cred.Method == storage.S3Auth {
		return nil, "", fmt.Errorf("auth method %q: use one of none, unix, krb5, token, x509: %w", cred.Method, errors.ErrUnsupported)
	}
	methods, err := security.New(cred)
	if err != nil {
		return nil, "", err
	}
	if cred.Method == storage.X509Auth {
		m, err := gsi.New(cred)
		if err != nil {
			return nil, "", err
		}
		methods = append(methods, m)
	}
	user := cred.User
	if i := strings.IndexAny(user, "@/"); i > 0 {
		user = user[:i] // a Kerberos principal
	}
	user = cmp.Or(user, os.Getenv("USER"), "weir")
	return methods, user, nil
}

// shown returns the target's URL without credentials and query, for errors.
func (s *service) shown() string {
	return s.home.scheme() + "://" + s.home.name + "/" + s.root
}

func (s *service) url(path string) string {
	if path == "" {
		return s.shown()
	}
	return (&url.URL{Scheme: s.home.scheme(), Host: s.home.name, Path: "/" + s.root + "/" + path}).String()
}

// Client returns a new client. It does not touch the network.
func (s *service) Client() storage.Client {
	return &client{s: s, home: s.link(s.home), tickets: wireclient.Tickets(s.resume, &s.tickets)}
}

// Close releases the service's resources; its clients must be closed before.
func (s *service) Close() error {
	err := s.ask.close()
	if s.origin != nil {
		err = errors.Join(err, s.origin.Close())
	}
	if s.shared != nil {
		s.shared.close()
	}
	return errors.Join(err, s.dialer.Close())
}

// maxPath is the maximum length of a path: no server accepts longer paths.
const maxPath = 8 << 10

// checkPath refuses paths that would leave the target or that the protocol cannot express.
func checkPath(path string) error {
	dotted, odd := false, false
	for i := range len(path) {
		switch path[i] {
		case '.':
			dotted = dotted || i == 0 || path[i-1] == '/'
		case '?', '\n', 0:
			odd = true
		}
	}
	if dotted || odd || len(path) > maxPath {
		return checkOdd(path, odd)
	}
	return nil
}

// checkOdd checks a path that may be invalid.
//
//go:noinline
func checkOdd(path string, odd bool) error {
	switch {
	case len(path) > maxPath:
		return fmt.Errorf("a path of %d bytes: use up to %d: %w", len(path), maxPath, os.ErrInvalid)
	case odd:
		return fmt.Errorf("path %q: a question mark, a line end or a zero cannot stand in a path of this protocol: %w", path, os.ErrInvalid)
	}
	return storage.CheckPath(path)
}
