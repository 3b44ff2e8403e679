package tpc

import (
	"cmp"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"maps"
	"net"
	"net/http"
	"net/http/httptrace"
	"net/url"
	"slices"
	"strings"
	"sync"
	"time"

	"weir/internal/trust"
)

// A Target is a file at an endpoint, with the credentials for it.
type Target struct {
	URL   string // http or https
	Token string // bearer token, a secret; may be empty
	Pin   string // SHA-256 of the endpoint's certificate in hex, if that is self-made; "": authorities decide

	// Servers are others that may receive Token, Cert and Header if the URL's server redirects,
	// such as the data servers of its cluster; written as in Guard.Hosts. Requests to all other
	// servers that a redirect leads to are sent without it.
	Servers []string

	Cert   *tls.Certificate // client certificate, for https only, or nil. It is sent to the same servers as Token
	Guard  *Guard           // the servers that may be contacted for it, besides the client's own guard; nil: any server
	Header http.Header      // sent with every question about it, in this case; may be nil
}

// Headers of a Target without credentials. gfal2 sends the same.
const (
	SciTag          = "SciTag"          // label of the flows of its bytes, for the networks on their way
	ArchiveMetadata = "ArchiveMetadata" // hints for the tape system of the destination: Base64 of JSON
)

// Options configure New.
type Options struct {
	TLS   *tls.Config       // authorities, client certificates; nil is the system's
	Pins  map[string]string // certificates by HOST:PORT, in lower case: SHA-256 in hex, instead of authorities and of the pin of a Target
	Guard *Guard            // nil: the source of the URLs may reach all servers that this machine can reach
	Name  string            // as User-Agent; "" is weir
}

// A Client sends requests to endpoints. Its methods may be called by many goroutines at once. Close
// ends it.
type Client struct {
	o       Options
	nearest map[Area]*Guard // of redirects, by the area of their source
	mu      sync.Mutex
	ways    map[way]*http.Transport
	silent  map[string]silence // endpoints that report no checksums, by HOST:PORT
	sums    Sums
	kinds   Kinds
}

// A way has the connections to an endpoint.
type way struct {
	pin   string
	cert  *tls.Certificate
	once  bool // on a connection of its own
	bulk  bool // requests or responses contain the bytes of files
	guard *Guard
	near  *Guard // of redirects
}

// mostWays bounds the ways that are kept: clients of a COPY may send any pin.
const mostWays = 1000

// New returns a Client.
func New(o Options) *Client {
	o.Name = cmp.Or(o.Name, "weir")
	c := &Client{o: o, nearest: map[Area]*Guard{}, ways: map[way]*http.Transport{}, silent: map[string]silence{}}
	for _, area := range []Area{Public, Network, Loopback} {
		c.nearest[area] = &Guard{Hosts: []string{"*"}, Upto: area}
	}
	return c
}

// Close closes idle connections.
func (c *Client) Close() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.forget()
}

// forget drops all ways. Requests in progress on them continue.
func (c *Client) forget() {
	for _, w := range c.ways {
		w.CloseIdleConnections()
	}
	clear(c.ways)
}

// dialTime limits the time for a connection, including the TLS handshake.
const dialTime = 20 * time.Second

// twice reports whether a request may be repeated if its connection broke. A request that may not
// be repeated has a connection of its own: XRootD closes idle connections, often just when the next
// request comes, and it would be unknown whether that request was processed.
func twice(method string) bool {
	return method != "COPY" && method != "MOVE" && method != http.MethodPut && method != http.MethodPost
}

// way returns the transport for an endpoint.
func (c *Client) way(to way) *http.Transport {
	c.mu.Lock()
	defer c.mu.Unlock()
	if w := c.ways[to]; w != nil {
		return w
	}
	if len(c.ways) == mostWays {
		c.forget()
	}
	pin := to.pin
	dialer := Dialer(dialTime, c.o.Guard, to.guard, to.near)
	conf := &tls.Config{}
	if c.o.TLS != nil {
		conf = c.o.TLS.Clone()
	}
	conf.MinVersion, conf.NextProtos = max(conf.MinVersion, tls.VersionTLS12), nil
	if conf.ClientSessionCache == nil || to.cert != nil {
		conf.ClientSessionCache = tls.NewLRUClientSessionCache(256)
	}
	if pin != "" {
		trust.Pin(conf, pin)
	}
	if to.cert != nil { // even if the server does not list its authority, as some do not
		conf.GetClientCertificate = func(*tls.CertificateRequestInfo) (*tls.Certificate, error) { return to.cert, nil }
	}
	only1 := new(http.Protocols)
	only1.SetHTTP1(true) // HTTP/2 is slower here, and XRootD before 5.7 has trouble with it
	w := &http.Transport{
		DialContext: dialer.DialContext, TLSClientConfig: conf, TLSHandshakeTimeout: dialTime, Protocols: only1,
		MaxIdleConnsPerHost: 32, IdleConnTimeout: 30 * time.Second, ExpectContinueTimeout: 10 * time.Second,
		DisableCompression: true, DisableKeepAlives: to.once, MaxResponseHeaderBytes: 64 << 10,
		// no proxy: it would be contacted instead of the address that the guard has checked
	}
	w.ReadBufferSize = 1 << 10 // thousands of copies wait for their responses at once
	if to.bulk {
		w.WriteBufferSize, w.ReadBufferSize = 256<<10, 256<<10
	}
	c.ways[to] = w
	return w
}

