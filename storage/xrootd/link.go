package xrootd

import (
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	"weir/internal/tcp"
)

// A wire is what a link stands on: a plain connection, TLS on one, or one that
// many clients use.
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
// What has come and is not yet read lies in buf[pos:end]; the buffer is
// borrowed, and only as long as something lies in it.
type link struct {
	s        *service
	server   *server
	wire     wire
	flags    uint32 // what the server says of itself
	demands  demands
	signs    *signer // nil: nothing is signed
	secure   bool    // it is TLS
	opaque   bool    // payload cannot be dropped in the kernel: it is encrypted, or others' is between it
	counted  int64   // bytes that results have told already
	held     *[]byte
	buf      []byte
	pos, end int
	first    uint16 // stream before those that this client may use
}

// base returns the stream before those that the client may use.
func (l *link) base() uint16 { return l.first }

// Lend gives the wire a buffer for what it has to read.
func (l *link) Lend() []byte {
	if l.held == nil {
		l.held = l.s.small.Get().(*[]byte)
		l.buf = *l.held
	}
	if l.pos == l.end {
		l.pos, l.end = 0, 0
	}
	return l.buf[l.end:]
}

// Return takes the buffer back, if nothing lies in it.
func (l *link) Return() {
	if l.held != nil && l.pos == l.end {
		l.s.small.Put(l.held)
		l.held, l.buf, l.pos, l.end = nil, nil, 0, 0
	}
}

func (l *link) close() error {
	if l.wire == nil {
		return nil
	}
	err := l.wire.Close()
	l.pos, l.end = 0, 0
	l.Return()
	l.wire, l.flags, l.counted, l.secure, l.opaque, l.first = nil, 0, 0, false, false, 0
	l.demands, l.signs = demands{}, nil
	return err
}

// need waits until n bytes of an answer's head lie in the buffer; n is at
// most half of bufferSize.
func (l *link) need(n int) error {
	for l.end-l.pos < n {
		if l.pos > 0 && len(l.buf)-l.pos < n {
			l.end = copy(l.buf, l.buf[l.pos:l.end])
			l.pos = 0
		}
		got, err := l.wire.ReadLate(l)
		l.end += got
		if err == nil {
			continue
		}
		return l.ended(err)
	}
	return nil
}

// ended says what an error means in the place of an answer.
//
//go:noinline
func (l *link) ended(err error) error {
	if !errors.Is(err, io.EOF) && !errors.Is(err, io.ErrUnexpectedEOF) {
		return err
	}
	if l.end > l.pos {
		return fmt.Errorf("the server closed the connection in the middle of an answer: %w", io.EOF)
	}
	return fmt.Errorf("the server closed the connection: %w", io.EOF)
}

// take returns the next n bytes of a head, after need. They are valid until
// the next read.
func (l *link) take(n int) []byte {
	b := l.buf[l.pos : l.pos+n]
	l.pos += n
	return b
}

// read reads payload: what lies in the buffer first.
func (l *link) read(p []byte) (int, error) {
	if l.pos < l.end {
		n := copy(p, l.buf[l.pos:l.end])
		l.pos += n
		return n, nil
	}
	return l.wire.Read(p)
}

var _ wire = (*tcp.Conn)(nil)
