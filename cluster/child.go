package cluster

import (
	"errors"
	"io"
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
	cmd := exec.Command(command[0], command[1:]...) //nolint:noctx // ends when its input does; killing it would lose what it knows
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
