package xrootd

import (
	"context"
	"errors"
	"fmt"
	"os"
	"time"

	"weir/internal/content"
	"weir/storage"
)

// A call is one operation while it runs. Calls are shared by all clients of a
// service, so that a client that sleeps holds none.
type call struct {
	c        *client
	ctx      context.Context //nolint:containedctx // lives as long as the operation
	op       *storage.Op
	p        storage.Progress
	deadline time.Time
	res      storage.Result
	reached  storage.Told
	at       *server // where the operation is now
	told     *server // whom ServedBy has named last
	req      request // the question that is under way
	asked    bool    // it was sent
	doing    uint16  // the last request that was sent, 0 while connecting
	hail     request // what a login says, before the question
	out      []byte  // what is to be sent
	data     []byte  // the answer to a question
	opaque   string  // what the last redirect wants to be told
	extra    string  // what the question itself adds to the path
	tried    string  // data servers that were lost
	parts    []slot  // of a vector read
	window   window  // reads and writes under way
	slot     *slot   // the one that is being answered
	file     file    // the operation's, unless it stays open
	sum      sum
	dest     *storage.Dest // takes the payload; nil for nobody
	cursor   content.Cursor
	moved    func(int)
	discard  func(int)
	pages    pageCount
}

func newCall() *call {
	x := &call{}
	x.moved = x.tellMoved
	x.discard = func(n int) {
		x.res.Discarded += int64(n)
		x.got(n)
	}
	x.pages.init(x)
	return x
}

func (x *call) begin(ctx context.Context, c *client, op *storage.Op, p storage.Progress) {
	x.c, x.ctx, x.op, x.p = c, ctx, op, p
	x.deadline = op.Deadline()
	x.res = storage.Result{Size: -1}
	x.reached, x.at, x.told = 0, c.s.home, c.s.home
	x.opaque, x.extra, x.tried = "", "", ""
}

// settle counts the bytes that the operation has not told yet.
func (x *call) settle() {
	x.count(&x.c.home)
	for _, l := range x.c.data {
		x.count(l)
	}
}

// maxKept is how large a buffer a call keeps that large listings needed.
const maxKept = 64 << 10

// clear forgets whatever belongs to the client.
func (x *call) clear() {
	x.c, x.ctx, x.op, x.p, x.at, x.told = nil, nil, nil, nil, nil, nil
	x.res = storage.Result{}
	if cap(x.data) > maxKept {
		x.data = nil
	}
	if cap(x.parts) > maxVectorItems {
		x.parts = nil
	}
	x.window.clear()
	x.slot, x.file, x.sum, x.dest = nil, file{}, sum{}, nil
}

// count adds the link's bytes since the last count to the result.
func (x *call) count(l *link) {
	if l.wire == nil {
		return
	}
	total := l.wire.In() + l.wire.Out()
	x.res.Wire += total - l.counted
	l.counted = total
}

// drop closes a link whose state is not known, with the files open on it.
func (x *call) drop(l *link) {
	x.count(l)
	x.c.forget(l)
	if w, ok := l.wire.(secured); ok {
		l.wire = w.wire // without a goodbye, which might have to wait
	}
	_ = l.close() // whatever it says, the connection is gone
}

// reach tells of a phase, once. The session with a data server that a redirect led
// to is not told: its time would be that of the redirector's answer, too.
func (x *call) reach(p storage.Phase) {
	if p >= storage.Redirected || x.reached&(1<<storage.Redirected) == 0 {
		x.reached.Reached(x.p, p)
	}
}

// serve notes that the operation is at a server.
func (x *call) serve(s *server) {
	x.at = s
	if s == x.told {
		return
	}
	x.told = s
	if s == x.c.s.home {
		x.p.ServedBy("")
	} else {
		x.p.ServedBy(s.name)
	}
}

// wanted tells whether somebody wants to see the payload.
func (x *call) wanted() bool { return x.sum.wanted() || x.dest != nil }

func (x *call) tellMoved(n int) {
	if n == 0 {
		return
	}
	if x.op.Kind == storage.Read {
		x.reach(storage.FirstByte)
	}
	x.p.Moved(n)
}

// place says what the operation was waiting for: a redirector that does not
// answer is not a data server that is slow.
func (x *call) place() string {
	if x.doing == 0 {
		return "connecting to " + x.at.name
	}
	return "waiting for " + x.at.name + " to answer " + requestName(x.doing)
}

// describe puts an error into the words of package storage.
//
//go:noinline
func (x *call) describe(err error) error {
	if x.op.Timeout > 0 && errors.Is(err, os.ErrDeadlineExceeded) && refused(err) == 0 {
		err = fmt.Errorf("not done within %v: %s: %w", x.op.Timeout, x.place(), err)
	} else if x.doing != 0 && (broken(err) || errors.Is(err, storage.ErrProtocol)) {
		err = fmt.Errorf("%w (after %s)", err, requestName(x.doing))
	}
	e := &storage.OpError{Kind: x.op.Kind, URL: x.c.s.url(x.op.Path), Err: err}
	if x.at != x.c.s.home && !errors.Is(err, storage.ErrScratch) {
		e.Server = x.at.name
	}
	return e
}

// waitLimit is how long an operation without a timeout waits when it is told
// to, before it calls the service busy.
const waitLimit = 10 * time.Minute

// pause obeys a kXR_wait.
func (x *call) pause(seconds int32, text string) error {
	wait := time.Duration(max(seconds, 0)) * time.Second
	left := waitLimit - x.res.Waited
	if !x.deadline.IsZero() {
		left = time.Until(x.deadline)
	}
	if seconds <= 0 { // a server that says "again at once" again and again must not keep a core busy
		wait = min(time.Duration(x.res.Waits)*time.Millisecond, time.Second)
	}
	if wait > left {
		return fmt.Errorf("%w: it asks to wait %v, longer than the %v that this operation has left%s", storage.ErrBusy, wait, left.Round(time.Millisecond), because(text))
	}
	x.res.Waits++
	x.res.Waited += wait
	t := time.NewTimer(wait)
	defer t.Stop()
	select {
	case <-t.C:
		return nil
	case <-x.ctx.Done():
		return x.ctx.Err()
	}
}

func because(text string) string {
	if text == "" {
		return ""
	}
	return " (" + text + ")"
}
