//go:build unix && !solaris && !aix

package results

import (
	"errors"
	"os"

	"golang.org/x/sys/unix"
)

// lockAlone locks f as its only user and returns false if somebody else has
// it. Where there are no locks (some network file systems) nobody has. The
// lock ends with the file's closing, also by the process's end.
func lockAlone(f *os.File) bool { return lock(f, unix.LOCK_EX) }

// lockShared locks f together with others.
func lockShared(f *os.File) bool { return lock(f, unix.LOCK_SH) }

func lock(f *os.File, how int) bool {
	raw, err := f.SyscallConn()
	if err != nil {
		return true
	}
	taken := false
	err = raw.Control(func(fd uintptr) {
		err := unix.Flock(int(fd), how|unix.LOCK_NB)
		for errors.Is(err, unix.EINTR) {
			err = unix.Flock(int(fd), how|unix.LOCK_NB)
		}
		taken = errors.Is(err, unix.EWOULDBLOCK)
	})
	return err != nil || !taken
}
