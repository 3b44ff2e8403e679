package mover

import (
	"context"
	"errors"
	"io"
	"net/http"
	"os"
	"time"

	"weir/transfer"
)

const (
	// worthSplice is how many bytes are worth the kernel's detour through a pipe.
	worthSplice = 128 << 10
	// mostGulp is how many bytes the kernel gathers at most: until then a slow source seems to give nothing.
	mostGulp = 256 << 10
)

// A taker takes the body of an answer into a file. It allocates nothing on the way.
type taker struct {
	*answer
	ctx     context.Context
	file    *os.File // with a position of its own
	buf     []byte
	lim     io.LimitedReader
	touched time.Time
}

// take writes up to n of the body's bytes, of which there are as many, at off,
// and returns how many: fewer only with an error, io.ErrUnexpectedEOF if the
// body has ended.
func (t *taker) take(off, n int64) (done int64, err error) {
	for done < n && err == nil {
		var m int64
		if err = t.touch(); err != nil {
			break
		}
		if t.raw {
			m, err = t.direct(off+done, n-done)
		} else {
			m, err = t.copy(off+done, n-done)
		}
		done += m
		if m > 0 && errors.Is(err, os.ErrDeadlineExceeded) && t.ctx.Err() == nil {
			t.touched, err = time.Time{}, nil // slow, but it moves
		}
	}
	if errors.Is(err, os.ErrDeadlineExceeded) {
		err = failf(transfer.Transient, "nothing came from %s for %s", t.from.Host, t.pool.stall)
	}
	return done, err
}

// touch moves the connection's deadline ahead, if it was not moved just now.
func (t *taker) touch() error {
	now := time.Now()
	if now.Sub(t.touched) < t.pool.stall/8 {
		return nil
	}
	t.touched = now
	if err := t.conn.SetReadDeadline(now.Add(t.pool.stall)); err != nil {
		return err
	}
	if t.ctx.Err() != nil { // its own deadline was moved just now
		return context.Cause(t.ctx)
	}
	return nil
}

// direct takes bytes from the connection itself, if there are many by the kernel.
func (t *taker) direct(off, n int64) (int64, error) {
	if b := t.conn.in.Buffered(); b > 0 { // they came with the head
		p, err := t.conn.in.Peek(int(min(int64(b), n)))
		if err != nil {
			return 0, err
		}
		if _, err := t.file.WriteAt(p, off); err != nil {
			return 0, local("write", err)
		}
		_, err = t.conn.in.Discard(len(p))
		t.left -= int64(len(p))
		return int64(len(p)), err
	}
	if n < worthSplice {
		return t.write(t.conn.plain, off, n)
	}
	gather(t.conn, t.left-n, min(t.pool.buffer, mostGulp))
	if _, err := t.file.Seek(off, io.SeekStart); err != nil {
		return 0, local("write", err)
	}
	t.lim = io.LimitedReader{R: t.conn.plain, N: n}
	m, err := t.file.ReadFrom(&t.lim) // the kernel moves them: see package os
	t.left -= m
	if err == nil && m == 0 {
		err = io.ErrUnexpectedEOF
	}
	return m, writeTrouble(err)
}

// copy takes bytes through memory: they are encrypted, or come in pieces.
func (t *taker) copy(off, n int64) (int64, error) {
	gather(t.conn, t.left-n, mostGulp) // more than the record that TLS has read ahead
	m, err := t.write(t.Body, off, n)
	if errors.Is(err, io.EOF) {
		err = io.ErrUnexpectedEOF
	}
	return m, err
}

// write reads from r until the buffer is full, and writes what came. TLS gives at most 16 KiB at a time.
func (t *taker) write(r io.Reader, off, n int64) (int64, error) {
	m, err := 0, error(nil)
	for buf := t.buf[:min(n, int64(len(t.buf)))]; m < len(buf) && err == nil; {
		var k int
		k, err = r.Read(buf[m:])
		m += k
	}
	if m > 0 {
		if t.left > 0 {
			t.left -= int64(m)
		}
		if _, err := t.file.WriteAt(t.buf[:m], off); err != nil {
			return 0, local("write", err)
		}
		if errors.Is(err, io.EOF) {
			err = nil // it comes again, if more is asked for
		}
	}
	if m == 0 && errors.Is(err, io.EOF) {
		err = io.ErrUnexpectedEOF
	}
	return int64(m), err
}

// writeTrouble tells errors of the file from those of the connection, which come
// out of one call.
func writeTrouble(err error) error {
	if err == nil || errors.Is(err, os.ErrDeadlineExceeded) || errors.Is(err, io.ErrUnexpectedEOF) {
		return err
	}
	if fault := kindOf(err); fault != transfer.Transient {
		return local("write", err)
	}
	if perr, ok := errors.AsType[*os.PathError](err); ok {
		return perr.Err
	}
	return err
}

const (
	// askFirst is the size from which a server is asked whether it wants a body.
	askFirst = 1 << 20
	// sendSlice is how many bytes the kernel is told to send at once.
	sendSlice = 4 << 20
	// shrug is how long an answer to that is waited for: not all servers give one.
	shrug = time.Second
)

// invited waits until the server says that it wants the body (100 Continue), or
// for a while. Any other answer is the last word.
func (c *conn) invited(method string) (*http.Response, error) {
	if err := c.SetReadDeadline(time.Now().Add(shrug)); err != nil {
		return nil, err
	}
	resp, _, err := c.answer(method, true)
	if errors.Is(err, os.ErrDeadlineExceeded) || err == nil && resp.StatusCode < 200 {
		return nil, nil
	}
	return resp, err
}

// send sends the body of q. Its error is io.ErrUnexpectedEOF, as a trouble, if the
// file has become shorter.
func (p *pool) send(c *conn, q question) error {
	if _, err := q.body.Seek(q.off, io.SeekStart); err != nil {
		return local("read", err)
	}
	var to io.ReaderFrom = c.plain
	if c.plain == nil {
		to = &copier{w: c.Conn, size: p.buffer}
	}
	lim := &io.LimitedReader{R: q.body}
	for left := q.size; left > 0; {
		if err := c.SetWriteDeadline(time.Now().Add(p.stall)); err != nil {
			return err
		}
		lim.N = min(left, sendSlice)
		n, err := to.ReadFrom(lim)
		left -= n
		q.sent(n)
		switch {
		case n > 0 && errors.Is(err, os.ErrDeadlineExceeded): // slow, but it moves
		case errors.Is(err, os.ErrDeadlineExceeded):
			return failf(transfer.Transient, "%s took nothing for %s", q.url.Host, p.stall)
		case err != nil:
			return err
		case n == 0:
			return failf(transfer.SourceBad, "the file became shorter while it was read")
		}
	}
	return nil
}

// A copier writes what the kernel cannot send by itself.
type copier struct {
	w    io.Writer
	size int // of buf
	buf  []byte
}

// ReadFrom implements io.ReaderFrom.
func (c *copier) ReadFrom(r io.Reader) (int64, error) {
	if c.buf == nil {
		c.buf = make([]byte, c.size)
	}
	return io.CopyBuffer(struct{ io.Writer }{c.w}, struct{ io.Reader }{r}, c.buf)
}
