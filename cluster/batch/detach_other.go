//go:build !linux

package batch

import "os/exec"

func detach(*exec.Cmd) {}
