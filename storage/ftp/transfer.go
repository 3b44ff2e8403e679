package ftp

import (
	"bytes"
	"crypto/tls"
	"errors"
	"fmt"
	"hash"
	"io"
	"math"
	"os"
	"time"

	"weir/internal/content"
	"weir/internal/tcp"
	"weir/storage"
	"weir/storage/wireclient"
)

// patience is the longest time for which a client waits for the reason of a broken data connection.
const patience = 5 * time.Second

// A transfer moves payload and listings of an operation over data connections. The commands that
// start it and the replies that end it use the control connection.
type transfer struct {
	call     *wireclient.Call
	control  *control
	server   string          // the data server's address, once it is known and reported
	data     *tcp.Conn       // the data connection; nil: not open, or the client's streams are used
	securing <-chan securing // receives when data is secured; nil: it is secured, or need not be
	secured  *tls.Conn       // TLS on data; nil: data is not encrypted
}

// take completes the command whose first reply is the last reply: it moves all bytes that arrive,
// drops them if they are not needed, otherwise passes them through sum to their destination, and
// counts them. More than limit, if that is not negative, are an error.
func (t *transfer) take(limit int64, sum hash.Hash) (int64, error) {
	if t.control.c.blocks != nil {
		return t.takeBlocks(limit)
	}
	if err := t.begun(); err != nil {
		return 0, err
	}
	most := int64(math.MaxInt64)
	if limit >= 0 && limit < most {
		most = limit + 1
	}
	n, err := t.drain(most, sum)
	switch {
	case limit >= 0 && n > limit:
		t.close()
		t.control.drop() // the server is still sending
		return n, t.tooMuch(limit)
	case err != nil:
		return n, t.brokenOff(err)
	}
	return n, t.ended()
}

// tooMuch is the error of a transfer of more than limit bytes: a whole file has another size, and
// for a part the server has sent bytes that were not requested.
func (t *transfer) tooMuch(limit int64) error {
	if t.call.Op.Ranges == nil {
		return fmt.Errorf("%w: more than the %d bytes expected", storage.ErrSize, limit)
	}
	return wireclient.ProtocolError("more than the %d bytes asked for", limit)
}

// brokenOff returns the error of a transfer that ended with err.
func (t *transfer) brokenOff(err error) error {
	if errors.Is(err, storage.ErrScratch) {
		t.close()
		t.control.drop()
		return err
	}
	return t.whyBroken(err)
}

// takeFirst is take for the first n bytes of the data; the rest is not read.
func (t *transfer) takeFirst(n int64, sum hash.Hash) (int64, error) {
	if err := t.begun(); err != nil {
		return 0, err
	}
	got, err := t.drain(n, sum)
	if err != nil {
		return got, t.brokenOff(err)
	}
	if got < n {
		return got, t.ended()
	}
	t.close() // the server sends 226 or 426, depending on when it detects the close
	if err := t.control.hearBreak(); err != nil {
		return got, err
	}
	if t.control.reply.code == 421 {
		t.control.drop()
	}
	return got, nil
}

// begun checks whether the server announces a transfer.
func (t *transfer) begun() error {
	err := t.control.done(nil)
	if err == nil {
		err = t.secure()
	}
	if err == nil {
		t.call.Reach(storage.Opened)
	}
	return err
}

// ended closes the data connection and reads the result of a transfer.
func (t *transfer) ended() error {
	t.close()
	if t.control.reply.code < 200 { // else the final reply came at once
		return t.control.done(t.control.hearEnd())
	}
	return t.control.done(nil)
}

// drain moves up to n bytes; fewer without an error if there are no more.
func (t *transfer) drain(n int64, sum hash.Hash) (int64, error) {
	if sum == nil && t.call.Dest == nil && t.secured == nil {
		got, err := t.data.Discard(n, t.call.Discard)
		if errors.Is(err, io.ErrUnexpectedEOF) {
			err = nil
		}
		return got, err
	}
	return t.call.Through(t.control.c.s.buffers, n, sum, t.readData)
}

// readData reads from the data connection. Globus ends it without TLS's end mark; the reply on the
// control connection reports whether all data was sent.
func (t *transfer) readData(p []byte) (int, error) {
	if t.secured == nil {
		return t.data.Read(p)
	}
	n, err := t.secured.Read(p)
	if errors.Is(err, io.ErrUnexpectedEOF) {
		err = io.EOF
	}
	return n, err
}

// sendBody sends the bytes of the cursor.
func (t *transfer) sendBody() error {
	for piece := t.call.Cursor.Next(); piece != nil; piece = t.call.Cursor.Next() {
		if err := t.sendPiece(piece); err != nil {
			return err
		}
	}
	return nil
}

func (t *transfer) sendPiece(piece []byte) error {
	if t.secured != nil {
		n, err := t.secured.Write(piece)
		t.call.Moved(n)
		return err
	}
	if len(piece) <= content.HeadSize && t.call.Cursor.Left() > 0 { // a header is sent together with the following bytes
		n, err := t.data.WriteMore(piece)
		t.call.Moved(n)
		return err
	}
	_, err := t.data.Send(piece, t.call.Moved)
	return err
}

// lines calls take with each line of the data connection.
func (t *transfer) lines(take func(line []byte) error) error {
	held := t.control.c.s.buffers.Get().(*[]byte)
	defer t.control.c.s.buffers.Put(held)
	buf, end := *held, 0
	for {
		n, err := t.readData(buf[end:])
		if n == 0 && errors.Is(err, io.EOF) {
			if end > 0 {
				return take(bytes.TrimRight(buf[:end], "\r"))
			}
			return nil
		}
		if err != nil {
			return err
		}
		end += n
		from := 0
		for {
			i := bytes.IndexByte(buf[from:end], '\n')
			if i < 0 {
				break
			}
			if err := take(bytes.TrimRight(buf[from:from+i], "\r")); err != nil {
				return err
			}
			from += i + 1
		}
		if end = copy(buf, buf[from:end]); end == len(buf) {
			return wireclient.ProtocolError("a line of a listing of more than %d bytes", len(buf))
		}
	}
}

// close closes the data connection.
func (t *transfer) close() {
	if t.data == nil {
		return
	}
	if t.securing != nil {
		t.data.Break()
		<-t.securing
		t.securing = nil
	}
	t.call.Result.Wire += t.data.In() + t.data.Out()
	_ = t.data.Close() // the connection is gone in any case
	t.data, t.secured = nil, nil
}

// whyBroken returns the server's error for a transfer whose data connection failed with err, or
// err. It does not wait for long.
//
//go:noinline
func (t *transfer) whyBroken(err error) error {
	t.close()
	if errors.Is(err, os.ErrDeadlineExceeded) || t.call.Ctx.Err() != nil {
		t.control.drop() // the server is still sending or receiving
		return err
	}
	soon, _ := t.call.Sooner(patience)
	_ = t.control.c.conn.SetDeadline(soon) // never fails
	if t.control.hearEnd() != nil {
		return err
	}
	_ = t.control.c.conn.SetDeadline(t.call.Deadline) // never fails
	if t.control.reply.code >= 400 {
		return t.control.refusal()
	}
	return err
}
