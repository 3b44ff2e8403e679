package webdav

import (
	"crypto/tls"
	"errors"
	"io"

	"weir/internal/tcp"
	"weir/storage"
)

// A link is a client's connection to one server. Without conn it is closed.
type link struct {
	origin  *origin
	conn    *tcp.Conn
	tls     *tls.Conn
	counted int64 // bytes that results have told already
	shown   bool  // the server asked for a client certificate and got it
	known   bool  // the service knows who we are
	headed  bool  // its last request was HEAD
}

func (l *link) close() error {
	if l.conn == nil {
		return nil
	}
	err := l.conn.Close()
	l.conn, l.tls, l.counted, l.shown, l.known, l.headed = nil, nil, 0, false, false, false
	return err
}

func (l *link) read(p []byte) (int, error) {
	if l.tls != nil {
		return l.tls.Read(p)
	}
	return l.conn.Read(p)
}

// wait waits until there is something to be read.
func (l *link) wait() error {
	if l.tls != nil {
		return nil // reading will wait: TLS has its own buffers
	}
	return l.conn.Wait()
}

func (l *link) write(p []byte, more bool) (int, error) {
	switch {
	case l.tls != nil:
		return l.tls.Write(p)
	case more:
		return l.conn.WriteMore(p)
	}
	return l.conn.Write(p)
}

// count adds the link's bytes since the last count to the result.
func (x *call) count(l *link) {
	if l.conn == nil {
		return
	}
	x.Count(l.conn, &l.counted)
}

// drop closes a link whose state is not known, or that the server closes.
func (x *call) drop(l *link) {
	x.count(l)
	_ = l.close() // whatever it says, the connection is gone
}

// connect makes sure that l is open and begins the call's part on it.
func (x *call) connect(l *link) error {
	x.server = l.origin
	if l.conn != nil {
		err := l.conn.Begin(x.Ctx, x.Deadline)
		if err != nil {
			x.drop(l)
		}
		return err
	}
	conn, err := x.c.s.dialer.Dial(x.Ctx, l.origin.host, l.origin.port, x.Deadline)
	if err != nil {
		return err
	}
	l.conn = conn
	x.Reach(storage.Connected)
	if !l.origin.secure {
		return nil
	}
	return x.secure(l)
}

func (x *call) secure(l *link) error {
	conf := x.c.s.tls.Clone()
	if conf.ServerName == "" {
		conf.ServerName = l.origin.host
	}
	conf.NextProtos = []string{"http/1.1"}
	if certs := conf.Certificates; len(certs) > 0 && conf.GetClientCertificate == nil {
		conf.GetClientCertificate = func(ask *tls.CertificateRequestInfo) (*tls.Certificate, error) {
			for i := range certs {
				if ask.SupportsCertificate(&certs[i]) == nil {
					l.shown = true
					return &certs[i], nil
				}
			}
			return &tls.Certificate{}, nil // none that this server would take
		}
	}
	l.tls = tls.Client(l.conn, conf)
	if err := l.tls.Handshake(); err != nil {
		x.drop(l)
		if errors.Is(err, io.EOF) {
			err = io.ErrUnexpectedEOF
		}
		return &tlsError{err}
	}
	x.Reach(storage.Secured)
	return nil
}

// A tlsError is a handshake that failed.
type tlsError struct{ err error }

func (e *tlsError) Error() string { return "TLS: " + e.err.Error() }
func (e *tlsError) Unwrap() error { return e.err }
