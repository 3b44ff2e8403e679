package ftp

import (
	"encoding/base64"
	"encoding/binary"
	"net"
	"time"

	"weir/internal/tcp"
	"weir/storage/wireclient"
)

// recordHeader is the length of the header of a TLS record: type, version and the number of bytes that follow.
const recordHeader = 5

// A recordLimit keeps a reader from reading beyond a TLS record. Package tls reads ahead: bytes
// after the handshake would be lost if they are not TLS any more, and messages could not be
// distinguished.
type recordLimit struct {
	header [recordHeader]byte
	have   int // bytes of the header
	left   int // bytes of the record
}

// most returns the number of bytes, at most n, that may be read.
func (l *recordLimit) most(n int) int {
	if l.left > 0 {
		return min(n, l.left)
	}
	return min(n, recordHeader-l.have)
}

// took processes bytes that were read, at most the number allowed by most.
func (l *recordLimit) took(p []byte) {
	if l.left > 0 {
		l.left -= len(p)
		return
	}
	l.have += copy(l.header[l.have:], p)
	if l.have == recordHeader {
		l.have, l.left = 0, int(binary.BigEndian.Uint16(l.header[3:]))
	}
}

// noConn has the methods of a net.Conn that package tls does not need.
type noConn struct{}

func (noConn) Close() error                     { return nil }
func (noConn) LocalAddr() net.Addr              { return &net.TCPAddr{} }
func (noConn) RemoteAddr() net.Addr             { return &net.TCPAddr{} }
func (noConn) SetDeadline(time.Time) error      { return nil }
func (noConn) SetReadDeadline(time.Time) error  { return nil }
func (noConn) SetWriteDeadline(time.Time) error { return nil }

// A dataRecords is a data connection that is read record by record.
type dataRecords struct {
	*tcp.Conn
	limit recordLimit
}

// Read implements net.Conn.
func (d *dataRecords) Read(p []byte) (int, error) {
	n, err := d.Conn.Read(p[:d.limit.most(len(p))])
	d.limit.took(p[:n])
	return n, err
}

// tokens carry TLS records in tokens of GSSAPI: the bytes that TLS writes are gathered until it
// reads more than has arrived.
type tokens struct {
	noConn
	in, out []byte
	limit   recordLimit
	// exchange sends a token and returns the server's next token; nil: there is no next token,
	// because messages are whole tokens.
	exchange func(token []byte) ([]byte, error)
}

// Read implements net.Conn.
func (t *tokens) Read(p []byte) (int, error) {
	for len(t.in) == 0 {
		if t.exchange == nil {
			return 0, wireclient.ProtocolError("a token that is cut off")
		}
		token, err := t.exchange(t.out)
		if err != nil {
			return 0, err
		}
		t.in, t.out = token, t.out[:0]
		if len(token) == 0 {
			return 0, wireclient.ProtocolError("an empty token")
		}
	}
	n := copy(p[:t.limit.most(len(p))], t.in)
	t.limit.took(t.in[:n])
	t.in = t.in[n:]
	return n, nil
}

// Write implements net.Conn.
func (t *tokens) Write(p []byte) (int, error) {
	t.out = append(t.out, p...)
	return len(p), nil
}

// maxToken is more than the number of bytes of any token: certificates, and the names of a few
// hundred authorities.
const maxToken = 64 << 10

// appendToken decodes the token of a reply in the format of RFC 2228: base64.
func appendToken(b, text []byte) ([]byte, error) {
	if n := base64.StdEncoding.DecodedLen(len(text)); n > maxToken {
		return b, wireclient.ProtocolError("a token of %d bytes: %d are the most", n, maxToken)
	}
	out, err := base64.StdEncoding.AppendDecode(b, text)
	if err != nil {
		return b, wireclient.ProtocolError("a token that is not base64: %q", clip(text, 60))
	}
	return out, nil
}
