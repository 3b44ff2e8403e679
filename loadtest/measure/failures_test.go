package measure

import (
	"errors"
	"fmt"
	"net"
	"os"
	"syscall"
	"testing"
	"time"

	"weir/storage"
)

// Failures of a step add up over its phases and kinds; the newest second counts by itself, and only
// if it is worse.
func TestFailures(t *testing.T) {
	var f Failures
	add := func(second, step int, phase string, done, failed int64) {
		f.Add(&Interval{Start: time.Unix(int64(second), 0), Seconds: 1, Step: step, Phase: phase,
			Sum: Sum{Done: done, Failed: map[storage.Class]int64{storage.Refused: failed}}})
	}
	want := func(count, failed, all int64, worse bool) {
		t.Helper()
		if n, all2, is := f.Worse(); f.Count() != count || n != failed || all2 != all || is != worse {
			t.Errorf("%d failed, %d of %d in the last second, worse: %v; want %d, %d of %d, %v", f.Count(), n, all2, is, count, failed, all, worse)
		}
	}
	want(0, 0, 0, false)
	add(1, 1, Ramp, 90, 10)
	want(10, 10, 100, false)
	add(2, 1, Measured, 10, 50)
	add(2, 1, Measured, 0, 40)
	want(100, 90, 100, true)
	add(3, 1, Measured, 100, 0)
	want(100, 0, 100, false)
	add(4, 2, Ramp, 0, 3)
	want(3, 3, 3, false)
}

// TestExhaustedResources checks that errors name the resource of the clients' machine that ran out.
func TestExhaustedResources(t *testing.T) {
	for err, want := range map[error]string{
		fmt.Errorf("dial: %w", os.NewSyscallError("socket", syscall.EMFILE)):                           OpenFiles,
		&net.OpError{Op: "dial", Err: os.NewSyscallError("connect", syscall.EADDRNOTAVAIL)}:            Ports,
		&net.OpError{Op: "dial", Err: os.NewSyscallError("connect", syscall.ECONNREFUSED)}:             "",
		errors.New("the server reports: socket: too many open files, cannot assign requested address"): "",
	} {
		if got := exhausted(err); got != want {
			t.Errorf("%v: %q, want %q", err, got, want)
		}
	}
}
