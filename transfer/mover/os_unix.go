//go:build unix

package mover

import (
	"syscall"
	"time"
)

// nonblock keeps a named pipe from blocking whoever opens it.
const nonblock = syscall.O_NONBLOCK

// cpu returns the CPU time that this process has used.
func cpu() time.Duration {
	var u syscall.Rusage
	if syscall.Getrusage(syscall.RUSAGE_SELF, &u) != nil {
		return 0
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}
