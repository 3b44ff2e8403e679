// Package local is the driver for files on this machine, file:///folder.
//
// Paths are below the target's folder and cannot leave it by ".." or links (os.Root). The driver measures the file
// system as programs see it, through the kernel's page cache: files read or written shortly before come from
// memory, and a write ends when the kernel has the data. To measure the disk itself, use file sets larger than
// memory.
//
// Contexts and timeouts are checked between chunks. A system call that hangs, for example on an unreachable network
// file system, cannot be interrupted.
package local

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"hash"
	"io"
	"io/fs"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"

	"weir/internal/content"
	"weir/internal/redact"
	"weir/storage"
)

// Driver returns the driver. Its clients do all kinds but copy, locate and ping; they have no connections, so
// Result.Wire is 0 and no phase before Opened is reached.
func Driver() storage.Driver {
	return storage.Driver{
		Name:    storage.Local,
		Schemes: []string{"file"},
		Kinds: []storage.Kind{storage.Read, storage.Write, storage.Stat, storage.List, storage.Mkdir,
			storage.Remove, storage.Checksum, storage.Login, storage.Move},
		OpenFiles: func(int) int { return 1 },
		Open:      open,
	}
}

func open(_ context.Context, t storage.Target) (storage.Service, error) {
	u := t.URL
	switch {
	case u == nil || u.Scheme != "file":
		return nil, errors.New("the target must be a file URL, such as file:///data/set1")
	case u.Host != "" && u.Host != "localhost":
		return nil, fmt.Errorf("%s names the host %q: write file:///folder with three slashes, the folder from /",
			redact.URL(u.String()), u.Host)
	case !filepath.IsAbs(u.Path):
		return nil, fmt.Errorf("%s has no folder: write file:///folder, the folder from /", redact.URL(u.String()))
	case u.RawQuery != "" || u.Fragment != "" || u.User != nil:
		return nil, fmt.Errorf("%s has more than a folder; ? and # in names are written %%3F and %%23", redact.URL(u.String()))
	}
	folder, file := u.Path, ""
	if info, _ := os.Stat(folder); info != nil && !info.IsDir() {
		folder, file = filepath.Split(strings.TrimRight(folder, "/"))
	}
	root, err := os.OpenRoot(folder)
	if err != nil {
		return nil, fmt.Errorf("target: %w", err)
	}
	base := url.URL{Scheme: "file", Path: strings.TrimSuffix(u.Path, "/")}
	return &service{root: root, target: file, url: base.String()}, nil
}

// A service is one folder. Buffers are shared by all clients, so that only busy clients hold one.
type service struct {
	root    *os.Root
	target  string // name of the file in root that the target is; "": the target is root
	url     string // without a slash at the end
	buffers sync.Pool
	parts   atomic.Uint64 // number of unfinished files that were named
}

// Client implements storage.Service.
func (s *service) Client() storage.Client { return &client{s} }

// Close implements storage.Service.
func (s *service) Close() error { return s.root.Close() }

// DefaultChunk is the number of bytes that one system call reads or writes unless the operation has
// another value; MaxChunk is the maximum.
const (
	DefaultChunk = 256 << 10
	MaxChunk     = 16 << 20
)

// buffer returns a buffer of the requested length; free returns it to the pool.
func (s *service) buffer(chunk int) *[]byte {
	if chunk <= 0 {
		chunk = DefaultChunk
	}
	chunk = min(chunk, MaxChunk)
	b, ok := s.buffers.Get().(*[]byte)
	if !ok || cap(*b) < chunk {
		n := make([]byte, chunk)
		return &n
	}
	*b = (*b)[:chunk]
	return b
}

func (s *service) free(b *[]byte) { s.buffers.Put(b) }

// A client has no state: its sessions cost nothing.
type client struct{ s *service }

// Close implements storage.Client.
func (*client) Close() error { return nil }

// Do implements storage.Client.
func (c *client) Do(ctx context.Context, op *storage.Op, p storage.Progress) (storage.Result, error) {
	if op.Timeout > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, op.Timeout)
		defer cancel()
	}
	res, err := c.do(ctx, op, p)
	if err != nil {
		where := url.URL{Path: "/" + op.Path}
		err = &storage.OpError{Kind: op.Kind, URL: c.s.url + where.EscapedPath(), Err: err}
	}
	return res, err
}

