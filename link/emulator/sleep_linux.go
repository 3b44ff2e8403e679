package emulator

import (
	"errors"
	"runtime"
	"time"

	"golang.org/x/sys/unix"
)

// A sleeper sleeps to within some ten microseconds; Go's timers wait in whole
// milliseconds. It has the thread of the goroutine that made it to itself.
type sleeper struct{}

func newSleeper() sleeper {
	runtime.LockOSThread()
	_ = unix.Prctl(unix.PR_SET_TIMERSLACK, 1000, 0, 0, 0) // without it, 50 us worse
	return sleeper{}
}

func (sleeper) sleep(d time.Duration) {
	for rest := unix.NsecToTimespec(int64(d)); errors.Is(unix.ClockNanosleep(unix.CLOCK_MONOTONIC, 0, &rest, &rest), unix.EINTR); {
	}
}

func (sleeper) end() { runtime.UnlockOSThread() }
