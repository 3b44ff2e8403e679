package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"strconv"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// recordsVar names the file that execTest appends its record to.
const recordsVar = "WEIR_SUITE_RECORDS"

// grace is the time that processes of a finished test binary have to end, because servers clean up.
const grace = 20 * time.Second

// A record is the cost of one test binary.
type record struct {
	Dir         string   `json:"dir"`            // the folder of the package
	CPUSeconds  float64  `json:"cpu_seconds"`    // of the binary and all processes that it started
	WallSeconds float64  `json:"wall_seconds"`   //
	Left        []string `json:"left,omitempty"` // names of the processes that still ran at the end and were killed
}

// execTest runs a test binary for `go test -exec`, adopts the processes that it leaves behind, kills them, and appends a record. It
// returns the binary's exit code.
func execTest(args []string, grace time.Duration) int {
	if err := unix.Prctl(unix.PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0); err != nil {
		fmt.Fprintln(os.Stderr, "suite: adopt processes:", err)
		return 1
	}
	begin := time.Now()
	p, err := os.StartProcess(args[0], args, &os.ProcAttr{Files: []*os.File{os.Stdin, os.Stdout, os.Stderr}})
	if err != nil {
		fmt.Fprintln(os.Stderr, "suite:", err)
		return 1
	}
	signals := make(chan os.Signal, 8)
	signal.Notify(signals, syscall.SIGINT, syscall.SIGTERM, syscall.SIGQUIT)
	go func() {
		for s := range signals {
			_ = p.Signal(s)
		}
	}()
	r := record{}
	code := r.reap(p.Pid)
	r.Left = r.endChildren(grace)
	r.WallSeconds = time.Since(begin).Seconds()
	if err := r.append(os.Getenv(recordsVar)); err != nil {
		fmt.Fprintln(os.Stderr, "suite: record:", err)
		return 1
	}
	return code
}

// reap waits until process pid has ended and returns its exit code. It adds the CPU time of each process that ends meanwhile.
func (r *record) reap(pid int) int {
	for {
		var status syscall.WaitStatus
		var usage syscall.Rusage
		ended, err := syscall.Wait4(-1, &status, 0, &usage)
		switch {
		case errors.Is(err, syscall.EINTR):
			continue
		case err != nil:
			return 1
		}
		r.add(usage)
		if ended == pid {
			if status.Signaled() {
				return 128 + int(status.Signal())
			}
			return status.ExitStatus()
		}
	}
}

func (r *record) add(u syscall.Rusage) {
	r.CPUSeconds += time.Duration(u.Utime.Nano() + u.Stime.Nano()).Seconds()
}

// endChildren waits for the adopted processes, kills the processes that have not ended after the
// grace time, and returns their names.
func (r *record) endChildren(grace time.Duration) (killed []string) {
	deadline, seen := time.Now().Add(grace), map[int]bool{}
	for {
		var usage syscall.Rusage
		ended, err := syscall.Wait4(-1, nil, syscall.WNOHANG, &usage)
		switch {
		case errors.Is(err, syscall.ECHILD):
			return killed
		case err == nil && ended > 0:
			r.add(usage)
			continue
		case time.Now().After(deadline):
			for _, pid := range children() {
				if !seen[pid] {
					seen[pid], killed = true, append(killed, commandOf(pid))
					_ = syscall.Kill(pid, syscall.SIGKILL)
				}
			}
		}
		time.Sleep(10 * time.Millisecond)
	}
}

// children returns the pids of this process's children that have not ended.
func children() (pids []int) {
	text, _ := os.ReadFile(fmt.Sprintf("/proc/self/task/%d/children", os.Getpid()))
	others, _ := os.ReadDir("/proc/self/task")
	for _, task := range others {
		if task.Name() != strconv.Itoa(os.Getpid()) {
			more, _ := os.ReadFile("/proc/self/task/" + task.Name() + "/children")
			text = append(text, more...)
		}
	}
	for _, word := range strings.Fields(string(text)) {
		pid, err := strconv.Atoi(word)
		if err == nil && commandOf(pid) != "" { // a zombie has no command line
			pids = append(pids, pid)
		}
	}
	return pids
}

// commandOf returns the command line of a process, "" if the process has ended.
func commandOf(pid int) string {
	text, _ := os.ReadFile(fmt.Sprintf("/proc/%d/cmdline", pid))
	line := strings.TrimSpace(strings.ReplaceAll(string(text), "\x00", " "))
	return line[:min(len(line), 120)]
}

func (r *record) append(path string) error {
	if path == "" {
		return nil
	}
	var err error
	if r.Dir, err = os.Getwd(); err != nil {
		return err
	}
	line, err := json.Marshal(r)
	if err != nil {
		return err
	}
	f, err := os.OpenFile(path, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o644)
	if err != nil {
		return err
	}
	_, err = f.Write(append(line, '\n'))
	return errors.Join(err, f.Close())
}
