package webdav

import (
	"bytes"
	"errors"
	"fmt"
	"hash"
	"io"
	"math"
	"net/http"
	"strconv"

	"weir/storage"
	"weir/storage/wireclient"
)

const (
	maxChunkLine = 1 << 10 // a chunk's size and its extensions
	maxTrailer   = 8 << 10
	maxDrain     = 256 << 10 // bytes of an unwanted body that are read to keep the connection
)

// How a body ends.
type framing uint8

const (
	byLength framing = iota
	byChunks
	byClose
)

// A bodyState says how much of an answer's body is still to come.
type bodyState struct {
	framing framing
	left    int64 // of the body, or of the current chunk
	inside  bool  // a chunk's data has begun, so its line end follows
	ended   bool
	trailer int // bytes of chunk trailers
}

func (b *bodyState) begin(h *head, bare bool) {
	*b = bodyState{}
	switch {
	case bare || h.status == http.StatusNoContent || h.status == http.StatusNotModified:
		b.ended = true
	case h.chunked:
		b.framing = byChunks
		if h.length >= 0 { // two framings: a request smuggling attempt (RFC 9112, 6.3)
			h.keep = false
		}
		h.length = -1
	case h.length >= 0:
		b.left, b.ended = h.length, h.length == 0
	default:
		b.framing = byClose
		h.keep = false
	}
}

// readBody reads payload: at most len(p) bytes, io.EOF after the last. A body that is cut off gives ErrShort.
func (x *call) readBody(l *link, p []byte) (int, error) {
	b := &x.body
	for b.framing == byChunks && b.left == 0 && !b.ended {
		if err := x.nextChunk(l); err != nil {
			return 0, err
		}
	}
	if b.ended {
		return 0, io.EOF
	}
	if b.framing != byClose {
		p = p[:min(int64(len(p)), b.left)]
	}
	n, err := x.raw(l, p)
	if b.framing != byClose {
		b.left -= int64(n)
		b.ended = b.framing == byLength && b.left == 0
	}
	if n > 0 {
		return n, nil
	}
	if errors.Is(err, io.EOF) && b.framing == byClose {
		b.ended = true
		return 0, io.EOF
	}
	return 0, x.cutOff(err)
}

func (x *call) cutOff(err error) error {
	if !errors.Is(err, io.EOF) && !errors.Is(err, io.ErrUnexpectedEOF) {
		return err
	}
	if x.body.framing == byLength {
		return fmt.Errorf("%w: closed %d bytes before the end of %d", storage.ErrShort, x.body.left, x.head.length)
	}
	return fmt.Errorf("%w: closed in the middle of a body", storage.ErrShort)
}

// raw reads what follows the head, from the buffer first.
func (x *call) raw(l *link, p []byte) (int, error) {
	if x.Pos < x.End {
		n := copy(p, x.Data[x.Pos:x.End])
		x.Pos += n
		return n, nil
	}
	return l.read(p)
}

// nextChunk reads the line of the next chunk, and after the last chunk the trailer.
func (x *call) nextChunk(l *link) error {
	if x.body.inside {
		line, err := x.chunkLine(l)
		if err != nil {
			return err
		}
		if len(line) != 0 {
			return wireclient.ProtocolError("%q where a chunk should end", clip(line, 40))
		}
		x.body.inside = false
	}
	line, err := x.chunkLine(l)
	if err != nil {
		return err
	}
	size, err := parseChunkSize(line)
	if err != nil {
		return err
	}
	if size > 0 {
		x.body.left, x.body.inside = size, true
		return nil
	}
	for {
		if line, err = x.chunkLine(l); err != nil {
			return err
		}
		if len(line) == 0 {
			x.body.ended = true
			return nil
		}
		if x.body.trailer += len(line); x.body.trailer > maxTrailer {
			return wireclient.ProtocolError("a trailer of more than %d bytes", maxTrailer)
		}
	}
}

