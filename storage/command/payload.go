package command

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"slices"

	"github.com/prometheus/procfs"

	"weir/internal/content"
	"weir/storage"
)

// startUp exceeds the bytes that any preset writes besides payload, so that progress reports are
// never too large.
const startUp = 1 << 20

// A fetch is a read about to happen.
type fetch struct {
	line line
	part storage.Range // wanted; Length is negative for a whole file of unknown size
	dest string
	keep bool // dest is a regular file, so its size and sum can be computed
}

// read reads a file, or one part of it.
func (c *client) read(ctx context.Context, op *storage.Op, p *progress) (storage.Result, error) {
	res := storage.Result{Size: -1}
	if op.Sum != "" {
		if _, err := content.NewHash(op.Sum); err != nil {
			return res, err
		}
	}
	f, err := c.fetch(ctx, op)
	if err != nil {
		return res, err
	}
	if f.part.Length == 0 && op.Ranges != nil {
		if op.Sum != "" { // of no bytes at all
			res.Sum, err = content.Sum(op.Sum, 0, 0, 0)
		}
		return res, err
	}
	defer func() { _ = os.RemoveAll(c.base + "dest") }() // Close removes it at the latest
	argv, err := f.line.expand(c.value(op, f.part, f.dest, ""))
	if err != nil {
		return res, err
	}
	written := int64(-1)
	r, err := c.run(ctx, f.line, argv, false, func(pid int) { written = c.look(f, pid, p) })
	res.Process = r.usage
	if err == nil {
		err = c.check(f.line, r)
	}
	if f.keep {
		err = classifyScratch(err, f.dest)
	}
	if n, ok := c.said(r); ok && f.part.Length < 0 && !f.keep {
		f.part.Length = n
	}
	n, known := c.brought(f, r, written, err == nil)
	p.upTo(n)
	if err != nil || !known {
		return res, err
	}
	if op.Ranges == nil {
		res.Size = n
	}
	if want := f.part.Length; want >= 0 && n != want {
		err = short(n, want)
		if f.keep {
			err = classifyScratch(err, f.dest)
		}
		return res, err
	}
	if op.Sum != "" {
		res.Sum, err = fileSum(op.Sum, f.dest)
	}
	return res, err
}

// fetch decides how a read is done.
func (c *client) fetch(ctx context.Context, op *storage.Op) (fetch, error) {
	f := fetch{line: c.tool.lines[storage.Read], part: storage.Range{Length: op.Size}}
	if len(op.Ranges) > 0 {
		if len(op.Ranges) > 1 {
			return f, fmt.Errorf("several ranges in one read: %w", errors.ErrUnsupported)
		}
		l, ok := c.tool.lines[partLine]
		if !ok {
			return f, fmt.Errorf("this command cannot read a part of a file: %w", errors.ErrUnsupported)
		}
		f.line, f.part = l, op.Ranges[0]
		if f.part.Offset < 0 || f.part.Length < 0 || f.part.Offset+f.part.Length < 0 {
			return f, fmt.Errorf("range of %d bytes from %d on: %w", f.part.Length, f.part.Offset, fs.ErrInvalid)
		}
	}
	if !f.line.uses("dest") {
		if op.Sum != "" || op.Dest != "" {
			return f, fmt.Errorf("a command without {dest} leaves nothing to sum up or to keep: %w", errors.ErrUnsupported)
		}
		return f, nil
	}
	if op.Dest != "" {
		f.dest, f.keep = op.Dest, true
		return f, vacate(op)
	}
	if c.tool.sink != "" && op.Sum == "" {
		if err := c.size(ctx, op, &f.part); err != nil {
			return f, err
		}
		if f.part.Length >= 0 || c.tool.said != nil {
			var err error
			f.dest, err = c.sink()
			return f, err
		}
	}
	f.dest, f.keep = c.base+"dest", true
	return f, os.RemoveAll(f.dest)
}

// size determines the size of a file that is unknown, if the program does not print it and its
// output is discarded.
func (c *client) size(ctx context.Context, op *storage.Op, part *storage.Range) error {
	if part.Length >= 0 || c.tool.said != nil || c.tool.stat == nil {
		return nil
	}
	if n, ok := c.known(op.Path); ok {
		part.Length = n
		return nil
	}
	res, err := c.ask(ctx, &storage.Op{Kind: storage.Stat, Path: op.Path})
	if err != nil {
		return err
	}
	c.learn(op.Path, res.Size)
	part.Length = res.Size
	return nil
}

