package xrootd

import (
	"encoding/binary"
	"slices"

	"weir/storage"
	"weir/storage/wireclient"
)

// A file is an open file on a link.
type file struct {
	path   string // below the target; only of files that stay open
	link   *link
	handle [handleSize]byte
	size   int64 // when it was opened
}

// pages reports whether the file is read and written with page checksums: if the server supports
// them, but not over TLS, which protects the data better. xrdcp does the same.
func (f *file) pages() bool { return f.link.flags&flagPages != 0 && !f.link.secure }

// open opens the operation's file, wherever redirects lead.
func (x *exchange) open(f *file, options, mode uint16) error {
	return x.openAt(x.c.s.home, f, options, mode)
}

// openAt is open with a given first server.
func (x *exchange) openAt(at *server, f *file, options, mode uint16) error {
	r := x.aim(rqOpen)
	binary.BigEndian.PutUint16(r.params[0:], mode)
	binary.BigEndian.PutUint16(r.params[2:], options|openStat|openAsync)
	l, err := x.askAt(at)
	if err != nil {
		return err
	}
	if len(x.data) < handleSize {
		x.drop(l)
		return wireclient.ProtocolError("%d bytes in answer to kXR_open", len(x.data))
	}
	*f = file{link: l}
	copy(f.handle[:], x.data)
	if x.call.Op.Kind != storage.Copy { // the servers may still refuse
		x.reach(storage.Opened)
	}
	if len(x.data) <= handleSize+8 { // an old server: it needs a request of its own
		return x.stateOf(f)
	}
	if f.size, _, err = parseStat(x.data[handleSize+8:]); err != nil {
		x.drop(l)
	}
	return err
}

// stateOf requests the size of an open file.
func (x *exchange) stateOf(f *file) error {
	x.req = request{code: rqStat, args: x.req.args[:0]}
	copy(x.req.params[12:], f.handle[:])
	err := x.followUp(f.link)
	if err == nil {
		f.size, _, err = parseStat(x.data)
	}
	if err != nil {
		x.drop(f.link) // the file cannot be closed
	}
	return err
}

// followUp sends a request about an object that is open on the link, without following redirects.
func (x *exchange) followUp(l *link) error {
	for {
		f, err := x.question(l, &x.req)
		switch {
		case err != nil && refused(err) == 0:
			x.drop(l)
			return err
		case err != nil:
			return err
		case f.status == stWait:
			if err := x.waitAsAsked(); err != nil {
				x.drop(l) // the file stays open there
				return err
			}
			continue
		case f.status != stOK:
			x.drop(l)
			return wireclient.ProtocolError("%s in answer to %s on an open file", statusName(f.status), requestName(x.req.code))
		}
		return nil
	}
}

// close closes an open file.
func (x *exchange) close(f *file) error {
	x.req = request{code: rqClose, args: x.req.args[:0], params: fileAt(f.handle, 0, 0)}
	return x.followUp(f.link)
}

// kept returns the file that the client has open at the operation's path.
//
//go:noinline
func (c *client) kept(path string) *file {
	for i, f := range c.files {
		if f.path == path {
			copy(c.files[1:i+1], c.files[:i])
			c.files[0] = f
			return f
		}
	}
	return nil
}

// keep leaves f open for later reads, and closes the least recently read file if there are too
// many.
func (x *exchange) keep(f *file) error {
	c := x.c
	f.path = x.call.Op.Path
	c.files = append([]*file{f}, c.files...)
	if len(c.files) <= maxFiles {
		return nil
	}
	last := c.files[maxFiles]
	c.files[maxFiles] = nil
	c.files = c.files[:maxFiles]
	if err := last.link.wire.Begin(x.call.Ctx, x.call.Deadline); err != nil {
		return err
	}
	if err := x.close(last); err != nil && x.call.Ctx.Err() == nil {
		x.drop(last.link) // a failure of another file is not this operation's fault
	}
	return nil
}

// release takes f out of the files that stay open.
func (c *client) release(f *file) {
	if i := slices.Index(c.files, f); i >= 0 {
		c.files = slices.Delete(c.files, i, i+1)
	}
	f.path = ""
}

// forget forgets the files that were open on a link.
func (c *client) forget(l *link) {
	c.files = slices.DeleteFunc(c.files, func(f *file) bool { return f.link == l })
}

// checkSize compares the file's size with the expected size.
func (x *call) checkSize(f *file) error {
	x.Result.Size = f.size
	return storage.CheckSize(x.Op.Size, f.size)
}
