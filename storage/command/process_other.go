//go:build !linux

package command

import (
	"context"
	"os/exec"
	"syscall"
	"time"
)

// A process is a running program. Without descriptors of processes each one costs a thread that waits for it.
type process struct {
	cmd   *exec.Cmd
	ended chan struct{} // closed when cmd was waited for, with err
	err   error
	woken chan struct{}
}

func attributes() *syscall.SysProcAttr { return &syscall.SysProcAttr{Setpgid: true} }

// newProcess returns the process of a program that was just started. A goroutine waits for the
// program and ends with it.
func newProcess(cmd *exec.Cmd) *process {
	p := &process{cmd: cmd, ended: make(chan struct{}), woken: make(chan struct{}, 1)}
	go func() {
		defer close(p.ended)
		p.err = cmd.Wait()
	}()
	return p
}

func (p *process) pid() int { return p.cmd.Process.Pid }

// waitUntil waits for the program's end until t or until wake.
func (p *process) waitUntil(ctx context.Context, t time.Time) (ended bool, err error) {
	timer := time.NewTimer(time.Until(t))
	defer timer.Stop()
	select {
	case <-p.ended:
		return true, nil
	case <-timer.C:
	case <-p.woken:
	}
	return false, ctx.Err()
}

// wake ends a waitUntil.
func (p *process) wake() {
	select {
	case p.woken <- struct{}{}:
	default:
	}
}

// reap returns the exit status of a program that has ended.
func (p *process) reap() error {
	<-p.ended
	return p.err
}

// A peak returns the operating system's figure for a program's memory.
type peak struct{}

func newPeak() *peak { return &peak{} }

func (*peak) look(int) {}

// of returns the largest resident memory of one process, in bytes. kib is the operating system's figure.
func (*peak) of(kib int64) int64 { return kib << 10 }