// sink returns where payload disappears. A link of weir's own replaces the device if a program
// accepts a link: some remove a destination before they write it, and as root they can remove the
// device itself.
func (c *client) sink() (string, error) {
	if c.tool.sink != "link" {
		return c.tool.sink, nil
	}
	name := c.base + "sink"
	if to, err := os.Readlink(name); err == nil && to == os.DevNull {
		return name, nil
	}
	if err := os.RemoveAll(name); err != nil {
		return "", err
	}
	return name, os.Symlink(os.DevNull, name)
}

// look reports the bytes that a program has read so far, as far as they are certain, and returns
// the bytes that it has written anywhere, -1 if unknown.
func (c *client) look(f fetch, pid int, p *progress) int64 {
	if f.keep {
		if info, err := os.Stat(f.dest); err == nil && info.Mode().IsRegular() {
			p.upTo(f.bound(info.Size()))
		}
		return -1
	}
	if !c.tool.counted {
		return -1
	}
	_, written, ok := counters(pid)
	if !ok {
		return -1
	}
	p.upTo(f.bound(written - startUp))
	return written
}

// bound limits a count before the last to the possible range.
func (f fetch) bound(n int64) int64 {
	if f.part.Length >= 0 {
		return min(n, f.part.Length)
	}
	return n
}

// brought counts the bytes of a read that has ended. known is false if it cannot be determined.
func (c *client) brought(f fetch, r result, written int64, good bool) (n int64, known bool) {
	if f.keep {
		info, err := os.Stat(f.dest)
		if err != nil || !info.Mode().IsRegular() {
			return 0, good
		}
		return info.Size(), true
	}
	if !good {
		return 0, false // the bytes counted while it ran have been reported
	}
	if n, ok := c.said(r); ok {
		if written >= 0 { // it may have reported it before it began
			n = min(n, written)
		}
		return n, true
	}
	if f.part.Length < 0 {
		return 0, false
	}
	if written >= 0 && written < f.part.Length {
		return written, true
	}
	return f.part.Length, true
}

// said returns the number of bytes read according to the output of the program.
func (c *client) said(r result) (int64, bool) {
	if c.tool.said == nil {
		return 0, false
	}
	return c.tool.said(r.stdout)
}

// write sends a file.
func (c *client) write(ctx context.Context, op *storage.Op, p *progress) (storage.Result, error) {
	res := storage.Result{Size: -1}
	if op.Size < 0 {
		return res, fmt.Errorf("a file of %d bytes cannot be written: %w", op.Size, fs.ErrInvalid)
	}
	source, release, err := c.sources.get(ctx, op.Seed, op.Size)
	if err != nil {
		return res, err
	}
	defer release()
	l := c.tool.lines[storage.Write]
	argv, err := l.expand(c.value(op, storage.Range{Length: op.Size}, "", source))
	if err != nil {
		return res, err
	}
	c.forget(op.Path)
	before := int64(-1) // the bytes that it had read when it was first found with the file open
	r, err := c.run(ctx, l, argv, false, func(pid int) {
		if !c.tool.counted || before < 0 && !holds(pid, source) {
			return
		}
		if n, _, ok := counters(pid); ok {
			if before < 0 {
				before = n
			}
			p.upTo(min(n-before, op.Size))
		}
	})
	res.Process = r.usage
	if err == nil {
		err = c.check(l, r)
	}
	if err == nil {
		p.upTo(op.Size)
	}
	return res, err
}

// counters returns the bytes that a process has read and written with read and write calls: of files, pipes and
// devices, not of sockets. The process runs or has ended and is not reaped. ok is false where there is no /proc.
func counters(pid int) (read, written int64, ok bool) {
	p, err := procfs.NewProc(pid)
	if err != nil {
		return 0, 0, false
	}
	io, err := p.IO()
	return int64(io.RChar), int64(io.WChar), err == nil
}

// holds reports whether a process has the file open.
func holds(pid int, file string) bool {
	p, err := procfs.NewProc(pid)
	if err != nil {
		return false
	}
	open, err := p.FileDescriptorTargets()
	return err == nil && slices.Contains(open, file)
}
