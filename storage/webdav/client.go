package webdav

import (
	"context"
	"errors"
	"fmt"

	"weir/internal/tlsconn"
	"weir/storage"
	"weir/storage/wireclient"
)

// maxDataLinks is the number of connections to data servers that a client keeps.
const maxDataLinks = 4

// A client is one virtual client's session. State that only a running operation needs is in a call,
// which clients share.
type client struct {
	s       *service
	home    link
	data    []*link          // the last used first
	tickets *tlsconn.Tickets // nil: no TLS session is resumed
	found   whereabouts
	pusher  storage.Client // of the origin, once it has made a copy; nil before
}

// The whereabouts of a file are the destination of its last redirect, so that a client need not
// request the target again: further ranges of the file are read from there, within an operation
// and, with Op.Keep, in the next operations. Programs that open a file once do the same (davix).
type whereabouts struct {
	at   *origin // nil: no file is known
	path string  // of the file, below the target
	to   []byte  // path and query there
}

// Do runs op.
func (c *client) Do(ctx context.Context, op *storage.Op, p storage.Progress) (storage.Result, error) {
	if op.Kind == storage.Copy && c.s.pusher != nil {
		if c.pusher == nil {
			c.pusher = c.s.pusher.Client()
		}
		return c.pusher.Do(ctx, op, p)
	}
	x := c.s.calls.Get().(*call)
	x.Begin(ctx, op, p)
	x.wire.begin(c)
	err := x.run()
	if !op.Keep {
		c.found.at = nil
	}
	x.wire.settle()
	x.Result.Renewed = c.s.cred.Renewals()
	res := x.Result
	if err != nil {
		err = x.Describe(x.url(), x.wire.dataServer(), err)
	}
	x.wire.clear()
	x.Clear()
	c.s.calls.Put(x)
	return res, err
}

// Close ends the session.
func (c *client) Close() error {
	var errs []error
	errs = append(errs, c.home.close())
	for _, l := range c.data {
		errs = append(errs, l.close())
	}
	c.data = nil
	if c.pusher != nil {
		errs = append(errs, c.pusher.Close())
	}
	return errors.Join(errs...)
}

// link returns the client's connection to a server, open or not.
func (c *client) link(x *exchange, o *origin) *link {
	if o == c.s.home {
		return &c.home
	}
	for i, l := range c.data {
		if l.origin.same(o) {
			copy(c.data[1:i+1], c.data[:i])
			c.data[0] = l
			return l
		}
	}
	l := &link{origin: o}
	if len(c.data) == maxDataLinks {
		x.drop(c.data[maxDataLinks-1])
		c.data = c.data[:maxDataLinks-1]
	}
	c.data = append([]*link{l}, c.data...)
	return l
}

// methods carry out the kinds of operations.
func methods() wireclient.Methods[*call] {
	return wireclient.Methods[*call]{
		storage.Read: (*call).read, storage.Write: (*call).writeFile, storage.Stat: (*call).stat, storage.List: (*call).list,
		storage.Mkdir: (*call).mkdir, storage.Remove: (*call).remove, storage.Checksum: (*call).checksum,
		storage.Move: (*call).move, storage.Login: (*call).login, storage.Copy: (*call).copyFile,
	}
}

// run carries out the operation.
func (x *call) run() error {
	if err := x.Check(); err != nil {
		return err
	}
	do := x.s.methods[x.Op.Kind]
	if do == nil {
		return fmt.Errorf("%s over HTTP: %w", x.Op.Kind, errors.ErrUnsupported)
	}
	return do(x)
}

// Sizes of the buffer for requests, headers of responses and the first payload. A small file, or a
// page of 8 KiB, arrives with its header, in one system call.
const (
	bufferSize = 9 << 10
	maxHead    = 64 << 10
)

// A call is a running operation: its methods implement the kinds of operations with requests of its
// exchange, and evaluate the responses.
type call struct {
	wireclient.Call
	s    *service
	wire exchange
	line []byte // first line of an error's body
}

func newCall(s *service) *call {
	x := &call{s: s}
	x.Init()
	x.wire.init(s, &x.Call)
	return x
}

func (x *call) url() string {
	if e := x.s.passive; e != nil && e.push && x.Op.Kind == storage.Copy {
		return e.url(x.Op.Path)
	}
	if x.Op.Path == "" {
		return x.s.shown
	}
	return x.s.shown + "/" + string(appendPath(nil, x.Op.Path))
}
