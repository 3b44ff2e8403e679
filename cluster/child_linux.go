package cluster

import (
	"os/exec"
	"syscall"
)

// detach keeps the terminal's Ctrl-C from a child: its parent decides when it
// ends.
func detach(cmd *exec.Cmd) { cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true} }
