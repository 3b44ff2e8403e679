package ftp

import (
	"context"
	"errors"
	"net/url"
	"time"

	"weir/internal/content"
	"weir/internal/tcp"
	"weir/storage"
)

// bufferSize is the room for a command, or for the replies that come at once.
// The longest line is MLST's with a path of 4096 bytes.
const bufferSize = 6 << 10

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
	server   string // the data server's address, once it is known and told
	reply    reply
	buf      []byte  // what has come of replies: buf[pos:end] is unread
	held     *[]byte // what buf lies in, while there is one
	pos, end int
	heard    bool      // something has come since the last command
	data     *tcp.Conn // the data connection
	moved    func(int)
	discard  func(int)
	cursor   content.Cursor
	dest     *storage.Dest // takes the payload; nil for nobody
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
	x.reached, x.server = 0, ""
	x.pos, x.end = 0, 0
}

// settle ends what the operation has left under way and counts its bytes.
func (x *call) settle() {
	x.hangUp()
	if x.pos != x.end { // more than was asked for: whatever follows is not the next answer
		x.drop()
	}
	if c := x.c; c.conn != nil {
		x.count()
	}
}

// count adds the control connection's bytes since the last count.
func (x *call) count() {
	total := x.c.conn.In() + x.c.conn.Out()
	x.res.Wire += total - x.c.counted
	x.c.counted = total
}

// drop closes a session whose state is not known.
func (x *call) drop() {
	x.pos, x.end = 0, 0
	x.dropStreams()
	x.c.extended = false
	if x.c.conn == nil {
		return
	}
	x.count()
	_ = x.c.conn.Close() // whatever it says, the connection is gone
	x.c.conn, x.c.counted = nil, 0
}

// hangUp closes the data connection.
func (x *call) hangUp() {
	if x.data == nil {
		return
	}
	x.res.Wire += x.data.In() + x.data.Out()
	_ = x.data.Close() // whatever it says, the connection is gone
	x.data = nil
}

// clear forgets whatever belongs to the client.
func (x *call) clear() {
	x.release()
	x.c, x.ctx, x.op, x.p, x.dest = nil, nil, nil, nil, nil
	x.res = storage.Result{}
}

// hold makes sure that there is a buffer. Clients that wait for a server have
// none: thousands may wait, and few are answered at once.
func (x *call) hold() {
	if x.held == nil {
		x.held = x.c.s.small.Get().(*[]byte) //nolint:forcetypeassert // the pool has nothing else
		x.buf = *x.held
	}
}

func (x *call) release() {
	if x.held != nil {
		x.c.s.small.Put(x.held)
		x.held, x.buf = nil, nil
	}
}

// Lend implements tcp.Lender.
func (x *call) Lend() []byte {
	x.hold()
	return x.buf[x.end:]
}

// Return implements tcp.Lender.
func (x *call) Return() {
	if x.end == 0 {
		x.release()
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
	if !errors.Is(err, storage.ErrScratch) {
		e.Server = x.server
	}
	return e
}

func (x *call) url() string {
	if x.op.Path == "" {
		return x.c.s.shown
	}
	return x.c.s.shown + "/" + (&url.URL{Path: x.op.Path}).EscapedPath()
}
