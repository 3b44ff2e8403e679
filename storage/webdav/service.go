package webdav

import (
	"crypto/tls"
	"encoding/base64"
	"errors"
	"fmt"
	"net/url"
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
	shown   string // the target's URL without credentials and query, for errors
	home    *origin
	root    string // escaped path of the target, without a slash at its end
	query   string // "?" and the target's query, or ""
	auth    string // the Authorization line, or ""
	tls     *tls.Config
	dialer  *tcp.Dialer
	calls   sync.Pool  // of *call
	small   *sync.Pool // of *[]byte, for requests and heads
	buffers *sync.Pool // of *[]byte, for payload that has to be read
	methods wireclient.Methods[*call]
	origins wireclient.Shared[string, *origin] // data servers by scheme and name

	puts       atomic.Int32 // putsUnknown, putsKept, putsRedirected
	noPropfind atomic.Bool  // the server does not know the method
}

func open(t storage.Target) (storage.Service, error) {
	if t.URL == nil {
		return nil, errors.New("webdav: no target URL")
	}
	home, err := originOf(t.URL)
	if err != nil {
		return nil, fmt.Errorf("webdav: target %s: %w", redact.URL(t.URL.String()), err)
	}
	home.trusted = true
	s := &service{
		home: home, root: strings.TrimRight(t.URL.EscapedPath(), "/"), query: queryOf(t.URL),
		tls: t.Cred.TLS, dialer: tcp.NewDialer(t.Reach),
		small: wireclient.NewBuffers(bufferSize), buffers: wireclient.NewBuffers(256 << 10), methods: methods(),
	}
	s.shown = home.scheme() + "://" + home.authority + s.root
	if err = t.InClear(); err == nil {
		s.auth, err = authorization(t)
	}
	if err != nil {
		return nil, fmt.Errorf("webdav: target %s: %w", s.shown, err)
	}
	if s.tls == nil {
		s.tls = &tls.Config{MinVersion: tls.VersionTLS12}
	}
	s.calls.New = func() any { return newCall() }
	return s, nil
}

// queryOf returns the query of u as it may stand in a request.
func queryOf(u *url.URL) string {
	if u.RawQuery == "" {
		return ""
	}
	return "?" + string(appendPrintable(nil, u.RawQuery))
}

// authorization returns the header line that proves who we are.
func authorization(t storage.Target) (string, error) {
	user, password := t.Cred.User, t.Cred.Password
	method := t.Cred.Method
	if in := t.URL.User; in != nil && method == "" {
		user = in.Username()
		password, _ = in.Password()
	}
	switch {
	case method == storage.TokenAuth || method == "" && t.Cred.Token != "":
		if t.Cred.Token == "" {
			return "", errors.New("method token needs a token")
		}
		if strings.ContainsFunc(t.Cred.Token, func(r rune) bool { return r <= ' ' || r >= 0x7f }) {
			return "", errors.New("the token has characters that no token has: white space, control or non-ASCII characters")
		}
		return "Authorization: Bearer " + t.Cred.Token + "\r\n", nil
	case method == storage.BasicAuth || method == "" && user != "":
		if strings.Contains(user, ":") {
			return "", fmt.Errorf("user %q has a colon, which basic authentication cannot send", user)
		}
		return "Authorization: Basic " + base64.StdEncoding.EncodeToString([]byte(user+":"+password)) + "\r\n", nil
	case method == "", method == storage.NoAuth, method == storage.X509Auth:
		return "", nil
	}
	return "", fmt.Errorf("auth method %q: use one of none, basic, token, x509: %w", method, errors.ErrUnsupported)
}

// Client returns a new client. It does not touch the network.
func (s *service) Client() storage.Client { return &client{s: s, home: link{origin: s.home}} }

// Close frees what the service holds; its clients are closed before.
func (s *service) Close() error { return s.dialer.Close() }
