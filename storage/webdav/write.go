package webdav

import (
	"errors"
	"fmt"
	"io/fs"
	"net/http"
	"os"

	"weir/internal/content"
	"weir/internal/tcp"
	"weir/storage/wireclient"
)

// writeFile sends one PUT of generated content.
func (x *call) writeFile() error {
	if x.Op.Size < 0 {
		return fmt.Errorf("a file of %d bytes: %w", x.Op.Size, fs.ErrInvalid)
	}
	l, err := x.wire.upload(x.Op.Path)
	if err != nil {
		return err
	}
	return x.made(l)
}

// upload sends generated content to a path and records the service's response.
func (x *exchange) upload(path string) (*link, error) {
	x.withheld, x.counted, x.again, x.unanswered = 0, 0, 0, false
	l, err := x.do(&request{method: http.MethodPut, path: path, upload: true})
	if x.withheld > 0 { // there was no redirect
		x.call.CountMoved(x.withheld)
	}
	if err != nil {
		return nil, err
	}
	if x.unanswered && len(x.path) == 0 {
		x.c.s.expect.Store(expectNever)
	}
	if puts := &x.c.s.puts; len(x.path) == 0 && x.head.status < 300 && puts.Load() == putsUnknown {
		puts.CompareAndSwap(putsUnknown, putsKept)
	}
	return l, nil
}

// Treatment of uploads by the service: the first server has stored them, or has redirected them.
const (
	putsUnknown = iota
	putsKept
	putsRedirected
)

// Waiting for 100 Continue: a server that has not responded in time waits for the body, or is slow
// to redirect.
const (
	expectShortly = iota
	expectPatiently
	expectNever // the server refuses Expect, or ignores it
)

// expects reports whether an upload sends Expect before its body: if the last upload was redirected
// and this request goes to the target, a redirect is likely.
func (x *exchange) expects() bool {
	return len(x.path) == 0 && x.c.s.puts.Load() == putsRedirected && x.c.s.expect.Load() != expectNever
}

// mayWithhold reports whether the bytes of an upload count only once they are known to be stored:
// as long as another server may store them. The bytes of a large file are counted while they are
// sent, since it would be a while until then, unless the server usually redirects.
func (x *exchange) mayWithhold() bool {
	const large = 64 << 20
	return len(x.path) == 0 && (x.asks && x.unanswered || x.c.s.puts.Load() != putsKept && x.call.Op.Size <= large)
}

// sendUpload sends header and body of an upload and reads the response's header. A final response
// may arrive before the whole body is sent: then the rest is not sent, and the connection is closed
// after the response.
func (x *exchange) sendUpload(l *link) error {
	if _, err := l.write(x.Data, x.call.Op.Size > 0 && !x.asks); err != nil {
		return err
	}
	x.Release()
	x.call.Cursor.Start(x.call.Op.Seed, 0, x.call.Op.Size)
	if x.asks {
		if final, err := x.mayContinue(l); final || err != nil {
			x.head.keep = false
			return err
		}
	}
	x.withholds = x.mayWithhold()
	err := x.sendBody(l)
	if err == nil {
		return x.receive(l)
	}
	if errors.Is(err, os.ErrDeadlineExceeded) || x.call.Ctx.Err() != nil {
		return err
	}
	// A server that closes in the middle of an upload has often sent the reason.
	if x.receive(l) != nil {
		return err
	}
	x.head.keep = false
	return nil
}

// mayContinue waits for 100 Continue; final is true if the final response arrived instead. A
// redirector sends nothing while it looks for a place.
func (x *exchange) mayContinue(l *link) (final bool, err error) {
	wait := shortWait
	if x.c.s.expect.Load() == expectPatiently {
		wait = longWait
	}
	soon, hurried := x.call.Sooner(wait)
	if hurried {
		_ = l.conn.SetDeadline(soon)              // never fails
		defer l.conn.SetDeadline(x.call.Deadline) //nolint:errcheck // never fails
	}
	for interim := 0; interim <= maxInterim; interim++ {
		err = x.receiveHead(l)
		switch {
		case err != nil && hurried && errors.Is(err, os.ErrDeadlineExceeded):
			if x.unanswered = true; wait == longWait {
				x.c.s.expect.Store(expectNever)
			}
			return false, nil
		case err != nil:
			return false, err
		case x.head.status == http.StatusContinue:
			return false, nil
		case x.head.status >= 200:
			return true, nil
		}
	}
	return false, wireclient.ProtocolError("more than %d interim answers", maxInterim)
}

// sentMore counts bytes of an upload, now or once they are known to be stored.
func (x *exchange) sentMore(n int) {
	if x.withholds {
		x.withheld += n
		return
	}
	again := min(n, x.again)
	x.again -= again
	x.counted += n - again
	x.call.CountMoved(n - again)
}

// slice is the number of bytes that are sent over TLS between two reports.
const slice = 64 << 10

// sendBody sends the remaining bytes of the cursor.
func (x *exchange) sendBody(l *link) error {
	for piece := x.call.Cursor.Next(); piece != nil; piece = x.call.Cursor.Next() {
		if err := x.sendPiece(l, piece); err != nil {
			return err
		}
	}
	return nil
}

func (x *exchange) sendPiece(l *link, piece []byte) error {
	for l.tls != nil || len(piece) <= content.HeadSize { // a header is sent together with the following bytes
		n, err := l.write(piece[:min(len(piece), slice)], x.call.Cursor.Left() > 0)
		x.sent(n)
		if piece = piece[n:]; err != nil || len(piece) == 0 {
			return err
		}
	}
	for {
		n, err := l.conn.Send(piece, x.sent)
		piece = piece[n:]
		if !errors.Is(err, tcp.ErrAnswered) {
			return err
		}
		if err := x.receiveHead(l); err != nil {
			return err
		}
		if x.head.status >= 200 {
			x.Pos = 0 // receive reads the head again
			return tcp.ErrAnswered
		}
	}
}
