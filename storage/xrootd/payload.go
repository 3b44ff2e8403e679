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

// A transfer moves the payload of an operation: it keeps reads and writes of an open file in
// flight, verifies pages, passes payload to the checksum and the destination, and opens the file
// again if a server fails.
type transfer struct {
	call     *wireclient.Call
	exchange *exchange
	window   window    // reads and writes under way
	slot     *slot     // slot of the current response
	parts    []slot    // of a vector read
	to       io.Writer // receives the payload of a read; nil: unused
	from     io.Reader // provides the payload of a write; nil: the payload is generated
	sum      sum
	pages    pageCount
}

// init prepares the transfer of a call, once, and makes it the counter of the call's payload.
func (t *transfer) init(call *wireclient.Call, x *exchange) {
	t.call, t.exchange = call, x
	call.Moved = t.reportMoved
	call.Discard = func(n int) {
		call.Result.Discarded += int64(n)
		t.got(n)
	}
	t.pages.init(t)
}

// clear drops all references to the operation.
func (t *transfer) clear() {
	if cap(t.parts) > maxVectorItems {
		t.parts = nil
	}
	t.window.clear()
	t.slot, t.sum = nil, sum{}
	t.to, t.from = nil, nil
}

// wanted reports whether the payload is needed: for a checksum or a destination.
func (t *transfer) wanted() bool { return t.sum.wanted() || t.call.Dest != nil }

func (t *transfer) reportMoved(n int) {
	if n == 0 {
		return
	}
	if t.call.Op.Kind == storage.Read {
		t.exchange.reach(storage.FirstByte)
	}
	t.call.Progress.Moved(n)
}

// payload moves n bytes of a plain read.
func (t *transfer) payload(l *link, n int64, last bool) error {
	switch {
	case n > t.slot.left:
		return wireclient.ProtocolError("%d bytes at %d in answer to a read of %d", n, t.slot.offset, t.slot.left)
	case n == 0 && !last:
		return wireclient.ProtocolError("a part of an answer to a read with nothing in it")
	}
	if err := t.bytes(l, n); err != nil {
		return err
	}
	return t.partDone(last)
}

// partDone frees a slot after its last response.
func (t *transfer) partDone(last bool) error {
	s := t.slot
	if !last {
		return nil
	}
	t.window.free(s)
	if s.left > 0 {
		return fmt.Errorf("%w: the file ends at %d, %d bytes before the end that the server had reported", storage.ErrShort, s.offset, s.left)
	}
	return nil
}

// bytes moves the next n bytes of payload: it drops them if they are not needed, and otherwise
// passes them through the sum to their destination.
func (t *transfer) bytes(l *link, n int64) error {
	if t.wanted() || l.opaque {
		return t.inMemory(l, n, false)
	}
	return t.pass(l, n, t.got, t.call.Discard)
}

