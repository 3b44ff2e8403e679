package webdav

import (
	"context"
	"errors"
	"fmt"

	"weir/storage"
)

// maxDataLinks is how many connections to data servers a client keeps.
const maxDataLinks = 4

// A client is one virtual client's session. What only a running operation
// needs lies in a call, which clients share.
type client struct {
	s    *service
	home link
	data []*link // the last used first
}

// Do runs op.
func (c *client) Do(ctx context.Context, op *storage.Op, p storage.Progress) (storage.Result, error) {
	x := c.s.calls.Get().(*call) //nolint:forcetypeassert // the pool has nothing else
	x.begin(ctx, c, op, p)
	err := x.run()
	x.settle()
	res := x.res
	if err != nil {
		err = x.describe(err)
	}
	x.clear()
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
	return errors.Join(errs...)
}

// link returns the client's connection to a server, open or not.
func (c *client) link(x *call, o *origin) *link {
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

// run does what op asks for.
func (x *call) run() error {
	if err := storage.CheckPath(x.op.Path); err != nil {
		return err
	}
	if x.op.Timeout < 0 {
		return fmt.Errorf("timeout %v is negative", x.op.Timeout)
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
	case storage.Move:
		return x.move()
	case storage.Login:
		return x.login()
	default:
		return fmt.Errorf("%s over HTTP: %w", x.op.Kind, errors.ErrUnsupported)
	}
}
