package durable

import (
	"errors"
	"os"
	"path"

	"golang.org/x/sys/unix"
)

// RenameNew gives a file below root another name, never instead of another file:
// the error is fs.ErrExist then. fromDir and toDir are the folders of both names,
// open; nil: they are opened. File systems that can neither do that nor make links
// refuse.
func RenameNew(root *os.Root, fromDir, toDir *os.File, from, to string) error {
	for dir, name := range map[**os.File]string{&fromDir: from, &toDir: to} {
		if *dir != nil {
			continue
		}
		f, err := root.Open(path.Dir(name))
		if err != nil {
			return err
		}
		defer f.Close()
		*dir = f
	}
	err := unix.Renameat2(int(fromDir.Fd()), path.Base(from), int(toDir.Fd()), path.Base(to), unix.RENAME_NOREPLACE)
	if errors.Is(err, unix.EINVAL) || errors.Is(err, unix.ENOSYS) { // a file system that cannot
		err = link(root, from, to)
	}
	if err != nil {
		return &os.LinkError{Op: "rename", Old: from, New: to, Err: err}
	}
	return nil
}
