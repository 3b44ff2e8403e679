package xrootd

import (
	"context"
	"errors"
	"fmt"

	"weir/storage"
	"weir/storage/wireclient"
)

// How many connections to data servers and how many open files a client
// keeps.
const (
	maxDataLinks = 8
	maxFiles     = 8
)

// A client is one virtual client's session. What only a running operation
// needs lies in a call, which clients share.
type client struct {
	s       *service
	home    link
	data    []*link // the last used first
	files   []*file // open ones, the last used first
	partial string  // path of a write that failed: the file there is ours
}

// Do runs op.
func (c *client) Do(ctx context.Context, op *storage.Op, p storage.Progress) (res storage.Result, err error) {
	x := c.s.calls.Get().(*call)
	x.begin(ctx, c, op, p)
	err = x.run()
	x.settle()
	res = x.Result
	if err != nil {
		err = x.describe(err)
	}
	x.clear()
	c.s.calls.Put(x)
	return res, err
}

// Close ends the session; the servers close what it left open.
func (c *client) Close() error {
	c.files, c.partial = nil, ""
	errs := []error{c.home.close()}
	for _, l := range c.data {
		errs = append(errs, l.close())
	}
	c.data = nil
	return errors.Join(errs...)
}

// link returns the client's connection to a server, open or not.
func (c *client) link(x *call, to *server) *link {
	if to == c.s.home {
		return &c.home
	}
	for i, l := range c.data {
		if l.server == to || *l.server == *to {
			copy(c.data[1:i+1], c.data[:i])
			c.data[0] = l
			return l
		}
	}
	l := &link{s: c.s, server: to}
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
		storage.Mkdir: (*call).mkdir, storage.Remove: (*call).remove, storage.Checksum: (*call).checksum, storage.Move: (*call).move,
		storage.Login: (*call).ping, storage.Ping: (*call).ping, storage.Locate: (*call).locate,
	}
}

// run carries out the operation.
func (x *call) run() error {
	if err := x.check(); err != nil {
		return err
	}
	do := x.c.s.actions[x.Op.Kind]
	if do == nil {
		return fmt.Errorf("%s over the XRootD protocol: %w", x.Op.Kind, errors.ErrUnsupported)
	}
	return do(x)
}

// check refuses what no server needs to be asked about.
func (x *call) check() error {
	if err := x.Ctx.Err(); err != nil {
		return err
	}
	if x.Op.Timeout < 0 {
		return fmt.Errorf("timeout %v is negative", x.Op.Timeout)
	}
	most := maxAhead
	if x.c.s.shared != nil {
		most = blockSize - 1
	}
	if x.Op.Ahead > most {
		return fmt.Errorf("%d requests in flight: use up to %d: %w", x.Op.Ahead, most, errors.ErrUnsupported)
	}
	return checkPath(x.Op.Path)
}
