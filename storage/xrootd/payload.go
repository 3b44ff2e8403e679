package xrootd

import (
	"errors"
	"fmt"
	"io"
	"syscall"

	"weir/storage"
	"weir/storage/wireclient"
)

// payload moves n bytes of a plain read.
func (x *call) payload(l *link, n int64, last bool) error {
	switch {
	case n > x.slot.left:
		return wireclient.ProtocolError("%d bytes at %d in answer to a read of %d", n, x.slot.offset, x.slot.left)
	case n == 0 && !last:
		return wireclient.ProtocolError("a part of an answer to a read with nothing in it")
	}
	if err := x.bytes(l, n); err != nil {
		return err
	}
	return x.partDone(last)
}

// partDone ends a slot after its last answer.
func (x *call) partDone(last bool) error {
	s := x.slot
	if !last {
		return nil
	}
	x.window.free(s)
	if s.left > 0 {
		return fmt.Errorf("%w: the file ends at %d, %d bytes before the end that the server had told", storage.ErrShort, s.offset, s.left)
	}
	return nil
}

// bytes moves the next n bytes of payload: past us, if nobody wants to see
// them, else through the sum and to where they are to go.
func (x *call) bytes(l *link, n int64) error {
	if !x.wanted() && !l.opaque {
		if lies := min(n, int64(l.end-l.pos)); lies > 0 {
			l.take(int(lies))
			x.got(int(lies))
			n -= lies
		}
		l.Return()
		if n == 0 {
			return nil
		}
		_, err := l.wire.Discard(n, x.Discard)
		return cut(err)
	}
	return x.inMemory(l, n, false)
}

// inMemory moves bytes through a buffer: pages that nobody wants to see, or
// payload, which goes through the sum.
//
//go:noinline
func (x *call) inMemory(l *link, n int64, pages bool) error {
	buf := x.c.s.large.Get().(*[]byte)
	defer x.c.s.large.Put(buf)
	for n > 0 {
		got, err := l.read((*buf)[:min(n, payloadSize)])
		switch {
		case got == 0 && err != nil:
			return cut(err)
		case pages:
			x.pages.add(got)
		case got > 0:
			if _, err := x.Dest.WriteAt((*buf)[:got], x.slot.offset); err != nil {
				return err
			}
			x.sum.add(x.slot.offset, (*buf)[:got])
			x.got(got)
		}
		n -= int64(got)
	}
	l.Return()
	return nil
}

// got counts n bytes of the slot that is being answered.
func (x *call) got(n int) {
	x.slot.offset += int64(n)
	x.slot.left -= int64(n)
	x.tellMoved(n)
}

// cut says what the end of a connection means in the middle of payload.
func cut(err error) error {
	if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
		return fmt.Errorf("%w: the server closed the connection in the middle of the data: %w", storage.ErrShort, io.ErrUnexpectedEOF)
	}
	if errors.Is(err, syscall.ECONNRESET) {
		return fmt.Errorf("in the middle of the data: %w", err)
	}
	return err
}
