//go:build unix && !solaris && !aix

package endpoint

import (
	"io/fs"
	"syscall"

	"golang.org/x/sys/unix"
)

// nonblock keeps a named pipe from blocking the process that opens it.
const nonblock = unix.O_NONBLOCK

// linked reports whether a file also has another name.
func linked(info fs.FileInfo) bool {
	st, ok := info.Sys().(*syscall.Stat_t)
	return ok && st.Nlink > 1
}
