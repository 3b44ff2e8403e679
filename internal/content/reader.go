package content

import (
	"bytes"
	"errors"
	"fmt"
	"io"
)

// A Reader reads a file of a seed and a size. Read, Seek and WriteTo share a
// position and are for one goroutine at a time; ReadAt is for any number.
type Reader struct {
	seed      uint64
	size, pos int64
}

// NewReader returns a Reader at the start of the file. A negative size is 0.
func NewReader(seed uint64, size int64) *Reader {
	return &Reader{seed: seed, size: max(size, 0)}
}

// Seed returns the seed from which the file is generated.
func (r *Reader) Seed() uint64 { return r.seed }

// Size returns the bytes in the whole file.
func (r *Reader) Size() int64 { return r.size }

// Read implements io.Reader.
func (r *Reader) Read(p []byte) (int, error) {
	if len(p) == 0 {
		return 0, nil
	}
	left := r.size - r.pos
	if left <= 0 {
		return 0, io.EOF
	}
	p = p[:min(int64(len(p)), left)]
	Fill(p, r.seed, r.pos)
	r.pos += int64(len(p))
	return len(p), nil
}

// ReadAt implements io.ReaderAt.
func (r *Reader) ReadAt(p []byte, off int64) (int, error) {
	if off < 0 {
		return 0, fmt.Errorf("read at %d: negative offset", off)
	}
	if off >= r.size {
		return 0, io.EOF
	}
	n := min(int64(len(p)), r.size-off)
	Fill(p[:n], r.seed, off)
	if n < int64(len(p)) {
		return int(n), io.EOF
	}
	return int(n), nil
}

// Seek implements io.Seeker.
func (r *Reader) Seek(offset int64, whence int) (int64, error) {
	switch whence {
	case io.SeekStart:
	case io.SeekCurrent:
		offset += r.pos
	case io.SeekEnd:
		offset += r.size
	default:
		return 0, fmt.Errorf("seek: unknown whence %d", whence)
	}
	if offset < 0 {
		return 0, errors.New("seek: before the start of the file")
	}
	r.pos = offset
	return offset, nil
}

// WriteTo writes the rest of the file to w, straight from the pattern. w must not change the bytes
// it receives, as io.Writer demands.
func (r *Reader) WriteTo(w io.Writer) (int64, error) {
	n, err := write(w, r.seed, r.pos, max(r.size-r.pos, 0))
	r.pos += n
	return n, err
}

// write writes n bytes of seed's stream from off on.
func write(w io.Writer, seed uint64, off, n int64) (written int64, err error) {
	var c Cursor
	c.Start(seed, off, n)
	for piece := c.Next(); piece != nil; piece = c.Next() {
		m, err := w.Write(piece)
		written += int64(m)
		if err == nil && m < len(piece) {
			err = io.ErrShortWrite
		}
		if err != nil {
			return written, err
		}
	}
	return written, nil
}

// Equal reports whether p equals the output of Fill for this seed and offset. It is as fast as
// memory and allocates nothing. It panics if off is negative.
func Equal(p []byte, seed uint64, off int64) bool {
	var c Cursor
	c.Start(seed, off, int64(len(p)))
	for piece := c.Next(); piece != nil; piece = c.Next() {
		if !bytes.Equal(p[:len(piece)], piece) {
			return false
		}
		p = p[len(piece):]
	}
	return true
}

// A Cursor walks over the pieces of a part of a seed's stream, so that they
// can be sent one after the other without being copied together. Its zero value has no pieces; Start gives
// it some. It allocates nothing if it is kept, for example with a connection.
type Cursor struct {
	seed   uint64
	off, n int64
	head   [HeadSize]byte
}

// Start makes c walk over the n bytes of seed's stream from off on. It panics
// if off or n is negative, or their sum beyond an int64.
func (c *Cursor) Start(seed uint64, off, n int64) {
	if off < 0 || n < 0 || off+n < 0 {
		panic("content: negative offset, length or end")
	}
	c.seed, c.off, c.n = seed, off, n
	if off < HeadSize {
		head(&c.head, seed)
	}
}

// Next returns the next piece, nil after the last. It is only to be read, and
// valid until the Cursor's next Start.
func (c *Cursor) Next() []byte {
	var p []byte
	switch {
	case c.n <= 0:
		return nil
	case c.off < HeadSize:
		p = c.head[c.off:HeadSize]
	default:
		p = pattern()[window(c.seed, c.off):]
	}
	p = p[:min(int64(len(p)), c.n)]
	c.off += int64(len(p))
	c.n -= int64(len(p))
	return p
}

// Left returns the number of bytes of the pieces that Next did not return yet.
func (c *Cursor) Left() int64 { return c.n }