// A Request is one question to an endpoint.
type Request struct {
	Method string
	Target Target
	Header http.Header                   // sent with this spelling; may be nil
	Body   func() (io.ReadCloser, error) // called again after a redirect; may be nil
	Length int64                         // of Body

	near  *Guard // of redirects
	alone bool   // on a connection of its own
}

// maxRedirects is the largest number of redirects of a request.
const maxRedirects = 5

// Do sends a request. It follows redirects itself, with the same method and headers; never from
// https to http, and never nearer to this machine than the redirecting server is (from the public
// internet to a private network, or to this machine). Credentials stay with the URL's scheme, host
// and port, and with the target's Servers. The caller closes the response's body. An error is an
// *Error, also if ctx ended.
func (c *Client) Do(ctx context.Context, r Request) (*http.Response, error) {
	at, err := url.Parse(r.Target.URL)
	if err != nil {
		return nil, &Error{Kind: Unsupported, Text: fmt.Sprintf("%s: the URL cannot be read", r.Method), Err: errors.New("no URL")}
	}
	home := at
	for range maxRedirects + 1 {
		hop, known := r, r.Target.trusts(home, at)
		if !known {
			hop = r.bare()
		}
		res, from, err := c.once(ctx, hop, at)
		switch {
		case err != nil:
			if e, is := errors.AsType[*Error](err); is && at != home && r.Method == http.MethodPut {
				e.Begun = true // dCache makes the file before it redirects
			}
			return nil, err
		case res.StatusCode == http.StatusExpectationFailed && r.Header["Expect"] != nil:
			end(res)
			r.Header = maps.Clone(r.Header)
			delete(r.Header, "Expect")
			continue
		case !redirects(res.StatusCode):
			if !known && kindOfStatus(res.StatusCode) == Denied {
				end(res)
				return nil, &Error{Kind: Denied, Status: res.StatusCode,
					Text: fmt.Sprintf("%s: %s redirects to %s, which answers %d: credentials for %s are not shown to it", r.Method, home.Host, at.Host,
						res.StatusCode, home.Host)}
			}
			return res, nil
		}
		to, err := at.Parse(res.Header.Get("Location"))
		end(res)
		switch {
		case err != nil || res.Header.Get("Location") == "":
			return nil, &Error{Kind: Broken, Status: res.StatusCode, Text: fmt.Sprintf("%s: %s redirects to nowhere", r.Method, at.Host)}
		case at.Scheme == "https" && to.Scheme != "https":
			return nil, &Error{Kind: Denied, Status: res.StatusCode, Text: fmt.Sprintf("%s: %s redirects from https to %.10q: not followed",
				r.Method, at.Host, to.Scheme)}
		}
		if hostPort(to) != hostPort(at) {
			r.Target.Pin = "" // it is the certificate of the original server
		}
		if r.lends() && !r.Target.trusts(home, to) {
			return nil, &Error{Kind: Denied, Status: res.StatusCode,
				Text: fmt.Sprintf("%s: %s redirects to %s, which may not see the other site's credentials: not followed", r.Method, home.Host, to.Host)}
		}
		r.near = c.nearer(from)
		at = to
	}
	return nil, &Error{Kind: Broken, Text: fmt.Sprintf("%s: %s redirects more than %d times", r.Method, at.Host, maxRedirects)}
}

// trusts reports whether the server of a URL may see the target's credentials, which
// are for home.
func (t *Target) trusts(home, at *url.URL) bool {
	if at.Scheme == home.Scheme && hostPort(at) == hostPort(home) {
		return true
	}
	return (at.Scheme == "https" || home.Scheme == "http") && slices.ContainsFunc(t.Servers, func(s string) bool { return matches(s, at) })
}

// Trusts reports whether a server that a redirect leads to may have the target's credentials.
func (t *Target) Trusts(at *url.URL) bool {
	home, err := url.Parse(t.URL)
	return err == nil && t.trusts(home, at)
}

// TokenAt returns the target's Token if a server that a redirect leads to may receive it, otherwise
// "".
func (t *Target) TokenAt(at *url.URL) string {
	if !t.Trusts(at) {
		return ""
	}
	return t.Token
}

// lends reports whether a request has another site's credentials in its headers.
func (r *Request) lends() bool {
	for name := range r.Header {
		to, ok := Forwarded(name)
		if ok && !strings.EqualFold(to, SciTag) && !strings.EqualFold(to, ArchiveMetadata) {
			return true
		}
	}
	return false
}

// bare returns the request without the target's credentials.
func (r Request) bare() Request {
	r.Target.Token, r.Target.Header, r.Target.Cert = "", nil, nil
	return r
}

