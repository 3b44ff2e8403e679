//go:build unix && !solaris && !aix

package serve

import (
	"io/fs"
	"syscall"

	"golang.org/x/sys/unix"
)

const nonblock = unix.O_NONBLOCK

// linked tells whether a file has another name, too.
func linked(info fs.FileInfo) bool {
	st, ok := info.Sys().(*syscall.Stat_t)
	return ok && st.Nlink > 1
}
