package xrootd

import (
	"context"
	"errors"
	"fmt"

	"weir/storage"
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
	x := c.s.calls.Get().(*call) //nolint:forcetypeassert // the pool has nothing else
	x.begin(ctx, c, op, p)
	err = x.run()
	x.settle()
	res = x.res
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

// run does what op asks for.
func (x *call) run() error {
	if err := x.check(); err != nil {
		return err
	}
	switch x.op.Kind {
	case storage.Read:
		if x.op.Dest != "" {
			return x.fetch()
		}
		return x.readFile()
	case storage.Write:
		return x.writeFile()
	case storage.Stat:
		return x.stat()
	case storage.List:
		return x.list()
	case storage.Mkdir:
		return x.mkdir()
	case storage.Remove:
		return x.remove()
	case storage.Checksum:
		return x.checksum()
	case storage.Login, storage.Ping:
		return x.ping()
	case storage.Move:
		return x.move()
	case storage.Locate:
		return x.locate()
	default:
		return fmt.Errorf("%s over the XRootD protocol: %w", x.op.Kind, errors.ErrUnsupported)
	}
}

// check refuses what no server needs to be asked about.
func (x *call) check() error {
	if err := x.ctx.Err(); err != nil {
		return err
	}
	if x.op.Timeout < 0 {
		return fmt.Errorf("timeout %v is negative", x.op.Timeout)
	}
	most := maxAhead
	if x.c.s.shared != nil {
		most = blockSize - 1
	}
	if x.op.Ahead > most {
		return fmt.Errorf("%d requests in flight: use up to %d: %w", x.op.Ahead, most, errors.ErrUnsupported)
	}
	return checkPath(x.op.Path)
}
