package main

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// A usage is what a finished process has cost.
type usage struct {
	wall time.Duration
	cpu  time.Duration // user and system, from wait4, children that were waited for included
	peak int64         // bytes, the most that were resident
	out  []byte        // its standard output
	code int
}

// The longest that any one process may take.
const childTimeout = 3 * time.Minute

// runChild runs a program to its end. An exit code other than 0 is an error
// unless it is one of fine. watch, if not nil, is called with the process id
// while it runs and must return soon after its context ends.
func runChild(ctx context.Context, watch func(ctx context.Context, pid int), fine []int, argv ...string) (usage, error) {
	ctx, cancel := context.WithTimeout(ctx, childTimeout)
	defer cancel()
	cmd := exec.CommandContext(ctx, argv[0], argv[1:]...)
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGTERM) }
	cmd.WaitDelay = 10 * time.Second
	var out, errs bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &errs
	begin := time.Now()
	if err := cmd.Start(); err != nil {
		return usage{}, err
	}
	watching, done := context.WithCancel(ctx)
	seen := make(chan struct{})
	go func() {
		defer close(seen)
		if watch != nil {
			watch(watching, cmd.Process.Pid)
		}
	}()
	err := cmd.Wait()
	u := usage{wall: time.Since(begin), out: out.Bytes(), code: cmd.ProcessState.ExitCode(),
		cpu: cmd.ProcessState.UserTime() + cmd.ProcessState.SystemTime()}
	if ru, ok := cmd.ProcessState.SysUsage().(*syscall.Rusage); ok {
		u.peak = ru.Maxrss << 10
	}
	done()
	<-seen
	if err == nil || ctx.Err() == nil && isFine(u.code, fine) {
		return u, nil
	}
	return u, fmt.Errorf("%s: %w\n%s%s", strings.Join(argv, " "), err, tail(errs.Bytes()), tail(out.Bytes()))
}

func isFine(code int, fine []int) bool {
	for _, c := range fine {
		if c == code {
			return true
		}
	}
	return false
}

func tail(b []byte) []byte { return b[max(0, len(b)-1500):] }

// groupCPU returns the CPU time that the living processes of a process group
// have used, from /proc. It counts in hundredths of a second.
func groupCPU(group int) (time.Duration, error) {
	stats, err := filepath.Glob("/proc/[0-9]*/stat")
	if err != nil {
		return 0, err
	}
	var ticks int64
	found := false
	for _, path := range stats {
		b, err := os.ReadFile(path)
		if err != nil {
			continue // it has ended meanwhile
		}
		// The name, in parentheses, may hold anything; fields count from after it.
		f := strings.Fields(string(b[bytes.LastIndexByte(b, ')')+1:]))
		if len(f) < 13 || f[2] != strconv.Itoa(group) {
			continue
		}
		found = true
		for _, field := range f[11:13] { // utime, stime
			n, err := strconv.ParseInt(field, 10, 64)
			if err != nil {
				return 0, fmt.Errorf("%s: %w", path, err)
			}
			ticks += n
		}
	}
	if !found {
		return 0, fmt.Errorf("no process of group %d is left", group)
	}
	return time.Duration(ticks) * 10 * time.Millisecond, nil
}

// residentBytes reads VmRSS of a process.
func residentBytes(pid int) (int64, error) { return statusBytes(pid, "VmRSS:") }

// statusBytes reads an amount of memory of a process.
func statusBytes(pid int, what string) (int64, error) {
	b, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil {
		return 0, err
	}
	for l := range strings.Lines(string(b)) {
		if rest, ok := strings.CutPrefix(l, what); ok {
			n, err := strconv.ParseInt(strings.TrimSpace(strings.TrimSuffix(strings.TrimSpace(rest), "kB")), 10, 64)
			return n << 10, err
		}
	}
	return 0, fmt.Errorf("no %s", what)
}
