//go:build unix

package emulator

import (
	"os"
	"os/exec"
	"syscall"
)

// ownGroup keeps the terminal's Ctrl-C from a process: its input tells it when to end.
func ownGroup(cmd *exec.Cmd) { cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true} }

func closeOnExec(f *os.File) { syscall.CloseOnExec(int(f.Fd())) }
