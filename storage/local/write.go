package local

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"

	"weir/internal/content"
	"weir/storage"
)

// unfinished begins the names of files that are not whole yet. They are left out of listings.
const unfinished = ".weir-unfinished-"

// write makes the file under another name in the same folder and renames it when it is whole, so
// that no process reads a partial file. An existing file is replaced.
func (s *service) write(ctx context.Context, path string, op *storage.Op, p storage.Progress) (storage.Result, error) {
	res := storage.Result{Size: -1}
	if op.Size < 0 || path == "." {
		return res, fmt.Errorf("write of %d bytes to %q: a file needs a size and a name", op.Size, path)
	}
	if info, err := s.root.Stat(path); err == nil && info.IsDir() {
		return res, fmt.Errorf("%s is a folder: %w", path, fs.ErrExist)
	}
	f, name, err := s.create(filepath.Dir(path))
	if err != nil {
		return res, err
	}
	p.Reached(storage.Opened)
	err = s.fill(ctx, f, op, p)
	if err == nil && op.Sync {
		err = f.Sync()
	}
	if closing := f.Close(); err == nil {
		err = closing
	}
	if err == nil {
		err = s.root.Rename(name, path)
	}
	if err != nil {
		return res, errors.Join(err, s.root.Remove(name))
	}
	res.Size = op.Size
	return res, nil
}

func alive(pid int) bool {
	p, err := os.FindProcess(pid)
	return err == nil && !errors.Is(p.Signal(syscall.Signal(0)), os.ErrProcessDone)
}

// create makes an unfinished file in dir. Its name is new as long as no other process has this
// one's id; if it exists nevertheless, the next is tried.
func (s *service) create(dir string) (*os.File, string, error) {
	for {
		name := filepath.Join(dir, unfinished+strconv.Itoa(os.Getpid())+"-"+strconv.FormatUint(s.parts.Add(1), 10))
		f, err := s.root.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o666)
		if !errors.Is(err, fs.ErrExist) {
			return f, name, err
		}
	}
}

func (s *service) fill(ctx context.Context, f *os.File, op *storage.Op, p storage.Progress) error {
	buf := s.buffer(op.Chunk)
	defer s.free(buf)
	for off := int64(0); off < op.Size; {
		if err := ctx.Err(); err != nil {
			return err
		}
		b := (*buf)[:min(int64(len(*buf)), op.Size-off)]
		content.Fill(b, op.Seed, off)
		n, err := f.Write(b)
		if n > 0 {
			p.Moved(n)
		}
		if err != nil {
			return err
		}
		off += int64(n)
	}
	return ctx.Err()
}

func (s *service) stat(path string) (storage.Result, error) {
	res := storage.Result{Size: -1}
	info, err := s.root.Stat(path)
	if err != nil {
		return res, err
	}
	if res.Folder = info.IsDir(); !res.Folder {
		res.Size = info.Size()
	}
	return res, nil
}

// list reads a folder in portions, so that reading a huge folder can be cancelled.
func (s *service) list(ctx context.Context, path string) (res storage.Result, err error) {
	res.Size = -1
	info, err := s.root.Stat(path)
	if err != nil {
		return res, err
	}
	if !info.IsDir() {
		return res, fmt.Errorf("%s: %w", path, syscall.ENOTDIR)
	}
	d, err := s.root.Open(path)
	if err != nil {
		return res, err
	}
	defer func() { err = errors.Join(err, d.Close()) }()
	for {
		if err := ctx.Err(); err != nil {
			return res, err
		}
		part, err := d.ReadDir(1024)
		for _, e := range part {
			switch entry, err := s.describe(path, e); {
			case err == nil:
				res.Entries = append(res.Entries, entry)
			case !errors.Is(err, errPassed):
				res.Omit(err)
			}
		}
		if errors.Is(err, io.EOF) {
			return res, nil
		}
		if err != nil {
			return res, err
		}
	}
}

// errPassed is the error of an entry that is not there yet, or not any more.
var errPassed = errors.New("not listed")

// describe makes a line of a listing of folder. Its error is that of an entry that cannot be read: a pipe, or a link that leads to no
// file of the target.
func (s *service) describe(folder string, e fs.DirEntry) (storage.Entry, error) {
	entry := storage.Entry{Name: e.Name(), Size: -1, Dir: e.IsDir()}
	if strings.HasPrefix(e.Name(), unfinished) {
		return entry, errPassed
	}
	info, err := e.Info()
	if err == nil && info.Mode()&fs.ModeSymlink != 0 {
		if info, err = s.root.Stat(filepath.Join(folder, e.Name())); err != nil {
			return entry, fmt.Errorf("a link that leads to no file of the target: %w", err)
		}
	}
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return entry, errPassed
	case err != nil, entry.Dir:
		return entry, nil
	case !info.Mode().IsRegular():
		return entry, fmt.Errorf("%s is no regular file but %s", filepath.Join(folder, e.Name()), kindOf(info.Mode()))
	}
	entry.Size = info.Size()
	return entry, nil
}

// kindOf returns the name of the kind of file that a mode describes.
func kindOf(mode fs.FileMode) string {
	if mode.IsDir() {
		return "a link to a folder"
	}
	return mode.Type().String()
}

// remove removes a file or an empty folder, but not the target itself.
func (s *service) remove(path string) error {
	if filepath.Clean(path) == "." {
		return fmt.Errorf("the target itself is not removed: %w", fs.ErrPermission)
	}
	err := s.root.Remove(path)
	if errors.Is(err, syscall.ENOTEMPTY) && s.sweep(path) {
		err = s.root.Remove(path)
	}
	return err
}

// move renames a file or folder, but not to a name that is taken. The look and the renaming are two steps: of
// programs that race for the same new name the last one wins, as with mv -n.
func (s *service) move(from, to string) error {
	if !filepath.IsLocal(from) || filepath.Clean(from) == "." || to == "." {
		return fmt.Errorf("move of %q to %q: both lie below the target: %w", from, to, fs.ErrPermission)
	}
	if _, err := s.root.Lstat(to); err == nil {
		return fmt.Errorf("%s is there already: %w", to, fs.ErrExist)
	}
	return s.root.Rename(from, to)
}

// sweep removes from a folder that is to be removed the unfinished files of killed writers. It
// reports whether it removed anything. Unfinished files of processes that are alive stay.
func (s *service) sweep(path string) (swept bool) {
	d, err := s.root.Open(path)
	if err != nil {
		return false
	}
	defer func() { _ = d.Close() }() // it was only read
	entries, err := d.ReadDir(-1)
	if err != nil {
		return false
	}
	for _, e := range entries {
		rest, ok := strings.CutPrefix(e.Name(), unfinished)
		id, _, _ := strings.Cut(rest, "-")
		pid, err := strconv.Atoi(id)
		if !ok || err != nil || pid <= 0 || alive(pid) {
			continue
		}
		swept = s.root.Remove(filepath.Join(path, e.Name())) == nil || swept
	}
	return swept
}
