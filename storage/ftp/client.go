package ftp

import (
	"context"
	"errors"
	"fmt"

	"weir/internal/tcp"
	"weir/storage"
	"weir/storage/wireclient"
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
	x := c.s.calls.Get().(*call)
	x.c = c
	x.Begin(ctx, op, p)
	err := x.run()
	x.settle()
	res := x.Result
	if err != nil {
		err = x.Describe(x.url(), x.server, err)
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

// methods carry out the kinds of operations.
func methods() wireclient.Methods[*call] {
	return wireclient.Methods[*call]{
		storage.Read: (*call).read, storage.Write: (*call).writeFile, storage.Stat: (*call).stat, storage.List: (*call).list,
		storage.Mkdir: (*call).mkdir, storage.Remove: (*call).remove, storage.Checksum: (*call).checksum,
		storage.Move: (*call).move, storage.Login: (*call).login, storage.Ping: (*call).login,
	}
}

// run carries out the operation.
func (x *call) run() error {
	if err := x.Check(); err != nil {
		return err
	}
	if err := sendable(x.Op.Path); err != nil {
		return err
	}
	if err := x.path().check(); err != nil {
		return err
	}
	do := x.c.s.methods[x.Op.Kind]
	if do == nil {
		return fmt.Errorf("%s over FTP: %w", x.Op.Kind, errors.ErrUnsupported)
	}
	return do(x)
}
