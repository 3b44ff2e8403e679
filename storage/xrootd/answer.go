package xrootd

import (
	"encoding/binary"

	"weir/storage/wireclient"
)

// collect reads the answer to one question into x.data: all its parts.
func (x *call) collect(l *link, stream uint16) (frame, error) {
	x.data = x.data[:0]
	for empty := 0; ; {
		f, err := x.next(l)
		if err != nil {
			return f, err
		}
		if f.stream != stream {
			return f, strange(f)
		}
		if err := x.gather(l, f.size); err != nil {
			return f, err
		}
		if f.status != stOKSoFar {
			return f, nil
		}
		if f.size > 0 {
			continue
		}
		if empty++; empty > maxEmpty {
			return f, endless()
		}
	}
}

//go:noinline
func endless() error {
	return wireclient.ProtocolError("more than %d parts of an answer with nothing in them", maxEmpty)
}

// maxEmpty is how many parts of an answer may have nothing in them.
const maxEmpty = 100

// strange is an answer that nobody has asked for.
//
//go:noinline
func strange(f frame) error {
	return wireclient.ProtocolError("an answer that was not asked for: stream %d, %s, %d bytes", f.stream, statusName(f.status), f.size)
}

// gather appends the next n bytes to x.data.
func (x *call) gather(l *link, n int64) error {
	if int64(len(x.data))+n > maxAnswer {
		return wireclient.ProtocolError("an answer of more than %d bytes", maxAnswer)
	}
	for n > 0 {
		if err := l.need(1); err != nil {
			return err
		}
		b := l.take(int(min(n, int64(l.end-l.pos))))
		x.data = append(x.data, b...)
		n -= int64(len(b))
	}
	l.Return()
	return nil
}

// next reads the head of the next answer. Answers that were announced for
// later (kXR_waitresp) come as kXR_attn, with their own head inside.
func (x *call) next(l *link) (frame, error) {
	for {
		if err := l.need(headSize); err != nil {
			return frame{}, err
		}
		f, err := parseFrame(l.take(headSize))
		if err != nil {
			return f, err
		}
		switch f.status {
		default:
			return f, nil
		case stWaitResp:
			x.Result.Waits++
			err = x.skip(l, f.size)
		case stAttn:
			var inner frame
			if inner, err = x.attention(l, f); err == nil && inner.status != stAttn {
				return inner, nil
			}
		}
		if err != nil {
			return f, err
		}
	}
}

// attention reads a message that the server sends of its own accord. It
// returns the answer that it carries, or the message itself, read and
// forgotten.
func (x *call) attention(l *link, f frame) (frame, error) {
	const inside = 8 + headSize
	if f.size < 4 {
		return f, wireclient.ProtocolError("an attention of %d bytes", f.size)
	}
	if f.size < inside {
		return f, x.skip(l, f.size)
	}
	if err := l.need(inside); err != nil {
		return f, err
	}
	b := l.take(inside)
	if binary.BigEndian.Uint32(b) != attnResponse {
		return f, x.skip(l, f.size-inside)
	}
	inner, err := parseFrame(b[8:])
	switch {
	case err != nil:
		return f, err
	case inner.status == stAttn || inner.size != f.size-inside:
		return f, wireclient.ProtocolError("%s of %d bytes in an attention of %d", statusName(inner.status), inner.size, f.size)
	}
	return inner, nil
}

// skip reads n bytes of a small answer and forgets them.
func (x *call) skip(l *link, n int64) error {
	if n > maxKept {
		return wireclient.ProtocolError("%d bytes that nobody wants", n)
	}
	for n > 0 {
		if err := l.need(1); err != nil {
			return err
		}
		n -= int64(len(l.take(int(min(n, int64(l.end-l.pos))))))
	}
	return nil
}
