package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
)

// A child is this same program, started as another process, that lives until
// its standard input is closed.
type child struct {
	cmd *exec.Cmd
	in  io.WriteCloser
	URL string
}

// selfCommand returns this program with other arguments.
func selfCommand(args ...string) ([]string, error) {
	exe, err := os.Executable()
	if err != nil {
		return nil, fmt.Errorf("where is this program? %w", err)
	}
	return append([]string{exe}, args...), nil
}

// startBuiltin starts the built-in server with synthetic files as its own
// process, so that its CPU and the clients' can be told apart.
func startBuiltin(ctx context.Context, s streams, synthetic string) (*child, error) {
	command, err := selfCommand("serve", "--synthetic", synthetic, "--while-stdin")
	if err != nil {
		return nil, err
	}
	cmd := exec.Command(command[0], command[1:]...) //nolint:noctx // ends when its input does, also if we are killed
	cmd.Args[0] = "weir"
	cmd.Stderr = s.err
	ownGroup(cmd)
	in, err := cmd.StdinPipe()
	if err != nil {
		return nil, err
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	if err := cmd.Start(); err != nil {
		return nil, fmt.Errorf("start the built-in server: %w", err)
	}
	c := &child{cmd: cmd, in: in}
	line, err := bufio.NewReader(out).ReadString('\n')
	url, ok := strings.CutPrefix(strings.TrimSpace(line), "serving ")
	if err != nil || !ok {
		return nil, errors.Join(fmt.Errorf("the built-in server did not start: %q", line), c.stop())
	}
	c.URL = url
	return c, ctx.Err()
}

// stop ends the child and waits for it.
func (c *child) stop() error {
	return errors.Join(c.in.Close(), c.cmd.Wait())
}