// parseChunkSize reads "1a2b" or "1a2b;name=value".
func parseChunkSize(line []byte) (int64, error) {
	digits, _, _ := bytes.Cut(line, []byte{';'})
	n, err := strconv.ParseUint(string(bytes.TrimRight(digits, " \t")), 16, 60)
	if err != nil {
		return 0, wireclient.ProtocolError("chunk size %q", clip(line, 40))
	}
	return int64(n), nil
}

// chunkLine returns the next line, without its end. It is valid until the next read.
func (x *call) chunkLine(l *link) ([]byte, error) {
	for searched := x.Pos; ; {
		for i := searched; i < x.End; i++ {
			if x.Data[i] != '\n' {
				continue
			}
			line := x.Data[x.Pos:i]
			x.Pos = i + 1
			if len(line) > 0 && line[len(line)-1] == '\r' {
				line = line[:len(line)-1]
			}
			return line, nil
		}
		if x.End-x.Pos > maxChunkLine {
			return nil, wireclient.ProtocolError("a chunk's line of more than %d bytes", maxChunkLine)
		}
		x.End = copy(x.Data, x.Data[x.Pos:x.End])
		x.Pos, searched = 0, x.End
		n, err := l.read(x.Data[x.End:])
		x.End += n
		if err != nil && n == 0 {
			return nil, x.cutOff(err)
		}
	}
}

// take moves the whole body: past memory if it is not wanted, else through sum and to Dest. It
// counts every byte and returns how many there were; more than limit (if that is not negative) are an error.
func (x *call) take(l *link, sum hash.Hash, limit int64) (int64, error) {
	if sum != nil || x.Dest != nil || x.body.framing != byLength {
		most := int64(math.MaxInt64)
		if limit >= 0 && limit < most {
			most = limit + 1
		}
		total, err := x.Through(x.c.s.buffers, most, sum, func(p []byte) (int, error) { return x.readBody(l, p) })
		if err == nil && total == most {
			err = wireclient.ProtocolError("more than the %d bytes expected", limit)
		}
		return total, err
	}
	total := x.body.left
	if n := int(min(int64(x.End-x.Pos), total)); n > 0 {
		x.Pos += n
		x.body.left -= int64(n)
		x.Moved(n)
	}
	if x.body.left > 0 {
		x.Release()
		n, err := x.discard(l)
		x.body.left -= n
		if err != nil {
			return total - x.body.left, x.cutOff(err)
		}
	}
	x.body.ended = true
	return total, nil
}

// discard drops the rest of the body.
func (x *call) discard(l *link) (int64, error) {
	if l.tls == nil {
		return l.conn.Discard(x.body.left, x.Discard)
	}
	n, err := l.tls.Discard(x.body.left, x.Moved, x.Discard)
	if err != nil {
		return n, err
	}
	surplus, err := l.tls.Surplus()
	if surplus {
		err = wireclient.ProtocolError("TLS: more payload than the %d bytes that the answer announced", x.head.length)
	}
	return n, err
}

// finish puts the connection into the state that the next request needs, or closes it.
func (x *call) finish(l *link) {
	if l.conn != nil && (!x.body.ended || !x.head.keep || x.Pos != x.End) {
		x.drop(l)
	}
}

// skip reads the rest of an unwanted body, if it is short, so that the connection can be kept.
func (x *call) skip(l *link) {
	_ = x.collect(l, nil, maxDrain) // a body cut short shows in finish
	x.finish(l)
}

// collect appends up to limit bytes of the body to dst; a nil dst throws them away. It stops without an error at
// the limit.
func (x *call) collect(l *link, dst *[]byte, limit int) error {
	if x.body.framing == byLength && x.body.left > int64(limit) && dst == nil || x.body.framing == byClose && dst == nil {
		return nil // closing is cheaper
	}
	buf := x.c.s.buffers.Get().(*[]byte)
	defer x.c.s.buffers.Put(buf)
	for limit > 0 {
		n, err := x.readBody(l, (*buf)[:min(limit, len(*buf))])
		limit -= n
		if dst != nil {
			*dst = append(*dst, (*buf)[:n]...)
		}
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
	}
	return nil
}
