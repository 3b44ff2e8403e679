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

// writeFile is one PUT of made content.
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

// upload sends made content to a path and remembers how the service has treated it.
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

// What a service has done with uploads: the server that is asked first has kept them, or has redirected them.
const (
	putsUnknown = iota
	putsKept
	putsRedirected
)

// How long uploads wait for 100 Continue: a server that has not answered in time waits for the body, or is slow to redirect.
const (
	expectShortly = iota
	expectPatiently
	expectNever // the server refuses Expect, or takes no notice of it
)

// expects reports whether an upload asks before it sends its body: where the last one was redirected, and on the way,
// the next will be as well.
func (x *exchange) expects() bool {
	return len(x.path) == 0 && x.c.s.puts.Load() == putsRedirected && x.c.s.expect.Load() != expectNever
}

// mayWithhold reports whether the bytes of an upload count only when it is known that they are kept: as long as
// another server may keep them. Those of a large file are counted as they go, since it would be a while until then,
// unless the server usually redirects.
func (x *exchange) mayWithhold() bool {
	const large = 64 << 20
	return len(x.path) == 0 && (x.asks && x.unanswered || x.c.s.puts.Load() != putsKept && x.call.Op.Size <= large)
}

// sendUpload sends head and body of an upload and reads the answer's head. A final answer may come before all is
// sent: then the rest stays here, and the connection is closed after the answer.
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

// mayContinue waits for 100 Continue; final says that the answer came instead. A redirector that has to look for a
// place says nothing meanwhile.
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

// sentMore counts bytes of an upload, now or when it is known that they are kept.
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

// slice is how many bytes go through TLS between two reports.
const slice = 64 << 10

// sendBody sends what the cursor still has.
func (x *exchange) sendBody(l *link) error {
	for piece := x.call.Cursor.Next(); piece != nil; piece = x.call.Cursor.Next() {
		if err := x.sendPiece(l, piece); err != nil {
			return err
		}
	}
	return nil
}

func (x *exchange) sendPiece(l *link, piece []byte) error {
	for l.tls != nil || len(piece) <= content.HeadSize { // a head waits for what follows it
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
