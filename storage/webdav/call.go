package webdav

import (
	"context"

	"weir/storage"
	"weir/storage/wireclient"
)

// Sizes of the buffer for requests, heads of answers and the first payload.
// A small file, or a page of 8 KiB, comes in with its head, in one system call.
const (
	bufferSize = 9 << 10
	maxHead    = 64 << 10
)

// A call is one operation while it runs.
type call struct {
	wireclient.Call
	c        *client
	server   *origin // where the operation is now
	body     bodyState
	head     head
	buf      []byte  // the request; then the answer: buf[pos:end] is unread
	held     *[]byte // what buf lies in, while there is one
	pos, end int
	heard    bool   // something of the answer has come
	path     []byte // of a redirect; empty for the target's own
	sent     func(int)

	withholds bool   // bytes of an upload are reported once they are known to be kept
	withheld  int    // how many are not reported yet
	line      []byte // first line of an error's body
}

func newCall() *call {
	x := &call{}
	x.Init()
	x.sent = x.sentMore
	return x
}

func (x *call) begin(ctx context.Context, c *client, op *storage.Op, p storage.Progress) {
	x.Begin(ctx, op, p)
	x.c, x.server = c, c.s.home
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
	x.Clear()
	x.c, x.server = nil, nil
	x.head, x.body = head{}, bodyState{}
}

// hold makes sure that there is a buffer. Clients that wait for a server have
// none: thousands may wait, and few are answered at once.
func (x *call) hold() {
	if x.held == nil {
		x.held = x.c.s.small.Get().(*[]byte)
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

// dataServer returns the data server where the operation is, "" for the target.
func (x *call) dataServer() string {
	if x.server == x.c.s.home {
		return ""
	}
	return x.server.name
}

func (x *call) url() string {
	if x.Op.Path == "" {
		return x.c.s.shown
	}
	return x.c.s.shown + "/" + string(appendPath(nil, x.Op.Path))
}
