package batch

import (
	"os/exec"
	"syscall"
)

// Detach keeps the terminal's Ctrl-C from a program that weir starts: weir decides when it ends.
func Detach(cmd *exec.Cmd) { cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true} }
