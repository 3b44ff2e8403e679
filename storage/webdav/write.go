package webdav

import (
	"errors"
	"fmt"
	"io/fs"
	"net/http"
	"os"
	"time"

	"weir/internal/content"
	"weir/internal/tcp"
)

// writeFile is one PUT of made content.
func (x *call) writeFile() error {
	if x.op.Size < 0 {
		return fmt.Errorf("a file of %d bytes: %w", x.op.Size, fs.ErrInvalid)
	}
	l, err := x.exchange(&request{method: http.MethodPut, path: x.op.Path, upload: true})
	if err != nil {
		return err
	}
	return x.made(l)
}

// expects tells whether an upload asks before it sends its body: where the
// last one was redirected, and on the way, the next will be, too.
func (x *call) expects() bool { return len(x.path) == 0 && x.c.s.putsRedirected.Load() }

// sendUpload sends head and body of an upload and reads the answer's head. A
// final answer may come before all is sent: then the rest stays here, and the
// connection is closed after the answer.
func (x *call) sendUpload(l *link) error {
	expects := x.expects()
	if _, err := l.write(x.buf, x.op.Size > 0 && !expects); err != nil {
		return err
	}
	x.release()
	x.cursor.Start(x.op.Seed, 0, x.op.Size)
	if expects {
		if final, err := x.mayContinue(l); final || err != nil {
			x.head.keep = false
			return err
		}
	}
	err := x.sendBody(l)
	if err == nil {
		return x.receive(l)
	}
	if errors.Is(err, os.ErrDeadlineExceeded) || x.ctx.Err() != nil {
		return err
	}
	// Whoever closes in the middle of an upload has often said why.
	if x.receive(l) != nil {
		return err
	}
	x.head.keep = false
	return nil
}

// mayContinue waits for 100 Continue, but not for long. final says that the
// answer came instead.
func (x *call) mayContinue(l *link) (final bool, err error) {
	soon := time.Now().Add(patience)
	hurried := x.deadline.IsZero() || soon.Before(x.deadline)
	if hurried {
		_ = l.conn.SetDeadline(soon)         // never fails
		defer l.conn.SetDeadline(x.deadline) //nolint:errcheck // never fails
	}
	for interim := 0; interim <= maxInterim; interim++ {
		err = x.receiveHead(l)
		switch {
		case err != nil && hurried && errors.Is(err, os.ErrDeadlineExceeded):
			return false, nil
		case err != nil:
			return false, err
		case x.head.status == http.StatusContinue:
			return false, nil
		case x.head.status >= 200:
			return true, nil
		}
	}
	return false, protocolError("more than %d interim answers", maxInterim)
}

// slice is how many bytes go through TLS between two reports.
const slice = 64 << 10

// sendBody sends what the cursor still has.
func (x *call) sendBody(l *link) error {
	for piece := x.cursor.Next(); piece != nil; piece = x.cursor.Next() {
		if err := x.sendPiece(l, piece); err != nil {
			return err
		}
	}
	return nil
}

func (x *call) sendPiece(l *link, piece []byte) error {
	for l.tls != nil || len(piece) <= content.HeadSize { // a head waits for what follows it
		n, err := l.write(piece[:min(len(piece), slice)], x.cursor.Left() > 0)
		x.moved(n)
		if piece = piece[n:]; err != nil || len(piece) == 0 {
			return err
		}
	}
	for {
		n, err := l.conn.Send(piece, x.moved)
		piece = piece[n:]
		if !errors.Is(err, tcp.ErrAnswered) {
			return err
		}
		if err := x.receiveHead(l); err != nil {
			return err
		}
		if x.head.status >= 200 {
			x.pos = 0 // receive reads the head again
			return tcp.ErrAnswered
		}
	}
}
