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
	// worthSplice is the number of bytes from which the kernel's detour through a pipe pays off.
	worthSplice = 128 << 10
	// mostGulp is the maximum number of bytes that the kernel gathers: until they have arrived, a
	// slow source seems to send nothing.
	mostGulp = 256 << 10
)

// A taker writes the body of a response to a file. It does not allocate while it does so.
type taker struct {
	*answer
	ctx     context.Context
	file    *os.File // with a position of its own
	buf     []byte
	lim     io.LimitedReader
	touched time.Time
}

// take writes up to n bytes of the body, which has at least as many, at off, and returns the number
// written: fewer only with an error, io.ErrUnexpectedEOF if the body has ended.
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
			t.touched, err = time.Time{}, nil // slow, but it makes progress
		}
	}
	if errors.Is(err, os.ErrDeadlineExceeded) {
		err = failf(transfer.Transient, "nothing came from %s for %s", t.from.Host, t.pool.stall)
	}
	return done, err
}

// touch extends the deadline of the connection, unless it was just extended.
func (t *taker) touch() error {
	now := time.Now()
	if now.Sub(t.touched) < t.pool.stall/8 {
		return nil
	}
	t.touched = now
	if err := t.conn.SetReadDeadline(now.Add(t.pool.stall)); err != nil {
		return err
	}
	if t.ctx.Err() != nil { // the deadline set by its end was just overwritten
		return context.Cause(t.ctx)
	}
	return nil
}

// direct reads bytes from the connection itself; many bytes are moved by the kernel.
func (t *taker) direct(off, n int64) (int64, error) {
	if b := t.conn.in.Buffered(); b > 0 { // they arrived with the head
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

// copy moves bytes through memory: they are encrypted, or chunked.
func (t *taker) copy(off, n int64) (int64, error) {
	gather(t.conn, t.left-n, mostGulp) // more than the record that TLS has read ahead
	m, err := t.write(t.Body, off, n)
	if errors.Is(err, io.EOF) {
		err = io.ErrUnexpectedEOF
	}
	return m, err
}

// write reads from r until the buffer is full, and writes the data to the file. TLS returns at most
// 16 KiB per read.
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
			err = nil // the next read returns it again
		}
	}
	if m == 0 && errors.Is(err, io.EOF) {
		err = io.ErrUnexpectedEOF
	}
	return int64(m), err
}

// writeTrouble separates errors of the file from errors of the connection, which are returned by
// the same call.
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
	// askFirst is the size from which a body is sent with Expect: 100-continue.
	askFirst = 1 << 20
	// sendSlice is the number of bytes passed to the kernel at once.
	sendSlice = 4 << 20
	// shrug is the time to wait for the response to that: not all servers send one.
	shrug = time.Second
)

// invited waits until the server accepts the body (100 Continue), or until the time is over. Any
// other response is final.
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

// send sends the body of q. If the file has become shorter, its error is a trouble of the class
// SourceBad.
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
		case n > 0 && errors.Is(err, os.ErrDeadlineExceeded): // slow, but it makes progress
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

// A copier writes data that the kernel cannot send by itself.
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