// nearer returns the guard for redirects from an address: they must not lead nearer to this machine
// than that address is.
func (c *Client) nearer(from net.Addr) *Guard {
	area := Public
	if at, ok := from.(*net.TCPAddr); ok {
		area = AreaOf(at.AddrPort().Addr())
	}
	if area == Special { // link-local: a neighbor
		area = Network
	}
	return c.nearest[area]
}

// hostPort returns the server of a URL, as HOST:PORT in lower case.
func hostPort(u *url.URL) string {
	port := u.Port()
	if port == "" {
		port = map[string]string{"http": "80", "https": "443"}[u.Scheme]
	}
	return net.JoinHostPort(strings.ToLower(strings.TrimSuffix(u.Hostname(), ".")), port)
}

func redirects(code int) bool {
	switch code {
	case http.StatusMovedPermanently, http.StatusFound, http.StatusTemporaryRedirect, http.StatusPermanentRedirect:
		return true
	}
	return false
}

// once sends a request to one server, without following redirects. from is the server's address.
func (c *Client) once(ctx context.Context, r Request, at *url.URL) (res *http.Response, from net.Addr, err error) {
	refuse := func(err error) error {
		return &Error{Kind: Denied, Text: fmt.Sprintf("%s %s: %v", r.Method, at.Host, err), Err: err}
	}
	for i, g := range []*Guard{c.o.Guard, r.Target.Guard, r.near} {
		if g == nil || i == 2 && at.Scheme != "http" && at.Scheme != "https" { // that is reported below
			continue
		}
		if err := g.Check(at); err != nil {
			return nil, nil, refuse(err)
		}
	}
	ctx = httptrace.WithClientTrace(ctx, &httptrace.ClientTrace{GotConn: func(i httptrace.GotConnInfo) { from = i.Conn.RemoteAddr() }})
	req, err := http.NewRequestWithContext(ctx, r.Method, at.String(), nil)
	if err != nil || req.URL.Host == "" || req.URL.Scheme != "http" && req.URL.Scheme != "https" {
		return nil, nil, &Error{Kind: Unsupported, Text: fmt.Sprintf("%s: the URL cannot be used", r.Method)}
	}
	req.URL.User = nil
	maps.Copy(req.Header, r.Target.Header)
	maps.Copy(req.Header, r.Header)
	req.Header.Set("User-Agent", c.o.Name)
	if r.Target.Token != "" {
		req.Header.Set("Authorization", "Bearer "+r.Target.Token)
	}
	if r.Body != nil {
		if req.Body, err = r.Body(); err != nil {
			return nil, nil, &Error{Kind: Failed, Text: fmt.Sprintf("%s: the file cannot be read", r.Method), Err: err}
		}
		if req.ContentLength = r.Length; r.Length == 0 {
			_ = req.Body.Close()
			req.Body = http.NoBody
		}
	}
	if twice(r.Method) {
		req.Header["Idempotency-Key"] = nil // the transport may repeat the request; it is not sent
	}
	pin := r.Target.Pin
	if known := c.o.Pins[hostPort(at)]; known != "" {
		pin = known
	}
	bulk := r.Method == http.MethodGet || r.Method == http.MethodPut
	res, err = c.way(way{pin, r.Target.Cert, r.alone || !twice(r.Method), bulk, r.Target.Guard, r.near}).RoundTrip(req)
	if errors.Is(err, ErrRefused) {
		return nil, nil, refuse(err)
	}
	if err != nil {
		return nil, nil, unreachable(r.Method, at.Host, err)
	}
	return res, from, nil
}

// unreachable describes an error without the whole URL, which may have secrets.
func unreachable(method, host string, err error) *Error {
	e := &Error{Kind: Broken, Begun: true, Text: fmt.Sprintf("%s %s: %v", method, host, err), Err: err} // it may have been heard
	var op *net.OpError
	var name *net.DNSError
	var cert *tls.CertificateVerificationError
	if errors.As(err, &op) && op.Op == "dial" || errors.As(err, &name) || errors.As(err, &cert) || errors.Is(err, trust.ErrPin) {
		e.Kind, e.Begun = Unreachable, false
	}
	return e
}

// maxText limits the text that is read of a response.
const maxText = 4 << 10

func readSome(r io.Reader) string {
	b, _ := io.ReadAll(io.LimitReader(r, maxText)) // after an error the text read so far is used
	return string(b)
}

// FirstLine returns the first line of an endpoint's text that is not empty, without control
// characters and shortened. It returns "" for a page of HTML, which adds nothing to the status.
func FirstLine(text string) string {
	for line := range strings.Lines(text) {
		line = strings.TrimSpace(strings.Map(func(r rune) rune {
			if r < ' ' || r == 0x7f || r == '\uFFFD' {
				return ' '
			}
			return r
		}, line))
		if line == "" {
			continue
		}
		if strings.HasPrefix(line, "<") {
			break
		}
		if len(line) > 300 {
			line = strings.ToValidUTF8(line[:300], "") + "..."
		}
		return line
	}
	return ""
}

// end drops an answer whose connection may be used again.
func end(res *http.Response) {
	_, _ = io.CopyN(io.Discard, res.Body, maxText)
	_ = res.Body.Close()
}
