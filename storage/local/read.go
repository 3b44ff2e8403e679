package local

import (
	"context"
	"errors"
	"fmt"
	"hash"
	"io"
	"os"
	"syscall"

	"weir/internal/content"
	"weir/storage"
)

// file opens a regular file for reading; anything else is refused, and a pipe
// that nobody writes to does not hold us up.
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
	p     storage.Progress   // nil: nothing is told
	dest  *storage.LocalFile // nil: takes nothing
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
