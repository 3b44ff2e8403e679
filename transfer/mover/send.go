package mover

import (
	"errors"
	"io"
	"net/http"
	"os"
	"time"

	"weir/transfer"
)

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
		return nil, nil //nolint:nilnil // go on, no last word
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
		to = &copier{w: c.Conn}
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
	w   io.Writer
	buf []byte
}

// ReadFrom implements io.ReaderFrom.
func (c *copier) ReadFrom(r io.Reader) (int64, error) {
	if c.buf == nil {
		c.buf = make([]byte, bufferSize)
	}
	return io.CopyBuffer(struct{ io.Writer }{c.w}, struct{ io.Reader }{r}, c.buf)
}
