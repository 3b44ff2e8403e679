package cluster

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strconv"

	"weir/engine"
)

// Local runs c in n processes of this machine, each started as command (this
// program's path and the arguments that make it a worker). Their standard
// error goes to log. All have ended when Local returns.
func Local(ctx context.Context, c engine.Config, n int, command []string, manifest string, log io.Writer) error {
	var peers []Peer
	var workers []*Child
	for i := range n {
		w, err := Start(command, log)
		if err != nil {
			err = fmt.Errorf("start worker: %w", err)
			for _, w := range workers {
				_ = w.In.Close() // its end is waited for below
			}
			return errors.Join(err, wait(workers))
		}
		workers = append(workers, w)
		peers = append(peers, Peer{Name: strconv.Itoa(i + 1), In: w.Out, Out: w.In})
	}
	err := Control(ctx, c, peers, manifest)
	if e := wait(workers); err == nil {
		err = e
	}
	return err
}

// wait waits for the end of all workers.
func wait(workers []*Child) error {
	var err error
	for i, w := range workers {
		if e := w.Wait(); e != nil {
			err = errors.Join(err, fmt.Errorf("worker %d: %w", i+1, e))
		}
	}
	return err
}
