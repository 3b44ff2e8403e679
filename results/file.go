package results

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"sync"

	"weir/internal/durable"
)

// WriteFile writes one of the files that are made after a run, whole or not at
// all: readers see the old content until the new one is complete on disk.
func WriteFile(dir, name string, write func(io.Writer) error) error {
	if info, err := os.Stat(filepath.Join(dir, name)); err == nil && info.IsDir() {
		return fmt.Errorf("results: %s is a folder, and a file was to be written", filepath.Join(dir, name))
	}
	if err := durable.WriteFunc(filepath.Join(dir, name), 0o644, write); err != nil {
		return fmt.Errorf("results: %s: %w", name, err)
	}
	return nil
}

// writeOnce is WriteFile for a file that must not exist yet. Its temporary
// name is the same for everyone, so that of two writers at once one is refused.
func writeOnce(dir, name string, write func(io.Writer) error) error {
	temp, final := filepath.Join(dir, "."+name+".new"), filepath.Join(dir, name)
	f, err := os.OpenFile(temp, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o644)
	if errors.Is(err, fs.ErrExist) {
		return fmt.Errorf("another run begins in %s at this moment, or died when it did: name another folder, or remove %s: %w", dir, temp, fs.ErrExist)
	}
	if err != nil {
		return err
	}
	if _, err = os.Lstat(final); err == nil {
		err = &fs.PathError{Op: "create", Path: final, Err: fs.ErrExist}
	} else if errors.Is(err, fs.ErrNotExist) {
		err = fill(f, write)
	}
	if err = errors.Join(err, f.Close()); err == nil {
		err = os.Rename(temp, final)
	}
	if err != nil {
		_ = os.Remove(temp) // the first error says more
		return fmt.Errorf("%s: %w", final, err)
	}
	return nil
}

// fill has write fill f and brings it to the disk.
func fill(f *os.File, write func(io.Writer) error) error {
	b := bufio.NewWriter(f)
	if err := write(b); err != nil {
		return err
	}
	if err := b.Flush(); err != nil {
		return err
	}
	return f.Sync()
}

// A lineFile is a file to which whole lines are appended, one system call
// each, so that whatever ends the process loses at most the line in the making.
type lineFile struct {
	mu   sync.Mutex
	f    *os.File
	size int64 // bytes of whole lines
	dead error // set once the file's end is not a line's end any more
}

// newLineFile creates path, which must not exist.
func newLineFile(path string) (*lineFile, error) {
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL|os.O_APPEND, 0o644)
	if err != nil {
		return nil, err
	}
	return &lineFile{f: f}, nil
}

// append writes line, which ends with a newline. When the disk takes only a
// part of it, the part is cut off again.
func (l *lineFile) append(line []byte) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.dead != nil {
		return l.dead
	}
	n, err := l.f.Write(line)
	if err == nil {
		l.size += int64(n)
		return nil
	}
	err = fmt.Errorf("results: %w; everything before is kept", err) // a *fs.PathError names the file
	if n > 0 {
		if cut := l.f.Truncate(l.size); cut != nil {
			l.dead = err
		}
	}
	return err
}

func (l *lineFile) close() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	return errors.Join(l.f.Sync(), l.f.Close())
}
