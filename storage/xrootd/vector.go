package xrootd

import (
	"encoding/binary"
	"fmt"

	"weir/storage"
	"weir/storage/wireclient"
)

// readVectors reads the operation's ranges with as few requests as the protocol allows, one after the other.
func (t *transfer) readVectors(f *file) error {
	t.parts = t.parts[:0]
	for _, r := range t.call.Op.Ranges {
		for r.Length > 0 {
			n := min(r.Length, maxVectorLength)
			t.parts = append(t.parts, slot{offset: r.Offset, left: n})
			r.Offset += n
			r.Length -= n
		}
	}
	for parts := t.parts; len(parts) > 0; {
		n := min(len(parts), maxVectorItems)
		if err := t.readVector(f, parts[:n]); err != nil {
			return err
		}
		parts = parts[n:]
	}
	return nil
}

// readVector sends one kXR_readv and reads the response. If the server fails, it starts again from
// the part that was in progress.
func (t *transfer) readVector(f *file, parts []slot) error {
	t.window.clear()
	for {
		err := t.sendVector(f, parts)
		if err == nil {
			err = t.receiveVector(f, &parts)
		}
		if err == nil {
			return nil
		}
		if err = t.resume(f, err); err != nil {
			return err
		}
	}
}

func (t *transfer) sendVector(f *file, parts []slot) error {
	var params [16]byte
	t.exchange.doing = rqReadv
	t.exchange.out = appendRequest(t.exchange.out[:0], f.link.first+1, rqReadv, &params, vectorItem*len(parts))
	for _, p := range parts {
		item := fileAt(f.handle, p.offset, uint32(p.left))
		t.exchange.out = append(t.exchange.out, item[:4]...)
		t.exchange.out = append(t.exchange.out, item[12:]...)
		t.exchange.out = append(t.exchange.out, item[4:12]...)
	}
	return t.exchange.send(f.link, t.exchange.out)
}

// receiveVector reads the responses: each part follows a header of its own.
func (t *transfer) receiveVector(f *file, parts *[]slot) error {
	l := f.link
	inside := int64(0) // of the part that is being read
	for {
		h, err := t.exchange.next(l)
		switch {
		case err != nil:
			return err
		case h.stream != l.first+1:
			return unexpectedFrame(h)
		case h.status == stWait && inside > 0:
			return wireclient.ProtocolError("kXR_wait in the middle of an answer to kXR_readv")
		case h.status != stOK && h.status != stOKSoFar:
			if err = t.exchange.noData(l, h, rqReadv); err == nil {
				err = t.sendVector(f, *parts)
			}
			if err != nil {
				return err
			}
			continue
		case h.status == stOKSoFar && h.size == 0:
			return wireclient.ProtocolError("a part of an answer to kXR_readv with nothing in it")
		}
		for left := h.size; left > 0; {
			if inside == 0 {
				if inside, err = t.vectorHead(f, *parts, left); err != nil {
					return err
				}
				left -= vectorItem
			}
			n := min(inside, left)
			t.slot = &(*parts)[0]
			if err := t.bytes(l, n); err != nil {
				return err
			}
			left -= n
			if inside -= n; inside == 0 {
				*parts = (*parts)[1:]
			}
		}
		if h.status == stOKSoFar {
			continue
		}
		if len(*parts) > 0 {
			return fmt.Errorf("%w: %d parts are missing in the answer to a vector read", storage.ErrShort, len(*parts))
		}
		return nil
	}
}

// vectorHead reads the header of the next part and returns its length.
func (t *transfer) vectorHead(f *file, parts []slot, left int64) (int64, error) {
	if left < vectorItem || len(parts) == 0 {
		return 0, wireclient.ProtocolError("%d bytes more than asked for in answer to a vector read", left)
	}
	if err := f.link.need(vectorItem); err != nil {
		return 0, err
	}
	b := f.link.take(vectorItem)
	n := int64(binary.BigEndian.Uint32(b[4:]))
	offset := int64(binary.BigEndian.Uint64(b[8:]))
	if n != parts[0].left || offset != parts[0].offset {
		return 0, wireclient.ProtocolError("%d bytes at %d in a vector read, wanted %d at %d", n, offset, parts[0].left, parts[0].offset)
	}
	t.sum.at = offset
	return n, nil
}
