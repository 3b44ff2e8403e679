package xrootd

import (
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
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
		return fmt.Errorf("%w: the file ends at %d, %d bytes before the end that the server had reported", storage.ErrShort, s.offset, s.left)
	}
	return nil
}

// bytes moves the next n bytes of payload: past us, if they are not needed, else through the sum and to where
// they are to go.
func (x *call) bytes(l *link, n int64) error {
	if x.wanted() || l.opaque {
		return x.inMemory(l, n, false)
	}
	return x.pass(l, n, x.got, x.Discard)
}

// pass drops n bytes and counts them: with got those that have been received, with dropped those that the kernel
// drops.
func (x *call) pass(l *link, n int64, got, dropped func(int)) error {
	if here := min(n, int64(l.End-l.Pos)); here > 0 {
		l.take(int(here))
		got(int(here))
		n -= here
	}
	l.Return()
	if n == 0 {
		return nil
	}
	var err error
	if s, ok := l.wire.(sealed); ok {
		_, err = s.tls.Discard(n, got, dropped)
	} else {
		_, err = l.wire.Discard(n, dropped)
	}
	return cut(err)
}

// inMemory moves bytes through a buffer: pages that are not wanted, or payload, which goes through the sum.
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
	x.reportMoved(n)
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

func castagnoli() *crc32.Table { return crc32.MakeTable(crc32.Castagnoli) } // the package keeps the table

// pagePayload returns how many bytes of payload are among the first raw bytes of pages, each behind its checksum of
// four bytes, of which the first has room for first bytes.
func pagePayload(raw, first int64) int64 {
	if raw <= 4+first {
		return max(raw-4, 0)
	}
	raw -= 4 + first
	return first + raw/pageUnit*pageSize + max(raw%pageUnit-4, 0)
}

// pageRaw is the inverse: how many bytes pages take that hold payload.
func pageRaw(payload, first int64) int64 {
	if payload == 0 {
		return 0
	}
	if payload <= first {
		return payload + 4
	}
	payload -= first
	return first + 4 + payload + 4*((payload+pageSize-1)/pageSize)
}

// firstPage returns how many bytes there are from offset to the next page.
func firstPage(offset int64) int64 { return pageSize - offset%pageSize }

// A pageCount turns the bytes of pages on the wire into bytes of payload while they move.
type pageCount struct {
	x        *call
	first    int64 // payload of the first page
	raw      int64 // bytes seen, checksums included
	reported int64 // bytes of payload among them
	discard  func(int)
}

func (p *pageCount) init(x *call) {
	p.x = x
	p.discard = func(n int) { x.Result.Discarded += p.add(n) }
}

// add counts n bytes of the wire and returns how many of them were payload.
func (p *pageCount) add(n int) int64 {
	p.raw += int64(n)
	now := pagePayload(p.raw, p.first)
	d := now - p.reported
	p.reported = now
	p.x.got(int(d))
	return d
}

// pagesPayload reads an answer, or a part of one, to a page read.
func (x *call) pagesPayload(l *link, h frame) error {
	if h.size > bufferSize/2 {
		return wireclient.ProtocolError("a status of %d bytes", h.size)
	}
	if err := l.need(int(h.size)); err != nil {
		return err
	}
	st, err := parseStatus(h, l.take(int(h.size)))
	if err != nil {
		return err
	}
	if err = x.checkPages(&st); err != nil {
		return err
	}
	if st.size > 0 && st.offset != x.slot.offset { // servers that read asynchronously answer as they can
		x.slot.offset, x.slot.holes = st.offset, true
	}
	first := firstPage(st.offset)
	if x.wanted() {
		err = x.verifyPages(l, st.size, first)
	} else {
		err = x.passPages(l, st.size, first)
	}
	if err != nil {
		return err
	}
	return x.partDone(!st.partial)
}

// checkPages looks whether a status announces what was asked for.
//
//go:noinline
func (x *call) checkPages(st *status) error {
	s, first := x.slot, firstPage(st.offset)
	n := pagePayload(st.size, first)
	switch {
	case st.request != rqPgread:
		return wireclient.ProtocolError("the status of a %s in answer to kXR_pgread", requestName(st.request))
	case st.size == 0 && st.partial:
		return wireclient.ProtocolError("a part of an answer to kXR_pgread with no pages in it")
	case st.size == 0: // the end of the file
		return nil
	case st.offset < s.from || st.offset+n > s.to || n > s.left || pageRaw(n, first) != st.size:
		return wireclient.ProtocolError("%d bytes of pages at %d in answer to a read of %d at %d", st.size, st.offset, s.left, s.offset)
	}
	return nil
}

// passPages moves pages whose payload is not wanted.
func (x *call) passPages(l *link, n, first int64) error {
	p := &x.pages
	p.first, p.raw, p.reported = first, 0, 0
	if l.opaque {
		return x.inMemory(l, n, true)
	}
	return x.pass(l, n, func(n int) { p.add(n) }, p.discard)
}

// verifyPages reads pages, compares each with its checksum and passes their payload on.
func (x *call) verifyPages(l *link, n, first int64) error {
	held := x.c.s.large.Get().(*[]byte)
	defer x.c.s.large.Put(held)
	buf, end := *held, 0
	for room := first; n > 0 || end > 0; {
		want := int(min(n, int64(len(buf)-end)))
		got, err := x.fill(l, buf[end:end+want])
		end += got
		n -= int64(got)
		if err != nil {
			return cut(err)
		}
		pos, lean, from := 0, 0, x.slot.offset
		for end-pos >= int(4+room) || n == 0 && end-pos > 4 {
			size := min(int(room), end-pos-4)
			if err := x.verifyPage(buf[pos : pos+4+size]); err != nil {
				return err
			}
			if x.Dest != nil { // pages move together, so that they are written at once
				lean += copy(buf[lean:], buf[pos+4:pos+4+size])
			}
			pos += 4 + size
			room = pageSize
		}
		if _, err := x.Dest.WriteAt(buf[:lean], from); err != nil {
			return err
		}
		end = copy(buf, buf[pos:end])
	}
	l.Return()
	return nil
}

// fill reads until p is full, or nearly: at least one page.
func (x *call) fill(l *link, p []byte) (int, error) {
	done := 0
	for done < len(p) && done < pageUnit {
		n, err := l.read(p[done:])
		done += n
		if n == 0 && err != nil {
			return done, err
		}
		if n == 0 {
			return done, io.ErrNoProgress
		}
	}
	return done, nil
}

func (x *call) verifyPage(b []byte) error {
	want, page := binary.BigEndian.Uint32(b), b[4:]
	if got := crc32.Checksum(page, castagnoli()); got != want {
		return fmt.Errorf("%w: the page at %d has CRC32C %08x, not the %08x that came with it", storage.ErrChecksum, x.slot.offset, got, want)
	}
	x.sum.addPage(x.slot.offset, page, want)
	x.got(len(page))
	return nil
}
