//go:build unix

package lock

import (
	"io/fs"
	"os"
	"syscall"
)

// Mine tells whether a file or folder is this user's.
func Mine(info fs.FileInfo) bool {
	st, ok := info.Sys().(*syscall.Stat_t)
	return ok && int(st.Uid) == os.Geteuid()
}
