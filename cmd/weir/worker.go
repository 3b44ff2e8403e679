package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"

	"github.com/spf13/cobra"

	"weir/cluster"
	"weir/engine"
	"weir/link/emulator"
	"weir/monitor"
	"weir/results"
	"weir/run"
	"weir/storage/all"
)

// workerCommand is a part of a run in a process of its own. It is started by
// weir run and speaks with it on standard input and output; or a batch system has
// started it, and it comes in over the network with a pass.
func workerCommand(s streams, signals signalSource) *cobra.Command {
	var pass string
	c := &cobra.Command{
		Use:    "worker",
		Short:  "One process of a run (started by weir run)",
		Hidden: true,
		Args:   cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			caught := signals.listen()
			files, _, err := monitor.RaiseOpenFiles()
			if err != nil {
				return err
			}
			if pass == "" { // it is left to the run, whose end ends its workers, to heed signals
				return cluster.Work(c.Context(), s.in, s.out, all.Drivers(), openManifest)
			}
			p, err := cluster.ReadPass(pass)
			if err != nil {
				return exit{exitUsage, err}
			}
			ctx, end := context.WithCancelCause(c.Context())
			defer end(nil)
			go func() {
				select {
				case sig := <-caught:
					end(fmt.Errorf("ended by a signal of its machine (%v)", sig))
				case <-ctx.Done():
				}
			}()
			return cluster.Join(ctx, p, cluster.JoinOptions{Files: files, Version: version()}, all.Drivers())
		},
	}
	c.Flags().StringVar(&pass, "pass", "", "come in over the network with this file")
	return c
}

// keeperCommand holds the links of a run, and moverCommand carries their
// packets. Both are processes of their own, started by weir run.
func keeperCommand(s streams, signals signalSource) *cobra.Command {
	return &cobra.Command{
		Use: "keeper", Short: "The process that holds the links of a run (started by weir run)", Hidden: true, Args: cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			signals.listen() // as for a worker
			if _, _, err := monitor.RaiseOpenFiles(); err != nil {
				return err
			}
			mover, err := cluster.SelfCommand("mover")
			if err != nil {
				return err
			}
			return emulator.Keep(c.Context(), s.in, s.out, mover, os.Stderr)
		},
	}
}

func moverCommand(s streams, signals signalSource) *cobra.Command {
	var probe bool
	c := &cobra.Command{
		Use: "mover", Short: "The process that carries packets over emulated links (started by weir run)", Hidden: true, Args: cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			if probe {
				return json.NewEncoder(s.out).Encode(emulator.Probe())
			}
			signals.listen() // as for a worker
			return emulator.Move(c.Context(), s.in, s.out)
		},
	}
	c.Flags().BoolVar(&probe, "probe", false, "say as JSON what is possible here")
	return c
}

// partCommand is a worker that measures its part of a run by itself.
func partCommand(s streams, signals signalSource) *cobra.Command {
	return &cobra.Command{
		Use: "part PLAN.json", Short: "One part of a run, measured apart (started by weir run)", Hidden: true, Args: cobra.ExactArgs(1),
		RunE: func(c *cobra.Command, args []string) error {
			in, release := interruptible(c.Context(), signals.listen(), s.err)
			defer release()
			s.quiet = true
			return run.Part(run.Config{Version: version(), Console: s.console(), Interrupts: in, View: s.view(in)}, args[0])
		},
	}
}

func openManifest(dir string) (engine.Manifest, io.Closer, error) {
	m, err := results.OpenManifest(dir)
	return m, m, err
}
