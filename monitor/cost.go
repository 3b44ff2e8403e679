package monitor

import (
	"time"

	"golang.org/x/sys/unix"
)

// threadCPU returns the CPU time that the calling thread used, in user mode
// and in the kernel. The caller has locked its goroutine to the thread.
func threadCPU() time.Duration {
	var t unix.Timespec
	if unix.ClockGettime(unix.CLOCK_THREAD_CPUTIME_ID, &t) != nil {
		return 0
	}
	return time.Duration(t.Nano())
}
