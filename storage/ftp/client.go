package ftp

import (
	"context"
	"errors"
	"fmt"

	"weir/internal/tcp"
	"weir/storage"
)

// A client is one virtual client's session. What only a running operation
// needs lies in a call, which clients share.
type client struct {
	s        *service
	extended bool      // MODE E is on
	conn     *tcp.Conn // the control connection, logged in; nil for none
	counted  int64     // bytes of it that results have told already
	blocks   *streams  // its data connections, where it has several; nil for none
	left     string    // path of a write that did not end well: ours to write again
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
	if c.conn == nil {
		return nil
	}
	if c.blocks != nil {
		c.blocks.close()
		c.blocks = nil
	}
	c.extended = false
	_, _ = c.conn.Write([]byte("QUIT\r\n")) // nobody waits for the answer
	err := c.conn.Close()
	c.conn, c.counted = nil, 0
	return err
}

// run does what op asks for.
func (x *call) run() error {
	if err := storage.CheckPath(x.op.Path); err != nil {
		return err
	}
	if err := sendable(x.op.Path); err != nil {
		return err
	}
	if err := x.path().check(); err != nil {
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
	case storage.Login, storage.Ping:
		return x.login()
	default:
		return fmt.Errorf("%s over FTP: %w", x.op.Kind, errors.ErrUnsupported)
	}
}
