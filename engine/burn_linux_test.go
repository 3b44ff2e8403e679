package engine

import (
	"time"

	"golang.org/x/sys/unix"
)

// processTime is the CPU time that this process took.
func processTime() time.Duration {
	var u unix.Rusage
	_ = unix.Getrusage(unix.RUSAGE_SELF, &u)
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}
