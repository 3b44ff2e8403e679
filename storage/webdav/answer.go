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
	"sync"

	"weir/storage"
	"weir/storage/wireclient"
)

const (
	maxChunkLine = 1 << 10 // bytes of a chunk's size and its extensions
	maxTrailer   = 8 << 10
	maxDrain     = 256 << 10 // bytes of an unwanted body that are read to keep the connection
)

// The ways in which the end of a body is determined.
type framing uint8

const (
	byLength framing = iota
	byChunks
	byClose
)

// A bodyState describes the rest of a response's body.
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

// An answer is a server's response to a request: its header, and its body as far as it has been
// read. It moves the body out of the buffer or the connection, without copying it to memory if
// possible.
type answer struct {
	wireclient.Buffer // the request, until it is sent; then the header and the beginning of the body
	call              *wireclient.Call
	payload           *sync.Pool // of *[]byte, for a body that has to be read
	head              head       // its slices are invalid after Release
	body              bodyState
	heard             bool // a part of the response has arrived
}

// receive reads headers until that of the final response.
func (a *answer) receive(l *link) error {
	for interim := 0; ; interim++ {
		if err := a.receiveHead(l); err != nil {
			return err
		}
		switch {
		case a.head.status == http.StatusSwitchingProtocols:
			return wireclient.ProtocolError("status 101 was not asked for")
		case a.head.status >= 200:
			return nil
		case interim == maxInterim:
			return wireclient.ProtocolError("more than %d interim answers", maxInterim)
		}
	}
}

// receiveHead reads one header into the buffer and parses it. Bytes behind the header are not
// processed yet.
func (a *answer) receiveHead(l *link) error {
	if a.Pos > 0 { // the header of an interim response is not needed any more
		a.End = copy(a.Data[:cap(a.Data)], a.Data[a.Pos:a.End])
		a.Pos = 0
	}
	for searched := 0; ; {
		if n := headEnd(a.Data[:a.End], searched); n > 0 {
			a.Pos = n
			return a.head.parse(a.Data[:n])
		}
		searched = a.End
		if a.End > 0 && a.End == len(a.Data) {
			if len(a.Data) >= maxHead {
				return wireclient.ProtocolError("the answer's head is longer than %d bytes", maxHead)
			}
			a.Data = append(a.Data, make([]byte, len(a.Data))...)
		}
		n, err := l.readLate(&a.Buffer)
		a.End += n
		a.heard = a.heard || n > 0
		if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
			return fmt.Errorf("closed before the answer: %w", io.EOF)
		}
		if err != nil {
			return err
		}
	}
}

// readBody reads payload: at most len(p) bytes, io.EOF after the last. A truncated body is
// ErrShort.
func (a *answer) readBody(l *link, p []byte) (int, error) {
	b := &a.body
	for b.framing == byChunks && b.left == 0 && !b.ended {
		if err := a.nextChunk(l); err != nil {
			return 0, err
		}
	}
	if b.ended {
		return 0, io.EOF
	}
	if b.framing != byClose {
		p = p[:min(int64(len(p)), b.left)]
	}
	n, err := a.raw(l, p)
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
	return 0, a.cutOff(err)
}

func (a *answer) cutOff(err error) error {
	if !errors.Is(err, io.EOF) && !errors.Is(err, io.ErrUnexpectedEOF) {
		return err
	}
	if a.body.framing == byLength {
		return fmt.Errorf("%w: closed %d bytes before the end of %d", storage.ErrShort, a.body.left, a.head.length)
	}
	return fmt.Errorf("%w: closed in the middle of a body", storage.ErrShort)
}

// raw reads the bytes after the header, first from the buffer.
func (a *answer) raw(l *link, p []byte) (int, error) {
	if a.Pos < a.End {
		n := copy(p, a.Data[a.Pos:a.End])
		a.Pos += n
		return n, nil
	}
	return l.read(p)
}

