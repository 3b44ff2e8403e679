package xrootd

import (
	"fmt"
	"io/fs"
	"slices"

	"weir/storage"
	"weir/storage/wireclient"
)

// Default size and number of requests in flight, the same as in xrdcp (XRD_CPCHUNKSIZE,
// XRD_CPPARALLELCHUNKS of XRootD 5).
const (
	defaultChunk = 8 << 20
	defaultAhead = 4
	maxAhead     = 256
	maxChunk     = 512 << 20 // fits in one response, checksums included
)

// A slot is a request in flight for a part of a file.
type slot struct {
	offset int64 // file offset of the first byte that is still to come
	left   int64 // bytes that are still to come
	busy   bool

	from, to int64 // the part
	holes    bool  // pages arrived out of order: the missing bytes are not all of the bytes that follow offset
}

// A window is the set of requests in flight for one file. The slots' numbers are the requests'
// streams.
type window struct {
	slots []slot
	busy  int
	chunk int64
}

func (w *window) clear() { w.slots, w.busy = w.slots[:0], 0 }

// open makes room for the requests that op may have in flight.
func (w *window) open(op *storage.Op) {
	ahead := op.Ahead
	if ahead <= 0 {
		ahead = defaultAhead
	}
	w.chunk = int64(op.Chunk)
	if w.chunk <= 0 {
		w.chunk = defaultChunk
	}
	w.chunk = min(w.chunk, maxChunk)
	w.clear()
	for range min(ahead, maxAhead) {
		w.slots = append(w.slots, slot{})
	}
}

// take takes a free slot, which must exist, and returns its number.
func (w *window) take(offset, length int64) int {
	i := 0
	for w.slots[i].busy {
		i++
	}
	w.slots[i] = slot{offset: offset, left: length, busy: true, from: offset, to: offset + length}
	w.busy++
	return i
}

// free marks a slot as complete.
func (w *window) free(s *slot) {
	s.busy = false
	w.busy--
}

// holes reports whether it is unknown which bytes are still to come.
func (w *window) holes() bool {
	return slices.ContainsFunc(w.slots, func(s slot) bool { return s.busy && s.holes })
}

// answered reads the header of a response to one of the requests in flight, whose slot becomes
// t.slot.
func (t *transfer) answered(l *link) (frame, error) {
	h, err := t.exchange.next(l)
	if err != nil {
		return h, err
	}
	i := int(h.stream) - int(l.first) - 1
	if i < 0 || i >= len(t.window.slots) || !t.window.slots[i].busy {
		return h, unexpectedFrame(h)
	}
	t.slot = &t.window.slots[i]
	return h, nil
}

// read reads the whole file, or its ranges.
func (x *call) read() error { return x.ToDest(x.readFile) }

func (x *call) readFile() error {
	if x.Op.Chunk < 0 || x.Op.Ahead < 0 {
		return fmt.Errorf("chunk of %d bytes, %d in flight: %w", x.Op.Chunk, x.Op.Ahead, fs.ErrInvalid)
	}
	if err := x.transfer.sum.start(x.Op.Sum); err != nil {
		return err
	}
	x.transfer.sum.to = x.transfer.to
	f, err := x.openToRead()
	if err != nil {
		return err
	}
	if err = x.checkSize(f); err == nil {
		err = x.readParts(f)
	}
	if err == nil {
		x.Result.Sum = x.transfer.sum.text()
	}
	return x.finish(f, err)
}

// openToRead opens the operation's file, or returns the file that the client has kept open.
func (x *call) openToRead() (*file, error) {
	if f := x.exchange.c.kept(x.Op.Path); f != nil {
		err := x.exchange.connect(f.link)
		if err == nil {
			x.exchange.serve(f.link.server)
			return f, nil
		}
		if !broken(err) {
			return nil, err
		}
	}
	f := &x.file
	if x.Op.Keep {
		f = &file{}
	}
	return f, x.exchange.open(f, openRead, 0)
}

// finish closes a file after its operation, or leaves it open.
func (x *call) finish(f *file, err error) error {
	switch {
	case f.link.wire == nil: // it is closed already
		return err
	case err == nil && x.Op.Keep:
		if f.path == "" {
			return x.exchange.keep(f)
		}
		return nil
	case f.path != "":
		x.exchange.c.release(f)
	}
	if x.transfer.window.busy > 0 { // responses are still to come
		x.exchange.drop(f.link)
		return err
	}
	if cerr := x.exchange.close(f); err == nil {
		err = cerr
	}
	return err
}

func (x *call) readParts(f *file) error {
	if x.Op.Ranges == nil {
		return x.transfer.readSpan(f, 0, f.size)
	}
	if err := x.checkRanges(f); err != nil {
		return err
	}
	if len(x.Op.Ranges) == 1 {
		r := &x.Op.Ranges[0]
		return x.transfer.readSpan(f, r.Offset, r.Offset+r.Length)
	}
	return x.transfer.readVectors(f)
}

