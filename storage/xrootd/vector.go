package xrootd

import (
	"encoding/binary"
	"fmt"

	"weir/storage"
	"weir/storage/wireclient"
)

// readVectors reads the operation's ranges with as few requests as the protocol allows, one after the other.
func (x *call) readVectors(f *file) error {
	x.parts = x.parts[:0]
	for _, r := range x.Op.Ranges {
		for r.Length > 0 {
			n := min(r.Length, maxVectorLength)
			x.parts = append(x.parts, slot{offset: r.Offset, left: n})
			r.Offset += n
			r.Length -= n
		}
	}
	for parts := x.parts; len(parts) > 0; {
		n := min(len(parts), maxVectorItems)
		if err := x.readVector(f, parts[:n]); err != nil {
			return err
		}
		parts = parts[n:]
	}
	return nil
}

// readVector is one kXR_readv. It starts again from the part that it was in, when the server that it read from
// breaks down.
func (x *call) readVector(f *file, parts []slot) error {
	x.window.clear()
	for {
		err := x.sendVector(f, parts)
		if err == nil {
			err = x.receiveVector(f, &parts)
		}
		if err == nil {
			return nil
		}
		if err = x.resume(f, err); err != nil {
			return err
		}
	}
}

func (x *call) sendVector(f *file, parts []slot) error {
	var params [16]byte
	x.doing = rqReadv
	x.out = appendRequest(x.out[:0], f.link.first+1, rqReadv, &params, vectorItem*len(parts))
	for _, p := range parts {
		item := fileAt(f.handle, p.offset, uint32(p.left))
		x.out = append(x.out, item[:4]...)
		x.out = append(x.out, item[12:]...)
		x.out = append(x.out, item[4:12]...)
	}
	return x.send(f.link, x.out)
}

// receiveVector reads the answers: each part behind a head of its own.
func (x *call) receiveVector(f *file, parts *[]slot) error {
	l := f.link
	inside := int64(0) // of the part that is being read
	for {
		h, err := x.next(l)
		switch {
		case err != nil:
			return err
		case h.stream != l.first+1:
			return unexpectedFrame(h)
		case h.status == stWait && inside > 0:
			return wireclient.ProtocolError("kXR_wait in the middle of an answer to kXR_readv")
		case h.status != stOK && h.status != stOKSoFar:
			if err = x.noData(l, h, rqReadv); err == nil {
				err = x.sendVector(f, *parts)
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
				if inside, err = x.vectorHead(f, *parts, left); err != nil {
					return err
				}
				left -= vectorItem
			}
			n := min(inside, left)
			x.slot = &(*parts)[0]
			if err := x.bytes(l, n); err != nil {
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

// vectorHead reads the head of the next part and returns its length.
func (x *call) vectorHead(f *file, parts []slot, left int64) (int64, error) {
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
	x.sum.at = offset
	return n, nil
}
