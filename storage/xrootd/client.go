package xrootd

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"time"

	"weir/internal/tlsconn"
	"weir/storage"
	"weir/storage/wireclient"
)

// How many connections to data servers and how many open files a client keeps.
const (
	maxDataLinks = 8
	maxFiles     = 8
)

// A client is one virtual client's session. What only a running operation needs lies in a call, which clients
// share.
type client struct {
	s       *service
	home    link
	data    []*link          // the last used first
	files   []*file          // open ones, the last used first
	tickets *tlsconn.Tickets // nil: no TLS session is resumed
	partial string           // path of a write that failed: the file there is ours
}

// Do runs op.
func (c *client) Do(ctx context.Context, op *storage.Op, p storage.Progress) (storage.Result, error) {
	return c.do(ctx, op, p, nil, nil)
}

// do runs op. to takes the payload of a read, from gives that of a write; both may be nil.
func (c *client) do(ctx context.Context, op *storage.Op, p storage.Progress, to io.Writer, from io.Reader) (res storage.Result, err error) {
	x := c.s.calls.Get().(*call)
	x.begin(ctx, c, op, p)
	x.to, x.from = to, from
	err = x.run()
	x.settle()
	x.Result.Renewed = c.s.renewals()
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

// A call is one operation while it runs.
type call struct {
	wireclient.Call
	c      *client
	at     *server   // where the operation is now
	named  *server   // whom ServedBy has named last
	req    request   // the question that is under way
	asked  bool      // it was sent
	doing  uint16    // the last request that was sent, 0 while connecting
	hail   request   // what a login says, before the question
	out    []byte    // what is to be sent
	signed []byte    // requests with their signatures
	data   []byte    // the answer to a question
	opaque string    // opaque information of the last redirect
	extra  string    // what the question itself adds to the path
	tried  string    // data servers that were lost
	parts  []slot    // of a vector read
	window window    // reads and writes under way
	slot   *slot     // the one that is being answered
	to     io.Writer // takes the payload of a read; nil: none does
	from   io.Reader // gives the payload of a write; nil: it is made
	file   file      // the operation's, unless it stays open
	sum    sum
	pages  pageCount
}

func newCall() *call {
	x := &call{}
	x.Moved = x.reportMoved
	x.Discard = func(n int) {
		x.Result.Discarded += int64(n)
		x.got(n)
	}
	x.pages.init(x)
	return x
}

func (x *call) begin(ctx context.Context, c *client, op *storage.Op, p storage.Progress) {
	x.Begin(ctx, op, p)
	x.c, x.at, x.named = c, c.s.home, c.s.home
	x.opaque, x.extra, x.tried = "", "", ""
}

// settle counts the bytes that the operation has not reported yet.
func (x *call) settle() {
	x.count(&x.c.home)
	for _, l := range x.c.data {
		x.count(l)
	}
}

// maxKept is how large a buffer a call keeps that large listings needed.
const maxKept = 64 << 10

// clear forgets whatever belongs to the client.
func (x *call) clear() {
	x.Clear()
	x.c, x.at, x.named = nil, nil, nil
	if cap(x.data) > maxKept {
		x.data = nil
	}
	if cap(x.parts) > maxVectorItems {
		x.parts = nil
	}
	x.window.clear()
	x.slot, x.file, x.sum = nil, file{}, sum{}
	x.to, x.from = nil, nil
}

// count adds the link's bytes since the last count to the result, and the requests that a shared session signed.
func (x *call) count(l *link) {
	if l.wire == nil {
		return
	}
	x.Count(l.wire, &l.counted)
	if b, ok := l.wire.(*clientStream); ok {
		x.Result.Signed += b.signed
		b.signed = 0
	}
}

// drop closes a link whose state is not known, with the files open on it.
func (x *call) drop(l *link) {
	x.count(l)
	x.c.forget(l)
	if w, ok := l.wire.(secured); ok {
		l.wire = w.wire // without a goodbye, which might have to wait
	}
	_ = l.close() // the connection is gone in any case
}

// reach reports a phase, once. The session with a data server that a redirect led to is not reported: its time would
// be that of the redirector's answer as well.
func (x *call) reach(p storage.Phase) {
	if p >= storage.Redirected || x.Phases&(1<<storage.Redirected) == 0 {
		x.Phases.Reached(x.Progress, p)
	}
}

// serve notes that the operation is at a server.
func (x *call) serve(s *server) {
	x.at = s
	if s == x.named {
		return
	}
	x.named = s
	if s == x.c.s.home {
		x.Progress.ServedBy("")
	} else {
		x.Progress.ServedBy(s.name)
	}
}

// wanted reports whether somebody wants to see the payload.
func (x *call) wanted() bool { return x.sum.wanted() || x.Dest != nil }

func (x *call) reportMoved(n int) {
	if n == 0 {
		return
	}
	if x.Op.Kind == storage.Read {
		x.reach(storage.FirstByte)
	}
	x.Progress.Moved(n)
}

// place says what the operation was waiting for: a redirector that does not answer is not a data server that is
// slow.
func (x *call) place() string {
	if x.doing == 0 {
		return "connecting to " + x.at.name
	}
	return "waiting for " + x.at.name + " to answer " + requestName(x.doing)
}

// describe puts an error into the words of package storage.
//
//go:noinline
func (x *call) describe(err error) error {
	if x.Op.Timeout > 0 && errors.Is(err, os.ErrDeadlineExceeded) && refused(err) == 0 {
		err = fmt.Errorf("not done within %v: %s: %w", x.Op.Timeout, x.place(), err)
	} else if x.doing != 0 && (broken(err) || errors.Is(err, storage.ErrProtocol)) {
		err = fmt.Errorf("%w (after %s)", err, requestName(x.doing))
	}
	server := ""
	if x.at != x.c.s.home {
		server = x.at.name
	}
	return x.Describe(x.c.s.url(x.Op.Path), server, err)
}

// waitLimit is how long an operation without a timeout waits when it is told to, before it calls the service busy.
const waitLimit = 10 * time.Minute

// pause obeys a kXR_wait.
func (x *call) pause(seconds int32, text string) error {
	wait := time.Duration(max(seconds, 0)) * time.Second
	left := waitLimit - x.Result.Waited
	if !x.Deadline.IsZero() {
		left = time.Until(x.Deadline)
	}
	if seconds <= 0 { // a server that says "again at once" again and again must not keep a core busy
		wait = min(time.Duration(x.Result.Waits)*time.Millisecond, time.Second)
	}
	if wait > left {
		return fmt.Errorf("%w: it asks to wait %v, longer than the %v that this operation has left%s", storage.ErrBusy, wait,
			left.Round(time.Millisecond), because(text))
	}
	x.Result.Waits++
	x.Result.Waited += wait
	t := time.NewTimer(wait)
	defer t.Stop()
	select {
	case <-t.C:
		return nil
	case <-x.Ctx.Done():
		return x.Ctx.Err()
	}
}

func because(text string) string {
	if text == "" {
		return ""
	}
	return " (" + text + ")"
}
