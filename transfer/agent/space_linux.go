package agent

import (
	"os"

	"golang.org/x/sys/unix"
)

// freeSpace returns the number of bytes that this user can still write in the file system of an
// open folder, -1 if it is unknown.
func freeSpace(folder *os.File) int64 {
	raw, err := folder.SyscallConn()
	if err != nil {
		return -1
	}
	var s unix.Statfs_t
	var failed error
	if err := raw.Control(func(fd uintptr) { failed = unix.Fstatfs(int(fd), &s) }); err != nil || failed != nil {
		return -1
	}
	return int64(s.Bavail) * s.Bsize
}
