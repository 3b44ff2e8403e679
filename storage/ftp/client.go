package ftp

import (
	"context"
	"errors"
	"fmt"
	"net/url"

	"weir/internal/tcp"
	"weir/storage"
	"weir/storage/wireclient"
)

// A client is one virtual client's session. State that only a running operation needs is in a call,
// which clients share.
type client struct {
	s        *service
	extended bool      // MODE E is on
	conn     *tcp.Conn // the control connection, logged in; nil: not connected
	channel  *channel  // its security; nil: commands and replies are in the clear
	counted  int64     // bytes of it that results include already
	blocks   *streams  // its data connections in MODE E; nil: unused
	left     string    // path of a write that did not succeed: it may be written again
}

// Do runs op.
func (c *client) Do(ctx context.Context, op *storage.Op, p storage.Progress) (storage.Result, error) {
	x := c.s.calls.Get().(*call)
	x.control.c = c
	x.Begin(ctx, op, p)
	err := x.run()
	x.settle()
	if g := c.s.grid; g != nil {
		x.Result.Renewed = g.source.Renewals()
	}
	res := x.Result
	if err != nil {
		err = x.Describe(x.url(), x.transfer.server, err)
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
	c.quit()
	err := c.conn.Close()
	c.conn, c.channel, c.counted = nil, nil, 0
	return err
}

// quit sends QUIT. The reply is ignored.
func (c *client) quit() {
	command, err := []byte("QUIT\r\n"), error(nil)
	if c.channel != nil {
		if command, err = c.channel.protect(nil, command); err != nil {
			return
		}
		command = append(command, '\r', '\n')
	}
	_, _ = c.conn.Write(command)
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
	do := x.s.methods[x.Op.Kind]
	if do == nil {
		return fmt.Errorf("%s over FTP: %w", x.Op.Kind, errors.ErrUnsupported)
	}
	return do(x)
}

// bufferSize is the size of the buffer for a command, or for replies that arrive together. The
// longest line is MLST's with a path of 4096 bytes.
const bufferSize = 6 << 10

// A call is a running operation: its methods implement the kinds of operations with commands over
// the control connection and with transfers.
type call struct {
	wireclient.Call
	s        *service
	control  control
	transfer transfer
}

func newCall(s *service) *call {
	x := &call{s: s}
	x.Init()
	x.control.call, x.control.Pool = &x.Call, s.small
	x.transfer.call, x.transfer.control = &x.Call, &x.control
	return x
}

// settle ends the commands and transfers in progress and counts their bytes.
func (x *call) settle() {
	x.transfer.close()
	x.control.settle()
}

// clear drops all references to the client.
func (x *call) clear() {
	x.control.Release()
	x.Clear()
	x.control.c, x.transfer.server = nil, ""
}

func (x *call) url() string {
	if x.Op.Path == "" {
		return x.s.shown
	}
	return x.s.shown + "/" + (&url.URL{Path: x.Op.Path}).EscapedPath()
}

// path returns the path of the operation.
func (x *call) path() path { return path{x.s, x.Op.Path} }
