package xrootd

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"net"
	"strings"

	"weir/internal/tcp"
	"weir/storage"
	"weir/storage/wireclient"
)

// A secured is a connection with TLS on it.
type secured struct {
	wire
	tls *tls.Conn
}

var _ wire = secured{}

// slice is how many bytes go through TLS between two reports.
const slice = 64 << 10

// ReadLate waits with a buffer: TLS has its own, which nobody can see into.
func (c secured) ReadLate(l tcp.Lender) (int, error) { return c.tls.Read(l.Lend()) }

// Read reads what was encrypted.
func (c secured) Read(p []byte) (int, error) { return c.tls.Read(p) }

// Write encrypts and sends.
func (c secured) Write(p []byte) (int, error) { return c.tls.Write(p) }

// WriteMore is Write: records are not held back.
func (c secured) WriteMore(p []byte) (int, error) { return c.tls.Write(p) }

// Send encrypts and sends in slices.
func (c secured) Send(p []byte, moved func(int)) (int, error) {
	return inSlices(p, moved, c.tls.Write)
}

// inSlices writes p in slices and tells of each.
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

// Close says goodbye and closes the connection.
func (c secured) Close() error {
	_ = c.tls.CloseWrite() // nobody waits for an answer to it
	return c.wire.Close()
}

// secure begins TLS with the server at the other end of a link.
func (x *call) secure(l *link) error {
	if l.pos != l.end { // nobody may put words into an encrypted session
		return wireclient.ProtocolError("%d bytes in the clear after the server has agreed on TLS", l.end-l.pos)
	}
	conf := l.s.tls.Clone()
	if conf.ServerName == "" {
		conf.ServerName = l.server.host
	}
	conn, ok := l.wire.(net.Conn)
	if !ok {
		return fmt.Errorf("TLS on %T: %w", l.wire, errors.ErrUnsupported)
	}
	c := tls.Client(conn, conf)
	if err := c.Handshake(); err != nil {
		if errors.Is(err, io.EOF) {
			err = io.ErrUnexpectedEOF
		}
		return &tlsError{err}
	}
	l.wire, l.secure, l.opaque = secured{l.wire, c}, true, true
	x.reach(storage.Secured)
	return nil
}

// A tlsError is a handshake that failed.
type tlsError struct{ err error }

func (e *tlsError) Error() string {
	text := "TLS: " + strings.TrimPrefix(e.err.Error(), "tls: ")
	if unknown := (x509.UnknownAuthorityError{}); errors.As(e.err, &unknown) {
		text += ": name the authority with auth.ca_file or auth.ca_dir"
	}
	return text
}

// Unwrap returns what package tls says.
func (e *tlsError) Unwrap() error { return e.err }
