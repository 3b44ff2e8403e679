package xrootd

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"

	"weir/internal/tlsconn"
	"weir/storage"
	"weir/storage/wireclient"
)

// The numbers of connections to data servers and of open files that a client keeps.
const (
	maxDataLinks = 8
	maxFiles     = 8
)

// A client is one virtual client's session. State that only a running operation needs is in a call,
// which clients share.
type client struct {
	s       *service
	home    link
	data    []*link          // the last used first
	files   []*file          // open files, the last used first
	tickets *tlsconn.Tickets // nil: no TLS session is resumed
	partial string           // path of a write that failed: the file there is ours
	others  *partners        // of third-party copies, once there was one; nil before
}

// Do runs op.
func (c *client) Do(ctx context.Context, op *storage.Op, p storage.Progress) (storage.Result, error) {
	return c.do(ctx, op, p, nil, nil)
}

// do runs op. to receives the payload of a read, from provides the payload of a write; each may be
// nil.
func (c *client) do(ctx context.Context, op *storage.Op, p storage.Progress, to io.Writer, from io.Reader) (res storage.Result, err error) {
	x := c.s.calls.Get().(*call)
	x.begin(ctx, c, op, p)
	x.transfer.to, x.transfer.from = to, from
	err = x.run()
	x.exchange.settle()
	x.Result.Renewed = c.s.renewals()
	res = x.Result
	if err != nil {
		err = x.describe(err)
	}
	x.clear()
	c.s.calls.Put(x)
	return res, err
}

// Close ends the session; the servers close its open files.
func (c *client) Close() error {
	c.files, c.partial = nil, ""
	errs := []error{c.home.close(), c.others.close()}
	for _, l := range c.data {
		errs = append(errs, l.close())
	}
	c.data = nil
	return errors.Join(errs...)
}

// link returns the client's connection to a server, open or not.
func (c *client) link(x *exchange, to *server) *link {
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
	l := new(c.s.link(to))
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
		storage.Copy: (*call).copyFile,
	}
}

// run carries out the operation.
func (x *call) run() error {
	if err := x.check(); err != nil {
		return err
	}
	do := x.s.actions[x.Op.Kind]
	if do == nil {
		return fmt.Errorf("%s over the XRootD protocol: %w", x.Op.Kind, errors.ErrUnsupported)
	}
	return do(x)
}

// check validates the operation before a request is sent.
func (x *call) check() error {
	if err := x.Ctx.Err(); err != nil {
		return err
	}
	if x.Op.Timeout < 0 {
		return fmt.Errorf("timeout %v is negative", x.Op.Timeout)
	}
	most := maxAhead
	if x.s.shared != nil {
		most = blockSize - 1
	}
	if x.Op.Ahead > most {
		return fmt.Errorf("%d requests in flight: use up to %d: %w", x.Op.Ahead, most, errors.ErrUnsupported)
	}
	return checkPath(x.Op.Path)
}

// A call is a running operation: its methods implement the kinds of operations with requests of its
// exchange. Its transfer moves the payload.
type call struct {
	wireclient.Call
	s        *service
	exchange exchange
	transfer transfer
	file     file // the operation's, unless it stays open
}

func newCall(s *service) *call {
	x := &call{s: s}
	x.exchange.call = &x.Call
	x.transfer.init(&x.Call, &x.exchange)
	return x
}

func (x *call) begin(ctx context.Context, c *client, op *storage.Op, p storage.Progress) {
	x.Begin(ctx, op, p)
	x.exchange.begin(c)
}

// clear drops all references to the client.
func (x *call) clear() {
	x.Clear()
	x.exchange.clear()
	x.transfer.clear()
	x.file = file{}
}

// maxKept is the size of the largest buffer, in bytes, that a call keeps after a listing.
const maxKept = 64 << 10

// describe puts an error into the words of package storage.
//
//go:noinline
func (x *call) describe(err error) error {
	if _, described := errors.AsType[*storage.OpError](err); described { // of a copy, at its source
		return x.Describe(x.s.url(x.Op.Path), "", err)
	}
	if x.Op.Timeout > 0 && errors.Is(err, os.ErrDeadlineExceeded) && refused(err) == 0 {
		err = fmt.Errorf("not done within %v: %s: %w", x.Op.Timeout, x.exchange.place(), err)
	} else if x.exchange.doing != 0 && (broken(err) || errors.Is(err, storage.ErrProtocol)) {
		err = fmt.Errorf("%w (after %s)", err, requestName(x.exchange.doing))
	}
	server := ""
	if x.exchange.at != x.s.home {
		server = x.exchange.at.name
	}
	return x.Describe(x.s.url(x.Op.Path), server, err)
}
