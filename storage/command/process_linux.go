package command

import (
	"context"
	"errors"
	"os"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// A process is a running program. Its end is heard through a descriptor of
// the process in Go's poller, so that a thousand programs cost no thousand
// threads that wait for them.
type process struct {
	own  *os.Process
	file *os.File // nil on a kernel without such descriptors
	raw  syscall.RawConn
}

func attributes() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
}

// newProcess takes over a program that was just started.
func newProcess(own *os.Process) *process {
	p := &process{own: own}
	// Not os.Process's own descriptor: it must stay blocking.
	fd, err := unix.PidfdOpen(own.Pid, unix.PIDFD_NONBLOCK)
	if err != nil {
		return p
	}
	file := os.NewFile(uintptr(fd), "process")
	raw, err := file.SyscallConn()
	if err != nil {
		_ = file.Close()
		return p
	}
	p.file, p.raw = file, raw
	return p
}

func (p *process) pid() int { return p.own.Pid }

// gone says whether the program has ended; it is not reaped.
func (p *process) gone() bool {
	var info unix.Siginfo
	err := unix.Waitid(unix.P_PID, p.own.Pid, &info, unix.WEXITED|unix.WNOWAIT|unix.WNOHANG, nil)
	return err != nil && !errors.Is(err, unix.EINTR) || err == nil && info.Signo != 0
}

// waitUntil waits for the program's end until t or until wake.
func (p *process) waitUntil(ctx context.Context, t time.Time) (ended bool, err error) {
	if p.raw == nil || p.file.SetReadDeadline(t) != nil {
		return p.pollUntil(ctx, t)
	}
	if err := ctx.Err(); err != nil { // after the deadline is set, which wake may have set before
		return false, err
	}
	if err := p.raw.Read(func(uintptr) bool { return p.gone() }); err != nil && !errors.Is(err, os.ErrDeadlineExceeded) {
		return p.pollUntil(ctx, t)
	}
	return p.gone(), ctxErr(ctx, p.gone)
}

// pollUntil is waitUntil without the help of the kernel.
func (p *process) pollUntil(ctx context.Context, t time.Time) (bool, error) {
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	for !p.gone() {
		select {
		case <-ctx.Done():
			return false, ctx.Err()
		case now := <-tick.C:
			if now.After(t) {
				return false, nil
			}
		}
	}
	return true, nil
}

// ctxErr is ctx's error, unless the program ended all the same.
func ctxErr(ctx context.Context, gone func() bool) error {
	if gone() {
		return nil
	}
	return ctx.Err()
}

// wake ends a waitUntil.
func (p *process) wake() {
	if p.file != nil {
		_ = p.file.SetReadDeadline(time.Unix(1, 0))
	}
}

// reap takes the exit status of a program that has ended.
func (p *process) reap() (*os.ProcessState, error) {
	state, err := p.own.Wait()
	p.leave()
	return state, err
}

// leave lets go of the program, reaped or not.
func (p *process) leave() {
	if p.file != nil {
		_ = p.file.Close()
	}
	_ = p.own.Release()
}
