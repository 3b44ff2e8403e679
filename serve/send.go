package serve

import (
	"errors"
	"io"
	"os"

	"weir/internal/content"
)

const (
	small     = 64 << 10 // bodies up to this size are copied: cheaper than another system call
	copyBytes = 256 << 10
	// bytes given to the kernel at once: counts and deadlines are updated after each call, and the
	// call is over before the runtime takes it for a blocking call
	sendBytes = 512 << 10
)

// errNoSendfile means that the kernel cannot send this file itself; nothing was sent.
var errNoSendfile = errors.New("sendfile is not possible")

// A fileContent is an open file with a position of its own, so that seeking
// costs nothing and the kernel gets offsets.
type fileContent struct {
	f         *os.File
	pos, size int64
}

// Read implements io.Reader.
func (c *fileContent) Read(p []byte) (int, error) {
	n, err := c.f.ReadAt(p, c.pos)
	c.pos += int64(n)
	if n > 0 && err == io.EOF {
		err = nil
	}
	return n, err
}

// ReadAt implements io.ReaderAt, for many at once.
func (c *fileContent) ReadAt(p []byte, off int64) (int, error) { return c.f.ReadAt(p, off) }

// Seek implements io.Seeker.
func (c *fileContent) Seek(offset int64, whence int) (int64, error) {
	switch whence {
	case io.SeekCurrent:
		offset += c.pos
	case io.SeekEnd:
		offset += c.size
	}
	if offset < 0 {
		return 0, os.ErrInvalid
	}
	c.pos = offset
	return offset, nil
}

func newBuffer() any { b := make([]byte, copyBytes); return &b }

// ReadFrom sends src. net/http calls it for a body of known length. Files and synthetic content are
// sent by the kernel.
func (c *conn) ReadFrom(src io.Reader) (int64, error) {
	lr, ok := src.(*io.LimitedReader)
	if !ok {
		return c.copyFrom(src)
	}
	if lr.N <= small {
		return c.sendSmall(lr)
	}
	var n int64
	var err error
	switch body := lr.R.(type) {
	case *fileContent:
		n, err = c.sendFile(body.f, body.pos, lr.N)
		body.pos += n
	case *content.Reader:
		n, err = c.sendContent(body, lr.N)
	default:
		return c.copyFrom(src)
	}
	lr.N -= n
	if errors.Is(err, errNoSendfile) {
		m, err := c.copyFrom(src)
		return n + m, err
	}
	return n, err
}

// sendSmall sends the head that waits and the body in one system call.
func (c *conn) sendSmall(lr *io.LimitedReader) (int64, error) {
	if len(c.held) > copyBytes-small {
		return c.copyFrom(lr)
	}
	pooled := c.s.buffers.Get().(*[]byte)
	defer c.s.buffers.Put(pooled)
	buf := append((*pooled)[:0], c.held...)
	n, readErr := io.ReadFull(lr.R, buf[len(buf):len(buf)+int(lr.N)])
	lr.N -= int64(n)
	head := len(c.held)
	c.held, c.holding = c.held[:0], false
	m, err := c.Write(buf[:head+n])
	sent := max(m-head, 0)
	c.s.metrics.payloadOut.Add(int64(sent))
	if err == nil && readErr != nil && readErr != io.EOF {
		err = readErr
	}
	return int64(sent), err
}

// copyFrom sends data that the kernel cannot send.
func (c *conn) copyFrom(src io.Reader) (int64, error) {
	if err := c.release(); err != nil {
		return 0, err
	}
	pooled := c.s.buffers.Get().(*[]byte)
	defer c.s.buffers.Put(pooled)
	return io.CopyBuffer(countedWriter{c}, struct{ io.Reader }{src}, *pooled)
}

// A countedWriter counts the bytes that it writes as payload.
type countedWriter struct{ c *conn }

func (w countedWriter) Write(p []byte) (int, error) {
	n, err := w.c.Write(p)
	w.c.s.metrics.payloadOut.Add(int64(n))
	return n, err
}

// sendBytes sends p and counts it as it goes.
func (c *conn) sendBytes(p []byte) (sent int64, err error) {
	if err := c.release(); err != nil {
		return 0, err
	}
	for len(p) > 0 && err == nil {
		var n int
		n, err = countedWriter{c}.Write(p[:min(len(p), sendBytes)])
		p = p[n:]
		sent += int64(n)
	}
	return sent, err
}

// sendContent sends n bytes of r from its position on.
func (c *conn) sendContent(r *content.Reader, n int64) (sent int64, err error) {
	pos, err := r.Seek(0, io.SeekCurrent)
	if err != nil {
		return 0, err
	}
	var cur content.Cursor
	cur.Start(r.Seed(), pos, n)
	for piece := cur.Next(); piece != nil && err == nil; piece = cur.Next() {
		var m int64
		if len(piece) <= content.HeadSize {
			c.held = append(c.held, piece...) // sent together with the waiting data
			m, err = int64(len(piece)), c.sendHeld(cur.Left() > 0)
			c.s.metrics.payloadOut.Add(m)
		} else {
			m, err = c.sendBytes(piece)
		}
		sent += m
	}
	_, seekErr := r.Seek(pos+sent, io.SeekStart)
	return sent, errors.Join(err, seekErr)
}
