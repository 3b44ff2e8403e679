//go:build unix && !solaris && !aix

package serve

import (
	"errors"
	"os"

	"golang.org/x/sys/unix"
)

const nonblock = unix.O_NONBLOCK

// lockAlone locks f if nobody else has.
func lockAlone(f *os.File) (bool, error) {
	err := flock(f, unix.LOCK_EX|unix.LOCK_NB)
	if errors.Is(err, unix.EWOULDBLOCK) {
		return false, nil
	}
	return err == nil, err
}

// lockShared locks f together with others, waiting for one that cleans up.
func lockShared(f *os.File) error { return flock(f, unix.LOCK_SH) }

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
