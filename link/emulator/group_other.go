//go:build !unix

package emulator

import (
	"os"
	"os/exec"
)

func ownGroup(*exec.Cmd) {}

func closeOnExec(*os.File) {}
