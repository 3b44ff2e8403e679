package cluster

import (
	"os/exec"
	"syscall"
)

// detach keeps the terminal's Ctrl-C from the worker: the controller decides.
func detach(cmd *exec.Cmd) { cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true} }
