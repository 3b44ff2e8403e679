package mover

import (
	"context"
	"errors"
	"io"
	"io/fs"
	"net/http"
	"net/url"
	"os"
	"syscall"
	"time"

	"weir/internal/adler"
	"weir/internal/digest"
	"weir/transfer"
)

// A sum is an adler32 that may be unknown.
type sum struct {
	value uint32
	known bool
}

// catalogSum returns the checksum of a lease's file in the catalog; checkLease has validated it.
func catalogSum(l transfer.Lease) sum {
	if l.Adler == "" {
		return sum{}
	}
	v, err := adler.Parse(l.Adler)
	return sum{v, err == nil}
}

// wantDigest returns the header that requests an adler32 in the syntax of RFC 3230, which every
// server with checksums supports. With the header of RFC 9530 as well, a server would return two.
func wantDigest() []string { return []string{"Want-Digest", "adler32"} }

// digestOf reads the Digest of RFC 3230, in which adler32 is hexadecimal, and the Repr-Digest of
// RFC 9530, in which it is bytes in base64.
func digestOf(h http.Header) sum {
	s, err := adler.Parse(digest.Adler32().InHeader(h))
	return sum{s, err == nil}
}

// digestTime returns the time that a server may take to read a file of n bytes for its checksum.
func (m *Mover) digestTime(n int64) time.Duration {
	return m.opt.Stall + time.Duration(n/slowest)*time.Second
}

// slowest is the minimum rate, in bytes per second, at which a server reads a file.
const slowest = 10 << 20

// askHead requests the size and, if the server has one, the checksum of a file. On a connection
// with earlier requests XRootD before 5.5.4 may return the checksum of another file, so that an
// unexpected checksum is requested again on a connection of its own.
func (m *Mover) askHead(ctx context.Context, u *url.URL, end transfer.End, size int64, want sum) (*answer, sum, error) {
	a, reported, err := m.askSum(ctx, u, end, size, !want.known)
	if err == nil && want.known && reported.known && reported.value != want.value {
		return m.askSum(ctx, u, end, size, true)
	}
	return a, reported, err
}

func (m *Mover) askSum(ctx context.Context, u *url.URL, end transfer.End, size int64, alone bool) (a *answer, reported sum, err error) {
	q := question{method: http.MethodHead, url: u, token: end.Token, pin: end.Pin, others: end.Servers, header: wantDigest(),
		wait: m.digestTime(size), alone: alone}
	err = m.sums.Ask(ctx, u.Host, size, func(ctx context.Context) (err error) {
		if a, err = m.pool.ask(ctx, q); err == nil {
			a.close()
		}
		return err
	})
	if err != nil {
		return nil, sum{}, err
	}
	if a.StatusCode == http.StatusOK && a.ContentLength < 0 { // Apache sends no length of an empty file
		g, err := m.pool.ask(ctx, question{method: http.MethodGet, url: u, token: end.Token, pin: end.Pin, others: end.Servers})
		if err != nil {
			return nil, sum{}, err
		}
		a.ContentLength = g.ContentLength
		g.close()
	}
	return a, digestOf(a.Header), nil
}

// localSum returns the size and the checksum of a file of this site.
func (m *Mover) localSum(ctx context.Context, name string, r *reporter) (size int64, s uint32, err error) {
	f, err := m.root.OpenFile(name, os.O_RDONLY|syscall.O_NONBLOCK, 0)
	if err != nil {
		return 0, 0, err
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return 0, 0, err
	}
	if !info.Mode().IsRegular() {
		return 0, 0, errNotPlain
	}
	buf := m.bufs.Get().(*[]byte)
	defer m.bufs.Put(buf)
	s = 1
	for {
		n, err := f.ReadAt(*buf, size)
		s = adler.Update(s, (*buf)[:n])
		size += int64(n)
		r.alive()
		switch {
		case errors.Is(err, io.EOF):
			return size, s, nil
		case err != nil:
			return 0, 0, err
		case ctx.Err() != nil:
			return 0, 0, context.Cause(ctx)
		}
	}
}

// errNotPlain is the error for folders, pipes and devices.
var errNotPlain = errors.New("it is no plain file")

// there checks whether a name of this site is taken. It is not an error if the wanted file has the
// name: same is true then, and has is the checksum that was computed.
func (m *Mover) there(ctx context.Context, l transfer.Lease, want func() (sum, error), r *reporter) (has uint32, same bool, err error) {
	name := l.Dest.Path
	info, err := m.root.Lstat(name)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return 0, false, nil
	case err != nil:
		return 0, false, local("look at "+name, err)
	}
	if info.Mode()&fs.ModeSymlink == 0 {
		if info.IsDir() {
			return 0, false, failf(transfer.Occupied, "%s is a folder at the destination", name)
		}
		if info.Size() != l.Size {
			return 0, false, failf(transfer.Occupied, "another file is called %s at the destination: it has %d bytes, not %d", name,
				info.Size(), l.Size)
		}
	}
	r.stage(transfer.Verifying)
	var size int64
	size, has, err = m.localSum(ctx, name, r)
	if ctx.Err() != nil {
		return 0, false, err
	}
	if err != nil || size != l.Size {
		return 0, false, failf(transfer.Occupied, "%s is taken at the destination, by what is not this file", name)
	}
	wanted, err := want()
	if err != nil {
		return 0, false, err
	}
	if wanted.known && wanted.value != has || !wanted.known && !l.Unchecked {
		return 0, false, failf(transfer.Occupied, "another file is called %s at the destination: its adler32 is %s", name, adler.Text(has))
	}
	r.stage(transfer.Moving)
	return has, true, nil
}

// check reads a file that this site should already have.
func (m *Mover) check(ctx context.Context, l transfer.Lease, r *reporter, out *transfer.Outcome) error {
	r.stage(transfer.Verifying)
	name := l.Source.Path
	var size int64
	var has uint32
	info, err := m.root.Stat(name)
	if err == nil && (!info.Mode().IsRegular() || info.Size() == l.Size) { // another size means another file: do not read it
		size, has, err = m.localSum(ctx, name, r)
	} else if err == nil {
		size = info.Size()
	}
	switch {
	case errors.Is(err, fs.ErrNotExist), errors.Is(err, errNotPlain), errors.Is(err, syscall.ENOTDIR):
		return failf(transfer.SourceBad, "%s is not there any more", name)
	case err != nil:
		return local("read "+name, err)
	case size != l.Size:
		return failf(transfer.SourceBad, "%s has %d bytes, not the %d of the catalog", name, size, l.Size)
	}
	want := catalogSum(l)
	if want.known && want.value != has {
		return failf(transfer.SourceBad, "%s is spoiled: its adler32 is %s, not the %s of the catalog", name, adler.Text(has), l.Adler)
	}
	out.Existed, out.Size, out.Adler, out.Verified = true, size, adler.Text(has), want.known
	return nil
}
