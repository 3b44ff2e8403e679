//go:build !linux

package batch

import "os/exec"

// Detach does nothing on this system.
func Detach(*exec.Cmd) {}