func (c *client) do(ctx context.Context, op *storage.Op, p storage.Progress) (storage.Result, error) {
	none := storage.Result{Size: -1}
	if err := ctx.Err(); err != nil {
		return none, err
	}
	path := filepath.FromSlash(op.Path)
	if c.s.target != "" && (path != "" || changes(op.Kind)) {
		return none, fmt.Errorf("the target is a file: %w", syscall.ENOTDIR)
	}
	path = cmp.Or(path, c.s.target, ".")
	if !filepath.IsLocal(path) {
		return none, fmt.Errorf("the path leaves the target: %w", fs.ErrPermission)
	}
	switch op.Kind {
	case storage.Read:
		return c.s.read(ctx, path, op, p)
	case storage.Write:
		return c.s.write(ctx, path, op, p)
	case storage.Stat:
		return c.s.stat(path)
	case storage.List:
		return c.s.list(ctx, path)
	case storage.Mkdir:
		return none, c.s.root.Mkdir(path, 0o777)
	case storage.Remove:
		return none, c.s.remove(path)
	case storage.Move:
		return none, c.s.move(filepath.FromSlash(op.Source), path)
	case storage.Checksum:
		return c.s.checksum(ctx, path, op)
	case storage.Login:
		_, err := c.s.root.Stat(".")
		return none, err
	}
	return none, fmt.Errorf("local files: %w", errors.ErrUnsupported)
}

// changes reports whether operations of a kind change files or folders.
func changes(k storage.Kind) bool {
	return k == storage.Write || k == storage.Mkdir || k == storage.Remove || k == storage.Move
}

// file opens a regular file for reading; anything else is refused, so that a pipe without a writer
// does not block the client.
func (s *service) file(path string) (*os.File, int64, error) {
	f, err := s.root.OpenFile(path, os.O_RDONLY|syscall.O_NONBLOCK, 0)
	if err != nil {
		return nil, 0, err
	}
	info, err := f.Stat()
	if err == nil && !info.Mode().IsRegular() {
		err = fmt.Errorf("%s is no regular file but %s", path, info.Mode().Type())
	}
	if err != nil {
		return nil, 0, errors.Join(err, f.Close())
	}
	return f, info.Size(), nil
}

func (s *service) read(ctx context.Context, path string, op *storage.Op, p storage.Progress) (res storage.Result, err error) {
	res.Size = -1
	dest, err := op.OpenDest()
	if err != nil {
		return res, err
	}
	defer func() { err = dest.Close(err) }()
	f, size, err := s.file(path)
	if err != nil {
		return res, err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	res.Size = size
	p.Reached(storage.Opened)
	res.Sum, err = content.Summed(op.Sum, func(h hash.Hash) error {
		r := reader{ctx: ctx, f: f, h: h, p: p, dest: dest}
		b := s.buffer(op.Chunk)
		defer s.free(b)
		if op.Ranges == nil {
			if err := r.part(*b, storage.Range{Length: size}); err != nil {
				return err
			}
		}
		if err := storage.CheckSize(op.Size, size); err != nil {
			return err
		}
		for _, part := range op.Ranges {
			if err := r.part(*b, part); err != nil {
				return err
			}
		}
		return nil
	})
	return res, err
}

// A reader reads parts of one file.
type reader struct {
	ctx   context.Context // of one operation
	f     *os.File
	h     hash.Hash          // nil: the payload is dropped
	p     storage.Progress   // nil: nothing is reported
	dest  *storage.LocalFile // nil: the data is discarded
	begun bool
}

func (r *reader) part(b []byte, part storage.Range) error {
	if part.Offset < 0 || part.Length < 0 {
		return fmt.Errorf("range of %d bytes at %d: %w", part.Length, part.Offset, errors.ErrUnsupported)
	}
	off, left := part.Offset, part.Length
	for left > 0 {
		if err := r.ctx.Err(); err != nil {
			return err
		}
		n, err := r.f.ReadAt(b[:min(int64(len(b)), left)], off)
		if n > 0 {
			r.got(b[:n])
			if _, err := r.dest.Write(b[:n]); err != nil {
				return err
			}
		}
		off, left = off+int64(n), left-int64(n)
		switch {
		case err == nil || left == 0:
		case errors.Is(err, io.EOF):
			return fmt.Errorf("the file ends at %d, %d bytes before the end of what was asked for: %w", off, left, storage.ErrShort)
		default:
			return err
		}
	}
	return nil
}

func (r *reader) got(b []byte) {
	if r.h != nil {
		r.h.Write(b)
	}
	if r.p == nil {
		return
	}
	if !r.begun {
		r.begun = true
		r.p.Reached(storage.FirstByte)
	}
	r.p.Moved(len(b))
}

// checksum reads the file as a service would do for itself: no payload moves.
func (s *service) checksum(ctx context.Context, path string, op *storage.Op) (res storage.Result, err error) {
	res.Size = -1
	h, err := content.NewHash(op.Sum)
	if err != nil {
		return res, err
	}
	f, size, err := s.file(path)
	if err != nil {
		return res, err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	b := s.buffer(op.Chunk)
	defer s.free(b)
	r := reader{ctx: ctx, f: f, h: h}
	if err := r.part(*b, storage.Range{Length: size}); err != nil {
		return res, err
	}
	res.Size, res.Sum = size, content.Text(op.Sum, h)
	return res, nil
}
