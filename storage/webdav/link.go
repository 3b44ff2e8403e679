package webdav

import (
	"crypto/tls"
	"fmt"
	"net"
	"net/url"
	"strconv"
	"strings"

	"weir/internal/tcp"
	"weir/internal/tlsconn"
	"weir/storage"
	"weir/storage/wireclient"
)

// A link is a client's connection to one server. Without conn it is closed.
type link struct {
	origin  *origin
	conn    *tcp.Conn
	tls     *tlsconn.Conn
	counted int64 // bytes that results include already
	shown   bool  // the server requested a client certificate and received it
	known   bool  // the service has authenticated the client
	headed  bool  // its last request was HEAD
}

func (l *link) close() error {
	if l.conn == nil {
		return nil
	}
	var err error
	if l.tls != nil {
		err = l.tls.Close()
	} else {
		err = l.conn.Close()
	}
	l.conn, l.tls, l.counted, l.shown, l.known, l.headed = nil, nil, 0, false, false, false
	return err
}

func (l *link) read(p []byte) (int, error) {
	if l.tls != nil {
		return l.tls.Read(p)
	}
	return l.conn.Read(p)
}

// readLate reads into the memory that b lends, as soon as there is data.
func (l *link) readLate(b tcp.Lender) (int, error) {
	if l.tls != nil {
		return l.tls.ReadLate(b)
	}
	return l.conn.ReadLate(b)
}

// quiet reports whether there is nothing to read, see tcp.Conn.Quiet.
func (l *link) quiet() bool { return l.conn.Quiet() && (l.tls == nil || !l.tls.Buffered()) }

func (l *link) write(p []byte, more bool) (int, error) {
	switch {
	case l.tls != nil && more:
		return l.tls.WriteMore(p)
	case l.tls != nil:
		return l.tls.Write(p)
	case more:
		return l.conn.WriteMore(p)
	}
	return l.conn.Write(p)
}

// ask sends p, a request in the memory of b, see tcp.Conn.Ask.
func (l *link) ask(p []byte, b tcp.Lender) error {
	if l.tls == nil {
		return l.conn.Ask(p, b)
	}
	_, err := l.tls.Write(p)
	if err == nil {
		b.Return()
	}
	return err
}

// count adds the link's bytes since the last count to the result.
func (x *exchange) count(l *link) {
	if l.conn == nil {
		return
	}
	x.call.Count(l.conn, &l.counted)
}

// drop closes a link whose state is unknown, or that the server closes.
func (x *exchange) drop(l *link) {
	x.count(l)
	_ = l.close() // the connection is gone in any case
}

// finish leaves the connection in the state that the next request needs, or closes it.
func (x *exchange) finish(l *link) {
	if l.conn != nil && (!x.body.ended || !x.head.keep || x.Pos != x.End) {
		x.drop(l)
	}
}

// skip reads the rest of an unwanted body, if it is short, so that the connection can be kept.
func (x *exchange) skip(l *link) {
	_ = x.collect(l, nil, maxDrain) // finish detects a body that was cut short
	x.finish(l)
}

// connect makes sure that l is open and starts the call's use of it.
func (x *exchange) connect(l *link) error {
	x.server = l.origin
	if l.conn != nil {
		err := l.conn.Begin(x.call.Ctx, x.call.Deadline)
		if err != nil {
			x.drop(l)
		}
		return err
	}
	conn, err := x.c.s.dialer.Dial(x.call.Ctx, l.origin.host, l.origin.port, x.call.Deadline)
	if err != nil {
		return err
	}
	l.conn = conn
	x.call.Reach(storage.Connected)
	if !l.origin.secure {
		return nil
	}
	return x.secure(l)
}

func (x *exchange) secure(l *link) error {
	conf := x.c.s.tls.Clone()
	conf.NextProtos = []string{"http/1.1"}
	conf.ClientSessionCache = x.c.tickets.For(l.origin.name)
	if own := conf.GetClientCertificate; own != nil {
		conf.GetClientCertificate = func(asked *tls.CertificateRequestInfo) (*tls.Certificate, error) {
			cert, err := own(asked)
			l.shown = err == nil && len(cert.Certificate) > 0
			return cert, err
		}
	}
	var err error
	if l.tls, err = x.call.Secure(l.conn, conf, l.origin.host, &x.c.s.records); err != nil {
		x.drop(l)
		return err
	}
	x.call.Reach(storage.Secured)
	return nil
}

// An origin is a server: scheme, host and port.
type origin struct {
	secure    bool
	trusted   bool // may receive the credentials: the target itself
	host      string
	port      uint16
	authority string // as in the Host line
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
	o := &origin{port: 80}
	switch strings.ToLower(u.Scheme) {
	case "http", "dav":
	case "https", "davs":
		o.port, o.secure = 443, true
	default:
		return nil, fmt.Errorf("scheme %q: use one of http, https, dav, davs", u.Scheme)
	}
	var err error
	if o.host, o.port, err = wireclient.HostPort(u, o.port); err != nil {
		return nil, err
	}
	bare, _, zoned := strings.Cut(o.host, "%") // a zone has no meaning on the other side
	if zoned && !strings.Contains(bare, ":") {
		return nil, fmt.Errorf("host %q has a percent sign", o.host)
	}
	port := strconv.Itoa(int(o.port))
	o.name = net.JoinHostPort(o.host, port)
	o.authority = strings.TrimSuffix(net.JoinHostPort(bare, port), map[bool]string{false: ":80", true: ":443"}[o.secure])
	return o, nil
}

// originAt returns the server of u. Servers are shared by all clients.
func (s *service) originAt(u *url.URL) (*origin, error) {
	o, err := originOf(u)
	if err != nil {
		return nil, err
	}
	if o.same(s.home) {
		return s.home, nil
	}
	return s.origins.Get(o.scheme()+"://"+o.name, func() *origin { return o }), nil
}

const hexDigits = "0123456789ABCDEF"

// appendPath appends a path, escaped so that all of it is parsed as a part of a path (RFC 3986).
// Only unreserved characters and slashes stay as they are.
func appendPath(dst []byte, path string) []byte {
	for i := range len(path) {
		c := path[i]
		if c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9' || c == '/' || c == '.' || c == '-' || c == '_' || c == '~' {
			dst = append(dst, c)
			continue
		}
		dst = append(dst, '%', hexDigits[c>>4], hexDigits[c&15])
	}
	return dst
}

// appendPrintable appends text that is escaped already, and escapes only characters that would end
// or break a request line.
func appendPrintable(dst []byte, text string) []byte {
	for i := range len(text) {
		if c := text[i]; c <= ' ' || c >= 0x7f {
			dst = append(dst, '%', hexDigits[c>>4], hexDigits[c&15])
		} else {
			dst = append(dst, c)
		}
	}
	return dst
}

// parseReference parses the Location of a redirect, relative to the URL of the redirected request.
func parseReference(location string, from *origin, path string) (*url.URL, error) {
	base, err := url.Parse(from.scheme() + "://" + from.authority + path)
	if err != nil {
		return nil, err
	}
	return base.Parse(location)
}
