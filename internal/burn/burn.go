// Package burn uses CPU time on purpose: for jobs that compute, and for servers whose responses
// cost CPU time. It also measures the CPU time that a process has used.
package burn

import (
	"runtime"
	"syscall"
	"time"
)

// A Burner computes. Its zero value is ready; it is for one goroutine at a time.
type Burner struct {
	spent uint64 // result of the computation, so that the compiler keeps it
}

// For computes until the calling thread has used d of CPU time, and returns the time that it used:
// some microseconds more than d. Time in which the thread does not run does not count. Other
// systems than Linux do not report a thread's CPU time; there it is the time on the clock.
func (b *Burner) For(d time.Duration) time.Duration {
	runtime.LockOSThread() // whose clock is read
	defer runtime.UnlockOSThread()
	begin := threadTime()
	for {
		x := b.spent | 1
		for range 4096 { // some microseconds
			x ^= x << 13
			x ^= x >> 7
			x ^= x << 17
		}
		b.spent = x
		if used := threadTime() - begin; used >= d {
			return used
		}
	}
}

// Process returns the CPU time that this process has used so far; 0 if the system does not report
// it.
func Process() time.Duration {
	var u syscall.Rusage
	if syscall.Getrusage(syscall.RUSAGE_SELF, &u) != nil {
		return 0
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}
