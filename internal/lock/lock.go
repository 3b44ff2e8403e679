// Package lock has the kernel keep two processes from using one file or folder at once. A lock is
// released when its file is closed, also by any end of the process.
package lock

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"

	"golang.org/x/sys/unix"
)

// ErrTaken means that another process has the lock.
var ErrTaken = errors.New("another process has locked it")

// Claim makes a file with the given text in a folder that is new, and returns it locked: no other
// process ever finds it empty or unlocked. If a file system does not support locks, later locks
// fail as well. The caller closes it.
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

// Alone locks f as its only user, without waiting. Its error is ErrTaken if another process has any
// lock on f; any other error means that f's file system does not support locks.
func Alone(f *os.File) error { return try(f, unix.LOCK_EX) }

// Shared locks f together with other processes. It waits while another process has locked f as its
// only user.
func Shared(f *os.File) error { return flock(f, unix.LOCK_SH) }

// TryShared locks f as Shared does, but without waiting; it returns the same errors as Alone.
func TryShared(f *os.File) error { return try(f, unix.LOCK_SH) }

// Close releases the lock of f and closes it. Closing alone releases it only after the programs
// that were started at the same moment, and have f until they are loaded, have closed it.
func Close(f *os.File) error {
	_ = flock(f, unix.LOCK_UN) // if there are locks
	return f.Close()
}

func try(f *os.File, how int) error {
	err := flock(f, how|unix.LOCK_NB)
	if errors.Is(err, unix.EWOULDBLOCK) {
		return ErrTaken
	}
	return err
}

func flock(f *os.File, how int) error {
	raw, err := f.SyscallConn()
	if err != nil {
		return err
	}
	var lockErr error
	err = raw.Control(func(fd uintptr) {
		for {
			if lockErr = unix.Flock(int(fd), how); !errors.Is(lockErr, unix.EINTR) {
				return
			}
		}
	})
	return errors.Join(err, os.NewSyscallError("flock", lockErr))
}

// Mine reports whether a file or folder is this user's.
func Mine(info fs.FileInfo) bool {
	st, ok := info.Sys().(*syscall.Stat_t)
	return ok && int(st.Uid) == os.Geteuid()
}
