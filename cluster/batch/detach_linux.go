package batch

import (
	"os/exec"
	"syscall"
)

// detach keeps the terminal's Ctrl-C from a program that weir has started: weir
// decides when it ends.
func detach(cmd *exec.Cmd) { cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true} }