// checkRanges returns an error if a range is outside the file.
//
//go:noinline
func (x *call) checkRanges(f *file) error {
	for _, r := range x.Op.Ranges {
		if err := r.Check(); err != nil {
			return err
		}
		if r.Length > 0 && r.Offset+r.Length > f.size {
			return fmt.Errorf("%w: the file has %d bytes, wanted %d at %d", storage.ErrShort, f.size, r.Length, r.Offset)
		}
	}
	return nil
}

// readSpan reads a file from an offset to another, with as many requests in flight as the operation
// allows.
func (t *transfer) readSpan(f *file, from, to int64) error {
	w := &t.window
	w.open(t.call.Op)
	t.sum.at = from
	for next := from; next < to || w.busy > 0; {
		t.exchange.out = t.exchange.out[:0]
		for next < to && w.busy < len(w.slots) && !t.tooEarly(next) {
			n := min(w.chunk, to-next)
			t.appendRead(f, w.take(next, n))
			next += n
		}
		err := t.exchange.send(f.link, t.exchange.out)
		if err == nil {
			err = t.receivePart(f)
		}
		if t.sum.err != nil {
			return t.sum.err
		}
		if err == nil {
			continue
		}
		if err = t.resume(f, err); err != nil {
			return err
		}
	}
	if t.sum.wanted() && t.sum.at != to {
		return wireclient.ProtocolError("the answers to a read up to %d leave a hole at %d", to, t.sum.at)
	}
	return nil
}

// tooEarly reports whether data at an offset would have to be held for long, because bytes before
// it are still to come.
func (t *transfer) tooEarly(offset int64) bool {
	return t.to != nil && offset-t.sum.at >= t.window.chunk*int64(len(t.window.slots))
}

// appendRead appends the request for the missing bytes of slot i.
func (t *transfer) appendRead(f *file, i int) {
	s := &t.window.slots[i]
	t.exchange.doing = t.readCode(f)
	params := fileAt(f.handle, s.offset, uint32(s.left))
	t.exchange.out = appendRequest(t.exchange.out, f.link.first+1+uint16(i), t.exchange.doing, &params, 0)
}

// readCode returns the code of the request with which the file is read.
func (t *transfer) readCode(f *file) uint16 {
	if t.call.Op.Plain || !f.pages() {
		return rqRead
	}
	return rqPgread
}

// resume opens the file again after the server of the read failed, and requests the bytes that are
// still to come: at another data server, or at the same server if the file had stayed open on a
// connection that was closed meanwhile.
func (t *transfer) resume(f *file, err error) error {
	if refused(err) == 0 {
		t.exchange.drop(f.link)
	}
	const begun = 1 << storage.FirstByte
	size, idle := f.size, f.path != "" && t.call.Phases&begun == 0
	for {
		if !broken(err) || t.call.Ctx.Err() != nil || t.window.holes() {
			return err
		}
		switch {
		case idle:
			idle = false
		case f.link.server != t.exchange.c.s.home && t.call.Result.Reopened < maxReopens:
			t.exchange.lost(f.link.server)
		default:
			return err
		}
		if err = t.exchange.open(f, openRead, 0); err != nil {
			t.exchange.drop(f.link) // the link may have been opened again, but the file is not open there
			if t.exchange.at == t.exchange.c.s.home {
				return err // there is no other server
			}
			continue
		}
		if f.size != size {
			return fmt.Errorf("%w: the file has %d bytes where it was opened again, %d before", storage.ErrShort, f.size, size)
		}
		if err = t.sendAgain(f); err == nil {
			return nil
		}
		t.exchange.drop(f.link)
	}
}

// sendAgain requests the bytes that are still to come.
func (t *transfer) sendAgain(f *file) error {
	t.exchange.out = t.exchange.out[:0]
	for i := range t.window.slots {
		if t.window.slots[i].busy {
			t.appendRead(f, i)
		}
	}
	return t.exchange.send(f.link, t.exchange.out)
}

// receivePart reads one response, or a part of one response, to the requests in flight.
func (t *transfer) receivePart(f *file) error {
	l := f.link
	h, err := t.answered(l)
	if err != nil {
		return err
	}
	code := t.readCode(f)
	switch {
	case code == rqRead && (h.status == stOK || h.status == stOKSoFar):
		return t.payload(l, h.size, h.status == stOK)
	case code == rqPgread && h.status == stStatus:
		return t.pagesPayload(l, h)
	}
	return t.partRefused(f, h, code)
}

// partRefused handles a response to a read that has no data.
//
//go:noinline
func (t *transfer) partRefused(f *file, h frame, code uint16) error {
	err := t.exchange.noData(f.link, h, code)
	switch {
	case refused(err) != 0:
		t.window.free(t.slot)
	case err == nil:
		t.exchange.out = t.exchange.out[:0]
		t.appendRead(f, int(h.stream-f.link.first-1))
		err = t.exchange.send(f.link, t.exchange.out)
	}
	return err
}