// nextChunk reads the line of the next chunk, and after the last chunk the trailer.
func (a *answer) nextChunk(l *link) error {
	if a.body.inside {
		line, err := a.chunkLine(l)
		if err != nil {
			return err
		}
		if len(line) != 0 {
			return wireclient.ProtocolError("%q where a chunk should end", clip(line, 40))
		}
		a.body.inside = false
	}
	line, err := a.chunkLine(l)
	if err != nil {
		return err
	}
	size, err := parseChunkSize(line)
	if err != nil {
		return err
	}
	if size > 0 {
		a.body.left, a.body.inside = size, true
		return nil
	}
	for {
		if line, err = a.chunkLine(l); err != nil {
			return err
		}
		if len(line) == 0 {
			a.body.ended = true
			return nil
		}
		if a.body.trailer += len(line); a.body.trailer > maxTrailer {
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
func (a *answer) chunkLine(l *link) ([]byte, error) {
	for searched := a.Pos; ; {
		for i := searched; i < a.End; i++ {
			if a.Data[i] != '\n' {
				continue
			}
			line := a.Data[a.Pos:i]
			a.Pos = i + 1
			if len(line) > 0 && line[len(line)-1] == '\r' {
				line = line[:len(line)-1]
			}
			return line, nil
		}
		if a.End-a.Pos > maxChunkLine {
			return nil, wireclient.ProtocolError("a chunk's line of more than %d bytes", maxChunkLine)
		}
		a.End = copy(a.Data, a.Data[a.Pos:a.End])
		a.Pos, searched = 0, a.End
		n, err := l.read(a.Data[a.End:])
		a.End += n
		if err != nil && n == 0 {
			return nil, a.cutOff(err)
		}
	}
}

// take moves the whole body: it drops the body if it is not needed, and otherwise passes it through
// sum to Dest. It counts every byte and returns the number of bytes; more than limit (unless limit
// is negative) are an error.
func (a *answer) take(l *link, sum hash.Hash, limit int64) (int64, error) {
	if sum != nil || a.call.Dest != nil || a.body.framing != byLength {
		most := int64(math.MaxInt64)
		if limit >= 0 && limit < most {
			most = limit + 1
		}
		total, err := a.call.Through(a.payload, most, sum, func(p []byte) (int, error) { return a.readBody(l, p) })
		if err == nil && total == most {
			err = wireclient.ProtocolError("more than the %d bytes expected", limit)
		}
		return total, err
	}
	total := a.body.left
	if n := int(min(int64(a.End-a.Pos), total)); n > 0 {
		a.Pos += n
		a.body.left -= int64(n)
		a.call.Moved(n)
	}
	if a.body.left > 0 {
		a.Release()
		n, err := a.discard(l)
		a.body.left -= n
		if err != nil {
			return total - a.body.left, a.cutOff(err)
		}
	}
	a.body.ended = true
	return total, nil
}

// discard drops the rest of the body.
func (a *answer) discard(l *link) (int64, error) {
	if l.tls == nil {
		return l.conn.Discard(a.body.left, a.call.Discard)
	}
	n, err := l.tls.Discard(a.body.left, a.call.Moved, a.call.Discard)
	if err != nil {
		return n, err
	}
	surplus, err := l.tls.Surplus()
	if surplus {
		err = wireclient.ProtocolError("TLS: more payload than the %d bytes that the answer announced", a.head.length)
	}
	return n, err
}

// collect appends up to limit bytes of the body to dst; with a nil dst it discards them. It stops
// without an error at the limit.
func (a *answer) collect(l *link, dst *[]byte, limit int) error {
	if a.body.framing == byLength && a.body.left > int64(limit) && dst == nil || a.body.framing == byClose && dst == nil {
		return nil // closing is cheaper
	}
	buf := a.payload.Get().(*[]byte)
	defer a.payload.Put(buf)
	for limit > 0 {
		n, err := a.readBody(l, (*buf)[:min(limit, len(*buf))])
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
