package webdav

import (
	"context"
	"errors"
	"time"

	"weir/internal/content"
	"weir/storage"
)

// Sizes of the buffer for requests, heads of answers and the first payload.
// A small file, or a page of 8 KiB, comes in with its head, in one system call.
const (
	bufferSize = 9 << 10
	maxHead    = 64 << 10
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
	server   *origin // where the operation is now
	body     bodyState
	head     head
	buf      []byte  // the request; then the answer: buf[pos:end] is unread
	held     *[]byte // what buf lies in, while there is one
	pos, end int
	heard    bool   // something of the answer has come
	path     []byte // of a redirect; empty for the target's own
	moved    func(int)
	discard  func(int)
	cursor   content.Cursor
	dest     *storage.Dest // takes the payload; nil for nobody
	line     []byte        // first line of an error's body
}

func newCall() *call {
	x := &call{}
	x.moved = x.tellMoved
	x.discard = func(n int) {
		x.res.Discarded += int64(n)
		x.tellMoved(n)
	}
	return x
}

func (x *call) begin(ctx context.Context, c *client, op *storage.Op, p storage.Progress) {
	x.c, x.ctx, x.op, x.p = c, ctx, op, p
	x.deadline = op.Deadline()
	x.res = storage.Result{Size: -1}
	x.reached, x.server = 0, c.s.home
	x.pos, x.end = 0, 0
	x.path, x.line = x.path[:0], x.line[:0]
}

// settle counts the bytes that the operation has not told yet.
func (x *call) settle() {
	x.count(&x.c.home)
	for _, l := range x.c.data {
		x.count(l)
	}
}

// clear forgets whatever belongs to the client.
func (x *call) clear() {
	x.release()
	x.c, x.ctx, x.op, x.p, x.server, x.dest = nil, nil, nil, nil, nil, nil
	x.res = storage.Result{}
	x.head, x.body = head{}, bodyState{}
}

// hold makes sure that there is a buffer. Clients that wait for a server have
// none: thousands may wait, and few are answered at once.
func (x *call) hold() {
	if x.held == nil {
		x.held = x.c.s.small.Get().(*[]byte) //nolint:forcetypeassert // the pool has nothing else
		x.buf = *x.held
	}
}

// release gives the buffer back. A head's slices are void from then on.
func (x *call) release() {
	if x.held != nil {
		x.c.s.small.Put(x.held) // if buf has grown, what it has grown to is forgotten
		x.held, x.buf = nil, nil
	}
}

func (x *call) reach(p storage.Phase) { x.reached.Reached(x.p, p) }

func (x *call) tellMoved(n int) {
	if x.op.Kind == storage.Read {
		x.reach(storage.FirstByte)
	}
	x.p.Moved(n)
}

// describe puts an error into the words of package storage.
func (x *call) describe(err error) error {
	e := &storage.OpError{Kind: x.op.Kind, URL: x.url(), Err: err}
	if x.server != nil && x.server != x.c.s.home && !errors.Is(err, storage.ErrScratch) {
		e.Server = x.server.name
	}
	return e
}

func (x *call) url() string {
	if x.op.Path == "" {
		return x.c.s.shown
	}
	return x.c.s.shown + "/" + string(appendPath(nil, x.op.Path))
}
