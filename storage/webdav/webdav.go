// Package webdav is the driver for HTTP/1.1 and WebDAV: nginx, Apache, XRootD, dCache, StoRM, EOS and others.
//
// Its HTTP client is built for many clients: a request on a kept connection allocates nothing, payload that is not
// checked is discarded in the kernel, uploads are sent from shared memory, and an idle client holds a socket and a
// few hundred bytes.
//
// # Operations
//
// A Read is one GET, or one ranged GET for each of Op.Ranges in turn. With Op.Chunk each request is
// for at most that many bytes. Requests are not pipelined, because many servers reply to pipelined
// requests incorrectly; Op.Ahead has no effect. Payload is discarded in the kernel if its length is
// known and Op.Sum is not used, over TLS without being decrypted (package internal/tlsconn);
// otherwise it is read into a shared buffer.
//
// A Write is one PUT of Op.Size bytes of package content from Op.Seed. Stat is HEAD, List is
// PROPFIND or else the server's listing for browsers in JSON or HTML, Mkdir is MKCOL, Remove is
// DELETE, Move is MOVE without overwriting (XRootD overwrites nevertheless), Checksum is HEAD with
// Want-Digest. Login connects and requests the head of the target itself; it fails only if the
// answer is a refusal or a server error.
//
// # Third-party copies
//
// A Copy is a COPY with the header Source to the target, or, if the origin pushes, with Destination
// to the origin (package internal/tpc). The bytes are counted as the performance markers report
// them, and the rest with the success. Existing files are not replaced. The passive end's token or
// password is sent to the active end as TransferHeaderAuthorization, instead of a client
// certificate a macaroon that the passive end makes for it. A COPY with such credentials does not
// follow redirects to other servers. The end of the operation closes the connection, with which
// the server gives the copy up.
//
// # Sessions
//
// A client keeps one connection to the target and up to four to data servers that it was redirected
// to. A kept connection that the server has closed is replaced once if no byte of a response was
// read; the operation then reports Connected, and Result.Wire counts both attempts. A request is
// also repeated with credentials that were renewed and, after status 417, without Expect. Nothing
// else is retried.
//
// An upload to a target that has redirected an upload waits a second for 100 Continue before it
// sends its body, ten seconds if the target then redirects. To a target that never sends 100, later
// uploads do not send Expect.
//
// XRootD up to 5.9.0 answers some requests with 404, 500 or 501 only because the previous request
// on the connection, usually a checksum, is not finished. Such an answer is storage.ErrBusy: the
// file may exist.
//
// # S3
//
// With the method S3Auth the target is a folder of a bucket of S3, and requests are signed. List is
// ListObjectsV2, Mkdir writes an empty object whose name ends in a slash, Checksum is md5 from the
// ETag or a stored crc32c. Remove first sends HEAD, since DELETE also succeeds if there is no
// object. Move is not supported.
//
// # Credentials
//
// Passwords and tokens are sent to the scheme, host and port of the target only, as in transfers
// (package tpc) and by curl. For other servers that it redirects to, another port of the same host
// among them, the redirect's query carries the authorization. A client certificate is presented to
// any server that requests one, as it reveals no secret. TLS sessions are resumed according to
// Target.Resume; otherwise every login is a full handshake, as it is for jobs on many machines.
package webdav

import (
	"context"
	"crypto/tls"
	"encoding/base64"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"sync/atomic"

	"weir/internal/redact"
	"weir/internal/tcp"
	"weir/internal/tlsconn"
	"weir/storage"
	"weir/storage/wireclient"
)

// Driver returns the driver for http, https, dav and davs URLs.
func Driver() storage.Driver {
	return storage.Driver{
		Name:      storage.WebDAV,
		Schemes:   []string{"http", "https", "dav", "davs"},
		Kinds:     methods().Kinds(),
		OpenFiles: func(int) int { return 2 }, // the target, and a data server that it redirects to
		Ports:     true,
		Open:      func(_ context.Context, t storage.Target) (storage.Service, error) { return open(t) },
	}
}

// A service is the state that all clients of one target share.
type service struct {
	url     *url.URL
	shown   string // the target's URL without credentials and query, for errors
	home    *origin
	root    string // escaped path of the target, without a slash at its end
	query   string // "?" and the target's query, or ""
	cred    storage.Credentials
	secret  *storage.Renewable[string] // token or password; nil: no secret is sent
	line    func(secret string) string // returns the Authorization line
	latest  atomic.Pointer[proof]      // of line
	bucket  *bucket                    // nil: not S3
	tls     *tls.Config
	dialer  *tcp.Dialer
	calls   sync.Pool  // of *call
	small   *sync.Pool // of *[]byte, for requests and heads
	buffers *sync.Pool // of *[]byte, for payload that has to be read
	records tlsconn.Pool
	resume  storage.Resumption
	tickets tlsconn.Tickets // of all clients
	methods wireclient.Methods[*call]
	origins wireclient.Shared[string, *origin] // data servers by scheme and name
	passive *passiveEnd                        // of the copies that the server makes; nil: it makes no copies
	pusher  *service                           // its clients make the copies of the clients; nil: they do that themselves

	puts       atomic.Int32 // putsUnknown, putsKept, putsRedirected
	expect     atomic.Int32 // expectShortly, expectPatiently, expectNever
	noPropfind atomic.Bool  // the server does not support the method
}

