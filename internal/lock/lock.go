// Package lock has the kernel keep two processes from using one file or folder
// at once. A lock is given back when its file is closed, also by the end of the
// process, however that ends.
package lock

import (
	"errors"
	"os"
	"path/filepath"
)

var (
	// ErrTaken tells that another process has the lock.
	ErrTaken = errors.New("another process has locked it")
	// ErrNone tells that this system has no such locks.
	ErrNone = errors.New("this system has no locks of files")
)

// Claim makes a file with the given text in a folder that is new, and returns it
// locked: no process ever sees it empty or unlocked. Where a file system has
// no locks later locks fail as well. The caller closes it.
func Claim(folder, name string, text []byte) (*os.File, error) {
	draft := filepath.Join(folder, name+".new")
	f, err := os.OpenFile(draft, os.O_RDWR|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return nil, err
	}
	_ = Alone(f)
	if _, err = f.Write(text); err == nil {
		err = f.Sync()
	}
	if err == nil {
		err = os.Rename(draft, filepath.Join(folder, name))
	}
	if err != nil {
		return nil, errors.Join(err, f.Close(), os.Remove(draft))
	}
	return f, nil
}
