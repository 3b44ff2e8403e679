//go:build unix

package trial

import (
	"os/exec"
	"syscall"
)

// detach keeps the terminal's Ctrl-C from a process: this one decides when it
// ends.
func detach(cmd *exec.Cmd) { cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true} }
