package xrootd

import (
	"context"
	"crypto/rand"
	"encoding/binary"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"slices"
	"strings"

	"weir/storage"
)

// ErrNoThirdParty is wrapped by errors of Copy, and of operations of that kind, if the servers
// cannot copy from each other, or only with delegated credentials. Nothing was copied. It wraps
// errors.ErrUnsupported.
var ErrNoThirdParty = fmt.Errorf("no third-party copy: %w", errors.ErrUnsupported)

// keyTTL is the requested lifetime of a key in seconds; a server shortens it to its maximum (ofs.tpc
// ttl), which is 15 s by default. Without a request a key of XRootD lives for 7 s, and a target that
// is too busy to start its xrdcp in that time finds no key: the source then makes it wait for one,
// for up to twice its maximum, before the copy fails with "tpc authorization expired".
const keyTTL = 600

// Copy lets the server of dest fetch a file from the server of source, like xrdcp --tpc only: the
// client opens the file at both servers with the same random key, and the source's server sends it
// to a server that presents the key. It replaces an existing file. If it fails, a part of the file
// may exist. source and dest are clients of this package, and from and to are paths below their
// targets. dest's server needs no credentials at source's server except the key; Copy does not
// delegate any. See XrdCl::ThirdPartyCopyJob and XrdOfsTPC of XRootD.
func Copy(ctx context.Context, source, dest storage.Client, from, to string) error {
	s, err := ownClient(source)
	if err != nil {
		return err
	}
	d, err := ownClient(dest)
	if err != nil {
		return err
	}
	read := s.third(ctx, &storage.Op{Kind: storage.Read, Path: from, Size: -1})
	defer read.done()
	write := d.third(ctx, &storage.Op{Kind: storage.Write, Path: to})
	defer write.done()
	return write.describeEnd(thirdParty{source: read, dest: write, options: openDelete}.run())
}

// A thirdParty is a copy between two servers, with an operation at each.
type thirdParty struct {
	source, dest *call
	options      uint16                // of the open at dest: openDelete replaces a file, openNew fails if it exists
	extra        string                // opaque information for both servers
	started      func() (ended func()) // called when the servers have begun, may be nil; ended is called when the copy has ended
}

func (c *client) third(ctx context.Context, op *storage.Op) *call {
	x := c.s.calls.Get().(*call)
	x.begin(ctx, c, op, storage.NoProgress{})
	return x
}

func (x *call) done() {
	x.exchange.settle()
	x.clear()
	x.s.calls.Put(x)
}

// describeEnd describes an error of run, unless it is the description of an error at the source.
func (x *call) describeEnd(err error) error {
	if _, described := errors.AsType[*storage.OpError](err); described || err == nil {
		return err
	}
	return x.describe(err)
}

// run makes the copy. An error at the source is an *OpError already.
func (t thirdParty) run() error {
	s, d := t.source, t.dest
	s.exchange.extra = joined("tpc.stage=placement", t.extra)
	if err := s.exchange.open(&s.file, openRead, 0); err != nil {
		return s.describe(err)
	}
	at, redirected := s.file.link.server, s.exchange.opaque
	err := s.exchange.close(&s.file)
	if err == nil {
		err = s.copies(s.file.link)
	}
	if err != nil {
		return s.describe(err)
	}
	key := rand.Text()
	if err := t.prepare(at, key); err != nil {
		return err
	}
	granted := fmt.Sprintf("tpc.key=%s&tpc.dst=%s&tpc.ttl=%d&tpc.stage=copy", key, canonical(s.Ctx, d.file.link), keyTTL)
	s.exchange.extra = joined(redirected, granted, t.extra)
	if err := s.exchange.openAt(at, &s.file, openRead, 0); err != nil {
		d.exchange.drop(d.file.link) // which ends the copy there
		return s.describe(unsupported(err))
	}
	ended := func() {}
	if t.started != nil {
		ended = t.started()
	}
	err = d.sync()
	ended()
	if err == nil {
		err = d.exchange.close(&d.file)
	} else {
		d.exchange.drop(d.file.link)
	}
	if err != nil {
		s.exchange.drop(s.file.link)
		return err
	}
	if err := s.exchange.close(&s.file); err != nil {
		return s.describe(err)
	}
	return nil
}

// prepare opens the file at the destination, which is to fetch it from the server at with key.
func (t thirdParty) prepare(at *server, key string) error {
	s, d := t.source, t.dest
	origin := net.JoinHostPort(at.host, fmt.Sprint(at.port))
	d.exchange.extra = joined(fmt.Sprintf(
		"oss.asize=%d&tpc.key=%s&tpc.src=%s&tpc.lfn=%s&tpc.dlg=%s&tpc.spr=%s&tpc.tpr=%s&tpc.dlgon=0&tpc.stage=copy",
		s.file.size, key, origin, s.exchange.appendPath(nil, s.Op.Path), s.s.home.name, s.s.home.scheme(), d.s.home.scheme()), t.extra)
	err := d.exchange.open(&d.file, openUpdate|openMakePath|t.options, modeFile)
	d.exchange.extra = ""
	if err != nil {
		return unsupported(err)
	}
	if err := d.copies(d.file.link); err != nil {
		return errors.Join(err, d.exchange.close(&d.file))
	}
	if err := d.sync(); err != nil {
		d.exchange.drop(d.file.link)
		return unsupported(err)
	}
	return nil
}

// joined joins opaque information, without the empty parts.
func joined(parts ...string) string {
	return strings.Join(slices.DeleteFunc(parts, func(p string) bool { return p == "" }), "&")
}

// sync sends kXR_sync: the first kXR_sync prepares the copy, the second starts it, and its response
// arrives when the copy has ended.
func (x *call) sync() error {
	x.exchange.req = request{code: rqSync, args: x.exchange.req.args[:0], params: fileAt(x.file.handle, 0, 0)}
	return x.exchange.followUp(x.file.link)
}

// copies returns an error if a server does not support third-party copies.
func (x *call) copies(l *link) error {
	x.exchange.req = request{code: rqQuery, args: append(x.exchange.req.args[:0], "tpc"...)}
	binary.BigEndian.PutUint16(x.exchange.req.params[0:], queryConfig)
	if err := x.exchange.followUp(l); err != nil {
		return unsupported(err)
	}
	answer := strings.Trim(string(x.exchange.data), "\x00\n ")
	if answer == "" || answer[0] < '1' || answer[0] > '9' {
		return fmt.Errorf("%w: %s does not support it", ErrNoThirdParty, l.server.name)
	}
	return nil
}

// unsupported marks errors that occurred before the copy.
func unsupported(err error) error {
	if r, ok := errors.AsType[*refusal](err); ok && strings.Contains(r.text, "tpc") || errors.Is(err, errors.ErrUnsupported) {
		return fmt.Errorf("%w: %w", ErrNoThirdParty, err)
	}
	return err
}

// canonical returns the name that other servers obtain for a server's address, as XRootD compares
// names.
func canonical(ctx context.Context, l *link) string {
	host := l.server.host
	addresses := []string{host}
	if _, err := netip.ParseAddr(host); err != nil {
		if addresses, err = net.DefaultResolver.LookupHost(ctx, host); err != nil || len(addresses) == 0 {
			return host
		}
	}
	names, err := net.DefaultResolver.LookupAddr(ctx, addresses[0])
	if err != nil || len(names) == 0 {
		return host
	}
	return strings.TrimSuffix(names[0], ".")
}
