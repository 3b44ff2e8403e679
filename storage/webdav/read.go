package webdav

import (
	"errors"
	"fmt"
	"hash"
	"io/fs"
	"net/http"

	"weir/storage"
	"weir/storage/wireclient"
)

// read reads the whole file, or its ranges.
func (x *call) read() error {
	err := x.Fetch(x.readParts)
	if err == nil && x.Op.Size < 0 {
		x.Result.Encoding = x.wire.head.encoding
	}
	if x.wire.head.encoding != "" && (errors.Is(err, storage.ErrSize) || errors.Is(err, storage.ErrShort)) {
		return fmt.Errorf("%w: the answer has Content-Encoding %q, which was not requested", err, x.wire.head.encoding)
	}
	return err
}

func (x *call) readParts(sum hash.Hash) error {
	if x.Op.Chunk < 0 {
		return fmt.Errorf("chunk of %d bytes: %w", x.Op.Chunk, fs.ErrInvalid)
	}
	if x.Op.Ranges == nil && x.Op.Chunk > 0 && x.Op.Size != 0 {
		return x.readInChunks(sum)
	}
	if x.Op.Ranges == nil {
		return x.readWhole(sum)
	}
	for _, r := range x.Op.Ranges {
		if err := r.Check(); err != nil {
			return err
		}
		for r.Length > 0 {
			n := r.Length
			if x.Op.Chunk > 0 {
				n = min(n, int64(x.Op.Chunk))
			}
			if err := x.readRange(r.Offset, n, sum); err != nil {
				return err
			}
			r.Offset += n
			r.Length -= n
		}
	}
	return nil
}

// readWhole sends one GET.
func (x *call) readWhole(sum hash.Hash) error {
	l, err := x.wire.do(&request{method: http.MethodGet, path: x.Op.Path})
	if err != nil {
		return err
	}
	if !x.wire.head.ok() {
		return x.refuse(l)
	}
	x.Reach(storage.Opened)
	if err := x.checkSize(l, x.wire.head.length); err != nil {
		return err
	}
	n, err := x.wire.take(l, sum, x.Op.Size)
	if err != nil {
		x.wire.drop(l)
		if x.Op.Size >= 0 && n > x.Op.Size {
			return fmt.Errorf("%w: more than the %d bytes expected", storage.ErrSize, x.Op.Size)
		}
		return err
	}
	x.wire.finish(l)
	x.Result.Size = n
	if n < x.Op.Size { // it may have been cut off: no size was announced
		return fmt.Errorf("%w: the file has %d bytes, not the %d expected", storage.ErrShort, n, x.Op.Size)
	}
	return nil
}

// readInChunks reads the whole file by ranges. If the size is unknown it is requested first,
// because some servers accept ranges beyond the end.
func (x *call) readInChunks(sum hash.Hash) error {
	if x.Op.Size < 0 {
		if err := x.stat(); err != nil {
			return err
		}
		if x.Result.Size < 0 {
			return wireclient.ProtocolError("the server does not tell the file's size, which reading in chunks needs")
		}
	}
	size := max(x.Op.Size, x.Result.Size)
	for at := int64(0); at < size; at += int64(x.Op.Chunk) {
		if err := x.readRange(at, min(int64(x.Op.Chunk), size-at), sum); err != nil {
			return err
		}
	}
	x.Result.Size = size
	return nil
}

// readRange sends one ranged GET.
func (x *call) readRange(from, count int64, sum hash.Hash) error {
	l, err := x.wire.do(&request{method: http.MethodGet, path: x.Op.Path, ranged: true, from: from, count: count})
	if err != nil {
		return err
	}
	err = x.checkRange(l, from, count)
	if err != nil {
		return err
	}
	x.Reach(storage.Opened)
	n, err := x.wire.take(l, sum, count)
	if err != nil {
		x.wire.drop(l)
		return err
	}
	x.wire.finish(l)
	if n < count {
		return fmt.Errorf("%w: %d of %d bytes at %d", storage.ErrShort, n, count, from)
	}
	return nil
}

// checkRange compares the range of the response with the requested range.
func (x *call) checkRange(l *link, from, count int64) error {
	h := &x.wire.head
	if h.ok() {
		// The whole file, which some servers send if the range covers it.
		if from == 0 && h.length >= 0 && h.length <= count {
			x.Result.Size = h.length
			return x.checkSize(l, h.length)
		}
		x.wire.drop(l)
		return wireclient.ProtocolError("the server ignored the range %d-%d and sent everything", from, from+count-1)
	}
	if h.status == http.StatusRequestedRangeNotSatisfiable {
		if size, ok := parseUnsatisfied(h.crange); ok && storage.CheckSize(x.Op.Size, size) != nil {
			return x.checkSize(l, size)
		}
	}
	if h.status != http.StatusPartialContent {
		return x.refuse(l)
	}
	first, last, total, ok := parseContentRange(h.crange)
	if ok && total >= 0 && last >= total { // XRootD announces bytes that the file does not have
		x.wire.drop(l)
		return fmt.Errorf("%w: the file has %d bytes, wanted %d at %d", storage.ErrShort, total, count, from)
	}
	if !ok || first != from || last >= from+count || h.length >= 0 && h.length != last-first+1 {
		x.wire.drop(l)
		return wireclient.ProtocolError("Content-Range %q and length %d in answer to the range %d-%d", clip(h.crange, 60), h.length,
			from, from+count-1)
	}
	x.Result.Size = total
	return x.checkSize(l, total)
}

// checkSize compares the file's size, if the response has it, with the expected size. If the sizes
// differ, it closes the connection, since the body is not needed.
func (x *call) checkSize(l *link, size int64) error {
	err := storage.CheckSize(x.Op.Size, size)
	if err != nil {
		x.wire.drop(l)
	}
	return err
}
