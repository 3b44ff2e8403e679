package ftp

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net/url"

	"weir/internal/tcp"
	"weir/storage"
	"weir/storage/wireclient"
)

// A client is one virtual client's session. What only a running operation needs lies in a call, which clients
// share.
type client struct {
	s        *service
	extended bool      // MODE E is on
	conn     *tcp.Conn // the control connection, logged in; nil for none
	channel  *channel  // its security; nil: commands and replies are in the clear
	counted  int64     // bytes of it that are already in results
	blocks   *streams  // its data connections, where it has several; nil for none
	left     string    // path of a write that did not end well: ours to write again
}

// Do runs op.
func (c *client) Do(ctx context.Context, op *storage.Op, p storage.Progress) (storage.Result, error) {
	x := c.s.calls.Get().(*call)
	x.c, x.Pool = c, c.s.small
	x.Begin(ctx, op, p)
	err := x.run()
	x.settle()
	if g := c.s.grid; g != nil {
		x.Result.Renewed = g.source.Renewals()
	}
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
	c.quit()
	err := c.conn.Close()
	c.conn, c.channel, c.counted = nil, nil, 0
	return err
}

// quit says that the session ends. The answer does not matter.
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
	do := x.c.s.methods[x.Op.Kind]
	if do == nil {
		return fmt.Errorf("%s over FTP: %w", x.Op.Kind, errors.ErrUnsupported)
	}
	return do(x)
}

// bufferSize is the room for a command, or for the replies that come at once. The longest line is MLST's with a
// path of 4096 bytes.
const bufferSize = 6 << 10

// A call is one operation while it runs.
type call struct {
	wireclient.Call
	wireclient.Buffer // a command, or replies
	c                 *client
	server            string // the data server's address, once it is known and reported
	reply             reply
	heard             bool            // something has come since the last command
	data              *tcp.Conn       // the data connection
	securing          <-chan securing // ends when data is secured; nil: it is, or is not to be
	secured           *tls.Conn       // where what goes over data is encrypted
	plain             []byte          // protected replies that are decrypted and not read yet
	room              []byte          // where plain begins
	token             []byte          // room for a protected command or reply
}

func newCall() *call {
	x := &call{}
	x.Init()
	return x
}

// settle ends what the operation has left under way and counts its bytes.
func (x *call) settle() {
	x.closeData()
	if x.unasked() { // more than was asked for: whatever follows is not the next answer
		x.drop()
	}
	if c := x.c; c.conn != nil {
		x.Count(c.conn, &c.counted)
	}
}

// drop closes a session whose state is not known.
func (x *call) drop() {
	x.Pos, x.End, x.plain = 0, 0, x.plain[:0]
	x.dropStreams()
	x.c.extended = false
	if x.c.conn == nil {
		return
	}
	x.Count(x.c.conn, &x.c.counted)
	_ = x.c.conn.Close() // the connection is gone in any case
	x.c.conn, x.c.channel, x.c.counted = nil, nil, 0
}

// closeData closes the data connection.
func (x *call) closeData() {
	if x.data == nil {
		return
	}
	if x.securing != nil {
		x.data.Break()
		<-x.securing
		x.securing = nil
	}
	x.Result.Wire += x.data.In() + x.data.Out()
	_ = x.data.Close() // the connection is gone in any case
	x.data, x.secured = nil, nil
}

// clear forgets whatever belongs to the client.
func (x *call) clear() {
	x.Release()
	x.Clear()
	x.c, x.server = nil, ""
}

func (x *call) url() string {
	if x.Op.Path == "" {
		return x.c.s.shown
	}
	return x.c.s.shown + "/" + (&url.URL{Path: x.Op.Path}).EscapedPath()
}
