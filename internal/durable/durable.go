// Package durable writes files and gives them their names so that nothing is lost if the
// power fails, the process is killed, or another program has a file of the same name.
package durable

import (
	"bufio"
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"syscall"
)

// Write writes content as WriteFunc does.
func Write(path string, content []byte, mode fs.FileMode) error {
	return WriteFunc(path, mode, func(w io.Writer) error {
		_, err := w.Write(content)
		return err
	})
}

// WriteFunc writes a file whole or not at all, also if the power fails: readers see the old content
// or the new content, never a mixture. It replaces a file that is there. If write returns an error,
// nothing changes and WriteFunc returns that error.
func WriteFunc(path string, mode fs.FileMode, write func(io.Writer) error) error {
	dir := filepath.Dir(path)
	f, err := os.CreateTemp(dir, "."+filepath.Base(path)+".*") // of mode 0600
	if err != nil {
		return err
	}
	b := bufio.NewWriterSize(f, 64<<10)
	if err = write(b); err == nil {
		err = b.Flush()
	}
	if err == nil && mode != 0o600 {
		err = f.Chmod(mode)
	}
	if err == nil {
		err = f.Sync()
	}
	if err = errors.Join(err, f.Close()); err == nil {
		err = os.Rename(f.Name(), path)
	}
	if err != nil {
		return errors.Join(err, os.Remove(f.Name()))
	}
	return SyncFolder(dir)
}

// SyncFolder puts the names in a folder on stable storage. File systems and systems that
// cannot do so for folders are left to do as they do.
func SyncFolder(dir string) error {
	f, err := os.Open(dir)
	if err != nil {
		return err
	}
	err = f.Sync()
	if errors.Is(err, syscall.EINVAL) || runtime.GOOS == "windows" {
		err = nil
	}
	return errors.Join(err, f.Close())
}

// link implements RenameNew on systems without a system call that does it in one step: by a link,
// which never replaces.
func link(root *os.Root, from, to string) error {
	if err := root.Link(from, to); err != nil {
		return err
	}
	return root.Remove(from)
}
