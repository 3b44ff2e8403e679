package content

import (
	"errors"
	"os"

	"golang.org/x/sys/unix"
)

func memoryFile() (*os.File, error) {
	fd, err := unix.MemfdCreate("weir-pattern", unix.MFD_CLOEXEC|unix.MFD_ALLOW_SEALING)
	if err != nil {
		return nil, os.NewSyscallError("memfd_create", err)
	}
	return os.NewFile(uintptr(fd), "weir-pattern"), nil
}

// seal makes a memfd immutable, so that no mistake can change what all files
// are made of. Files that cannot be sealed are left as they are.
func seal(f *os.File) error {
	raw, err := f.SyscallConn()
	if err != nil {
		return err
	}
	var sealErr error
	err = raw.Control(func(fd uintptr) {
		_, sealErr = unix.FcntlInt(fd, unix.F_ADD_SEALS, unix.F_SEAL_WRITE|unix.F_SEAL_SHRINK|unix.F_SEAL_GROW|unix.F_SEAL_SEAL)
	})
	if errors.Is(sealErr, unix.EINVAL) { // no memfd
		sealErr = nil
	}
	return errors.Join(err, os.NewSyscallError("fcntl", sealErr))
}
