package cluster

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os/exec"
	"strconv"

	"weir/engine"
)

// Local runs c in n processes of this machine, each started as command (this
// program's path and the arguments that make it a worker). Their standard
// error goes to log. All have ended when Local returns.
func Local(ctx context.Context, c engine.Config, n int, command []string, manifest string, log io.Writer) error {
	var links []Link
	var started []*exec.Cmd
	end := func() error {
		var err error
		for i, cmd := range started {
			if e := cmd.Wait(); e != nil {
				err = errors.Join(err, fmt.Errorf("worker %d: %w", i+1, e))
			}
		}
		return err
	}
	for i := range n {
		cmd := exec.Command(command[0], command[1:]...) //nolint:noctx // ends when its input does; killing it would lose its last intervals
		cmd.Stderr = log
		cmd.Args[0] = "weir"
		detach(cmd)
		in, err := cmd.StdinPipe()
		if err != nil {
			return err
		}
		out, err := cmd.StdoutPipe()
		if err != nil {
			return err
		}
		if err := cmd.Start(); err != nil {
			for _, l := range links {
				_ = l.Out.Close()
			}
			return errors.Join(fmt.Errorf("start worker: %w", err), end())
		}
		started = append(started, cmd)
		links = append(links, Link{Name: strconv.Itoa(i + 1), In: out, Out: in})
	}
	err := Control(ctx, c, links, manifest)
	if e := end(); err == nil {
		err = e
	}
	return err
}