func open(t storage.Target) (storage.Service, error) {
	s, err := newService(t)
	if err != nil {
		return nil, err
	}
	if err := s.withCopies(t); err != nil {
		return nil, fmt.Errorf("target %s: %w", s.shown, err)
	}
	return s, nil
}

func newService(t storage.Target) (*service, error) {
	if t.URL == nil {
		return nil, errors.New("no target URL")
	}
	home, err := originOf(t.URL)
	if err != nil {
		return nil, fmt.Errorf("target %s: %w", redact.URL(t.URL.String()), err)
	}
	home.trusted = true
	s := &service{
		url: t.URL, cred: t.Cred, home: home, root: strings.TrimRight(t.URL.EscapedPath(), "/"), query: queryOf(t.URL),
		tls: t.Cred.TLS, resume: t.Resume, dialer: tcp.NewDialer(t.Reach),
		small: wireclient.NewBuffers(bufferSize), buffers: wireclient.NewBuffers(256 << 10), methods: methods(),
	}
	s.shown = home.scheme() + "://" + home.authority + s.root
	if t.Cred.Method == storage.S3Auth {
		s.methods = bucketMethods()
		s.secret = t.Cred.Secret()
		s.bucket, s.root, err = newBucket(t)
	} else if err = t.InClear(); err == nil {
		s.secret, s.line, err = authorization(&t)
	}
	if err != nil {
		return nil, fmt.Errorf("target %s: %w", s.shown, err)
	}
	if s.tls == nil {
		s.tls = &tls.Config{MinVersion: tls.VersionTLS12}
	}
	s.calls.New = func() any { return newCall(s) }
	return s, nil
}

// queryOf returns the query of u, escaped for a request.
func queryOf(u *url.URL) string {
	if u.RawQuery == "" {
		return ""
	}
	return "?" + string(appendPrintable(nil, u.RawQuery))
}

// authorization returns the secret of the target and the Authorization header line with it, nil if
// the target has no secret.
func authorization(t *storage.Target) (secret *storage.Renewable[string], line func(string) string, err error) {
	user, method := t.Cred.User, t.Cred.Method
	secret = t.Cred.Secret()
	if in := t.URL.User; in != nil && method == "" {
		user = in.Username()
		password, _ := in.Password()
		secret = (&storage.Credentials{Password: password}).Secret()
	}
	switch {
	case method == storage.TokenAuth || method == "" && t.Cred.Token != "":
		if t.Cred.Token == "" {
			return nil, nil, errors.New("method token needs a token")
		}
		bearer := func(token string) string { return "Authorization: Bearer " + token + "\r\n" }
		return t.Cred.Bearer(), bearer, storage.CheckToken(t.Cred.Token)
	case method == storage.BasicAuth || method == "" && user != "":
		if strings.Contains(user, ":") {
			return nil, nil, fmt.Errorf("user %q has a colon, which basic authentication cannot send", user)
		}
		return secret, func(password string) string { return basicLine(user, password) }, nil
	case method == "", method == storage.NoAuth, method == storage.X509Auth:
		return nil, nil, nil
	}
	return nil, nil, fmt.Errorf("auth method %q: use one of none, basic, token, x509, s3: %w", method, errors.ErrUnsupported)
}

func basicLine(user, password string) string {
	return "Authorization: Basic " + base64.StdEncoding.EncodeToString([]byte(user+":"+password)) + "\r\n"
}

// A proof is the secret of a request and the authentication in the request: the Authorization line
// or, for a bucket, the session token.
type proof struct{ secret, shown string }

// proves reports whether requests are authenticated.
func (s *service) proves() bool { return s.secret != nil }

// proofOf returns the proof of requests, with the secrets that read returns.
func (s *service) proofOf(read func(*storage.Renewable[string]) string) proof {
	switch {
	case s.secret == nil:
		return proof{}
	case s.bucket != nil:
		return proof{read(s.secret), read(s.bucket.token)}
	}
	secret := read(s.secret)
	p := s.latest.Load()
	if p == nil || p.secret != secret {
		p = &proof{secret, s.line(secret)}
		s.latest.Store(p)
	}
	return *p
}

// refused reports whether a response may mean that the request's proof is no longer valid. S3 has
// more than one status for that.
func (s *service) refused(status int) bool {
	return s.secret != nil && (status == http.StatusUnauthorized ||
		s.bucket != nil && (status == http.StatusForbidden || status == http.StatusBadRequest))
}

// Client returns a new client. It does not touch the network.
func (s *service) Client() storage.Client {
	return &client{s: s, home: link{origin: s.home}, tickets: wireclient.Tickets(s.resume, &s.tickets)}
}

// Close releases the service's resources; its clients must be closed before.
func (s *service) Close() error {
	var err error
	if s.pusher != nil {
		err = s.pusher.Close()
	}
	if s.passive != nil {
		s.passive.macaroons.close()
	}
	return errors.Join(err, s.dialer.Close())
}
