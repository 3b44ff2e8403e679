package command

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// A process is a running program. Its end is detected with a descriptor of the process in Go's
// poller, so that a thousand programs do not need a thousand waiting threads.
type process struct {
	cmd  *exec.Cmd
	file *os.File // nil on a kernel without such descriptors
	raw  syscall.RawConn
}

func attributes() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
}

// newProcess returns the process of a program that was just started.
func newProcess(cmd *exec.Cmd) *process {
	p := &process{cmd: cmd}
	// Not os.Process's own descriptor: it must stay blocking.
	fd, err := unix.PidfdOpen(cmd.Process.Pid, unix.PIDFD_NONBLOCK)
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

func (p *process) pid() int { return p.cmd.Process.Pid }

// gone reports whether the program has ended; it is not reaped.
func (p *process) gone() bool {
	var info unix.Siginfo
	err := unix.Waitid(unix.P_PID, p.pid(), &info, unix.WEXITED|unix.WNOWAIT|unix.WNOHANG, nil)
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

// pollUntil works like waitUntil, without the help of the kernel.
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

// ctxErr returns ctx's error, or nil if the program has ended.
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

// reap returns the exit status of a program that has ended.
func (p *process) reap() error {
	if p.file != nil {
		defer p.file.Close()
	}
	return p.cmd.Wait()
}

// A peak determines the maximum memory of a program. The kernel's own figure, ru_maxrss, cannot be
// less than weir's: a new process shares weir's memory until it executes the program, and its
// memory at that moment counts (exec_mmap in Linux' fs/exec.c).
type peak struct {
	ours int64 // bytes, at least weir's memory when the program was started
	seen int64 // bytes of the largest sampled process
}

// newPeak returns a peak. It must be called after the program was started.
func newPeak() *peak { return &peak{ours: highWater("self")} }

// mostSeen limits the processes of a program that are sampled.
const mostSeen = 64

// look samples a running program and its descendants.
func (p *peak) look(pid int) {
	for all := []string{strconv.Itoa(pid)}; len(all) > 0 && len(all) < mostSeen; all = all[1:] {
		p.seen = max(p.seen, highWater(all[0]))
		children, _ := os.ReadFile(fmt.Sprintf("/proc/%s/task/%[1]s/children", all[0])) // ended, or not supported by this kernel
		all = append(all, strings.Fields(string(children))...)
	}
}

// of returns the most memory of one process, in bytes, 0 if it is not known; kib is the kernel's
// figure.
func (p *peak) of(kib int64) int64 {
	if said := kib << 10; said > p.ours+p.ours/16+1<<20 { // counters of memory are not exact
		return said
	}
	return p.seen
}

// highWater returns the most resident memory that a process has had, in bytes, 0 if it is unknown.
func highWater(pid string) int64 {
	text, err := os.ReadFile("/proc/" + pid + "/status")
	if err != nil {
		return 0
	}
	_, after, _ := bytes.Cut(text, []byte("\nVmHWM:"))
	line, _, _ := bytes.Cut(after, []byte(" kB"))
	kib, err := strconv.ParseInt(string(bytes.TrimSpace(line)), 10, 64)
	if err != nil {
		return 0
	}
	return kib << 10
}
