//go:build unix && !solaris && !aix

package serve

import (
	"runtime"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

const nonblock = unix.O_NONBLOCK

// usage returns what this process has used so far; rss in bytes.
func usage() (user, system time.Duration, rss int64, ok bool) {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		return 0, 0, 0, false
	}
	rss = int64(u.Maxrss)
	if runtime.GOOS != "darwin" { // elsewhere in KiB
		rss *= 1024
	}
	return time.Duration(u.Utime.Nano()), time.Duration(u.Stime.Nano()), rss, true
}