// pass drops n bytes and counts them: the bytes that were received with got, the bytes that the
// kernel drops with dropped.
func (t *transfer) pass(l *link, n int64, got, dropped func(int)) error {
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

// inMemory moves bytes through a buffer: pages whose payload is not needed, or payload, which goes
// through the sum.
//
//go:noinline
func (t *transfer) inMemory(l *link, n int64, pages bool) error {
	buf := t.exchange.c.s.large.Get().(*[]byte)
	defer t.exchange.c.s.large.Put(buf)
	for n > 0 {
		got, err := l.read((*buf)[:min(n, payloadSize)])
		switch {
		case got == 0 && err != nil:
			return cut(err)
		case pages:
			t.pages.add(got)
		case got > 0:
			if _, err := t.call.Dest.WriteAt((*buf)[:got], t.slot.offset); err != nil {
				return err
			}
			t.sum.add(t.slot.offset, (*buf)[:got])
			t.got(got)
		}
		n -= int64(got)
	}
	l.Return()
	return nil
}

// got counts n bytes of the slot of the current response.
func (t *transfer) got(n int) {
	t.slot.offset += int64(n)
	t.slot.left -= int64(n)
	t.reportMoved(n)
}

// cut adds to an error of a connection that it occurred in the middle of payload.
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

// pagePayload returns the number of bytes of payload in the first raw bytes of pages. A checksum of
// four bytes precedes each page. The first page has room for first bytes.
func pagePayload(raw, first int64) int64 {
	if raw <= 4+first {
		return max(raw-4, 0)
	}
	raw -= 4 + first
	return first + raw/pageUnit*pageSize + max(raw%pageUnit-4, 0)
}

// pageRaw is the inverse: it returns the number of bytes of pages with the given payload.
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

// firstPage returns the number of bytes from offset to the next page.
func firstPage(offset int64) int64 { return pageSize - offset%pageSize }

// A pageCount turns the bytes of pages on the wire into bytes of payload while they move.
type pageCount struct {
	t        *transfer
	first    int64 // payload of the first page
	raw      int64 // bytes received, checksums included
	reported int64 // bytes of payload among them
	discard  func(int)
}

func (p *pageCount) init(t *transfer) {
	p.t = t
	p.discard = func(n int) { t.call.Result.Discarded += p.add(n) }
}

// add counts n bytes of the wire and returns the number of payload bytes among them.
func (p *pageCount) add(n int) int64 {
	p.raw += int64(n)
	now := pagePayload(p.raw, p.first)
	d := now - p.reported
	p.reported = now
	p.t.got(int(d))
	return d
}

// pagesPayload reads a response, or a part of a response, to a page read.
func (t *transfer) pagesPayload(l *link, h frame) error {
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
	if err = t.checkPages(&st); err != nil {
		return err
	}
	if st.size > 0 && st.offset != t.slot.offset { // servers that read asynchronously respond in any order
		t.slot.offset, t.slot.holes = st.offset, true
	}
	first := firstPage(st.offset)
	if t.wanted() {
		err = t.verifyPages(l, st.size, first)
	} else {
		err = t.passPages(l, st.size, first)
	}
	if err != nil {
		return err
	}
	return t.partDone(!st.partial)
}

// checkPages compares the data that a status announces with the request.
//
//go:noinline
func (t *transfer) checkPages(st *status) error {
	s, first := t.slot, firstPage(st.offset)
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

// passPages drops pages whose payload is not needed.
func (t *transfer) passPages(l *link, n, first int64) error {
	p := &t.pages
	p.first, p.raw, p.reported = first, 0, 0
	if l.opaque {
		return t.inMemory(l, n, true)
	}
	return t.pass(l, n, func(n int) { p.add(n) }, p.discard)
}

// verifyPages reads pages, compares each with its checksum and passes their payload on.
func (t *transfer) verifyPages(l *link, n, first int64) error {
	held := t.exchange.c.s.large.Get().(*[]byte)
	defer t.exchange.c.s.large.Put(held)
	buf, end := *held, 0
	for room := first; n > 0 || end > 0; {
		want := int(min(n, int64(len(buf)-end)))
		got, err := t.fill(l, buf[end:end+want])
		end += got
		n -= int64(got)
		if err != nil {
			return cut(err)
		}
		pos, lean, from := 0, 0, t.slot.offset
		for end-pos >= int(4+room) || n == 0 && end-pos > 4 {
			size := min(int(room), end-pos-4)
			if err := t.verifyPage(buf[pos : pos+4+size]); err != nil {
				return err
			}
			if t.call.Dest != nil { // pages move together, so that they are written at once
				lean += copy(buf[lean:], buf[pos+4:pos+4+size])
			}
			pos += 4 + size
			room = pageSize
		}
		if _, err := t.call.Dest.WriteAt(buf[:lean], from); err != nil {
			return err
		}
		end = copy(buf, buf[pos:end])
	}
	l.Return()
	return nil
}

// fill reads until p is full, or nearly: at least one page.
func (t *transfer) fill(l *link, p []byte) (int, error) {
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

func (t *transfer) verifyPage(b []byte) error {
	want, page := binary.BigEndian.Uint32(b), b[4:]
	if got := crc32.Checksum(page, castagnoli()); got != want {
		return fmt.Errorf("%w: the page at %d has CRC32C %08x, not the %08x that came with it", storage.ErrChecksum, t.slot.offset, got, want)
	}
	t.sum.addPage(t.slot.offset, page, want)
	t.got(len(page))
	return nil
}
