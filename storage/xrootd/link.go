package xrootd

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"net/url"
	"strconv"
	"strings"
	"time"

	"weir/internal/tcp"
	"weir/internal/tlsconn"
	"weir/storage"
	"weir/storage/wireclient"
)

// A wire is the transport of a link: a plain connection, TLS on a connection, or a connection that
// many clients share.
type wire interface {
	Begin(ctx context.Context, deadline time.Time) error
	ReadLate(l tcp.Lender) (int, error)
	Read(p []byte) (int, error)
	Write(p []byte) (int, error)
	WriteMore(p []byte) (int, error)
	Discard(n int64, moved func(int)) (int64, error)
	Send(p []byte, moved func(int)) (int, error)
	In() int64
	Out() int64
	Close() error
}

// A link is a client's session with one server. Without a wire it is closed.
type link struct {
	wireclient.Buffer // responses
	s                 *service
	server            *server
	wire              wire
	flags             uint32 // flags that the server announced
	demands           demands
	signs             *signer // nil: nothing is signed
	secure            bool    // it is TLS
	opaque            bool    // payload cannot be dropped in the kernel: data of other clients is between it
	counted           int64   // bytes that results include already
	first             uint16  // stream before the first that this client may use
}

// link returns a link to a server, not open yet.
func (s *service) link(to *server) link {
	return link{s: s, server: to, Buffer: wireclient.Buffer{Pool: s.small}}
}

func (l *link) close() error {
	if l.wire == nil {
		return nil
	}
	err := l.wire.Close()
	l.Release()
	l.wire, l.flags, l.counted, l.secure, l.opaque, l.first = nil, 0, 0, false, false, 0
	l.demands, l.signs = demands{}, nil
	return err
}

// need waits until n bytes of a response's header are in the buffer; n is at most half of
// bufferSize.
func (l *link) need(n int) error {
	for l.End-l.Pos < n {
		if l.Pos > 0 && len(l.Data)-l.Pos < n {
			l.End = copy(l.Data, l.Data[l.Pos:l.End])
			l.Pos = 0
		}
		got, err := l.wire.ReadLate(&l.Buffer)
		l.End += got
		if err == nil {
			continue
		}
		return l.ended(err)
	}
	return nil
}

// ended returns the error of a connection that ended in the place of a response.
//
//go:noinline
func (l *link) ended(err error) error {
	if !errors.Is(err, io.EOF) && !errors.Is(err, io.ErrUnexpectedEOF) {
		return err
	}
	if l.End > l.Pos {
		return fmt.Errorf("the server closed the connection in the middle of an answer: %w", io.EOF)
	}
	return fmt.Errorf("the server closed the connection: %w", io.EOF)
}

// take returns the next n bytes of a header, after need. They are valid until the next read.
func (l *link) take(n int) []byte {
	b := l.Data[l.Pos : l.Pos+n]
	l.Pos += n
	return b
}

// read reads payload, first from the buffer.
func (l *link) read(p []byte) (int, error) {
	if l.Pos < l.End {
		n := copy(p, l.Data[l.Pos:l.End])
		l.Pos += n
		return n, nil
	}
	return l.wire.Read(p)
}

var _ wire = (*tcp.Conn)(nil)

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

// A sealed is a connection with TLS on it whose payload can be discarded without being decrypted.
type sealed struct {
	wire
	tls *tlsconn.Conn
}

var _ wire = sealed{}

// ReadLate reads and decrypts.
func (c sealed) ReadLate(l tcp.Lender) (int, error) { return c.tls.ReadLate(l) }

// Read reads and decrypts.
func (c sealed) Read(p []byte) (int, error) { return c.tls.Read(p) }

// Write encrypts and sends.
func (c sealed) Write(p []byte) (int, error) { return c.tls.Write(p) }

// WriteMore encrypts and sends.
func (c sealed) WriteMore(p []byte) (int, error) { return c.tls.WriteMore(p) }

// Discard drops payload. dropped counts all of it, whether it was decrypted or not.
func (c sealed) Discard(n int64, dropped func(int)) (int64, error) {
	return c.tls.Discard(n, dropped, dropped)
}

// Send encrypts and sends in slices.
func (c sealed) Send(p []byte, moved func(int)) (int, error) { return inSlices(p, moved, c.tls.Write) }

// Close sends close_notify and closes the connection.
func (c sealed) Close() error {
	_ = c.tls.CloseWrite() // there is no answer to wait for
	return c.tls.Close()
}

// A secured is a connection with TLS on it that is shared, so that all of it has to be decrypted.
type secured struct {
	wire
	tls *tls.Conn
}

var _ wire = secured{}

// slice is the number of bytes that are sent over TLS between two reports.
const slice = 64 << 10

// ReadLate waits with a buffer: the buffer of TLS cannot be inspected.
func (c secured) ReadLate(l tcp.Lender) (int, error) { return c.tls.Read(l.Lend()) }

// Read reads and decrypts.
func (c secured) Read(p []byte) (int, error) { return c.tls.Read(p) }

// Write encrypts and sends.
func (c secured) Write(p []byte) (int, error) { return c.tls.Write(p) }

// WriteMore is Write: records are not held back.
func (c secured) WriteMore(p []byte) (int, error) { return c.tls.Write(p) }

// Send encrypts and sends in slices.
func (c secured) Send(p []byte, moved func(int)) (int, error) {
	return inSlices(p, moved, c.tls.Write)
}

// inSlices writes p in slices and reports on each.
func inSlices(p []byte, moved func(int), write func([]byte) (int, error)) (int, error) {
	done := 0
	for done < len(p) {
		n, err := write(p[done:min(done+slice, len(p))])
		done += n
		if moved != nil {
			moved(n)
		}
		if err != nil {
			return done, err
		}
	}
	return done, nil
}

// Close sends close_notify and closes the connection.
func (c secured) Close() error {
	_ = c.tls.CloseWrite() // there is no answer to wait for
	return c.wire.Close()
}

// secure begins TLS with the server at the other end of a link.
func (x *exchange) secure(l *link) error {
	if l.Pos != l.End { // plain text must not become part of the encrypted session
		return wireclient.ProtocolError("%d bytes in the clear after the server has agreed on TLS", l.End-l.Pos)
	}
	l.Return()
	conf, host := l.s.tls.Clone(), l.server.host
	conf.ClientSessionCache = x.c.tickets.For(l.server.name)
	switch conn := l.wire.(type) {
	case *tcp.Conn:
		c, err := x.call.Secure(conn, conf, host, &l.s.records)
		if err != nil {
			return err
		}
		l.wire = sealed{conn, c}
	case net.Conn:
		c, err := x.call.Handshake(conn, conf, host)
		if err != nil {
			return err
		}
		l.wire, l.opaque = secured{l.wire, c}, true
	default:
		return fmt.Errorf("TLS on %T: %w", l.wire, errors.ErrUnsupported)
	}
	l.secure = true
	x.reach(storage.Secured)
	return nil
}
