//go:build !linux

package lab

import (
	"os"
	"syscall"
)

// awaitExit waits for the end of a process.
func awaitExit(p *os.Process) { _, _ = p.Wait() } // the caller waits again, and reports the error

// attributes returns how the process is started: as the leader of a group. It does not end with this process: only Linux does that.
func (p *process) attributes() *syscall.SysProcAttr { return &syscall.SysProcAttr{Setpgid: true} }

// setApart does nothing: only Linux has namespaces, and tryApart fails because it mounts something.
func setApart(*syscall.SysProcAttr) {}

// useGroup is not called here: there are no control groups.
func useGroup(*syscall.SysProcAttr, *os.File) {}
