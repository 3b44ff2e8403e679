package mover

import (
	"errors"
	"io/fs"
	"os"
	"path"

	"golang.org/x/sys/unix"

	"weir/transfer"
)

// rename gives a part its name, in one step and never instead of another file:
// its error is fs.ErrExist then. from and to are the folders, open.
func (m *Mover) rename(from, to *os.File, part, name string) error {
	err := unix.Renameat2(int(from.Fd()), path.Base(part), int(to.Fd()), path.Base(name), unix.RENAME_NOREPLACE)
	if errors.Is(err, unix.EINVAL) || errors.Is(err, unix.ENOSYS) { // a file system that cannot
		err = m.linked(part, name)
	}
	switch {
	case errors.Is(err, fs.ErrExist):
		return fs.ErrExist
	case errors.Is(err, unix.EXDEV):
		return failf(transfer.Permanent, "%s is on another file system than the site's folder %s", path.Dir(name), Hidden)
	}
	return local("give the file its name", err)
}
