package cluster

import (
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
)

// A Child is this same program, started as another process, that lives until
// In is closed, also if its parent is killed.
type Child struct {
	In  io.WriteCloser // its standard input
	Out io.Reader      // its standard output
	cmd *exec.Cmd
}

// Start starts command, this program's path and the arguments that tell it what
// to be. Its standard error goes to log. The caller stops it, or closes In and
// waits for it.
func Start(command []string, log io.Writer) (*Child, error) {
	cmd := exec.Command(command[0], command[1:]...)
	cmd.Args[0] = "weir"
	cmd.Stderr = log
	detach(cmd)
	in, err := cmd.StdinPipe()
	if err != nil {
		return nil, err
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	if err := cmd.Start(); err != nil {
		return nil, err
	}
	return &Child{In: in, Out: out, cmd: cmd}, nil
}

// Wait waits for the child's end, after its output has been read.
func (c *Child) Wait() error { return c.cmd.Wait() }

// Stop ends the child and waits for it.
func (c *Child) Stop() error { return errors.Join(c.In.Close(), c.Wait()) }

// SelfCommand returns the path of this program with args behind it.
func SelfCommand(args ...string) ([]string, error) {
	exe, err := os.Executable()
	if err != nil {
		return nil, fmt.Errorf("where is this program? %w", err)
	}
	return append([]string{exe}, args...), nil
}
