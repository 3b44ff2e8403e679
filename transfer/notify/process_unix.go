//go:build unix

package notify

import (
	"os/exec"
	"syscall"
)

// killGroup has the end of the command's context kill all processes that it has started.
func killGroup(cmd *exec.Cmd) {
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }
}
