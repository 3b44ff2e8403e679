package main

import (
	"encoding/json"
	"io"
	"os"

	"github.com/spf13/cobra"

	"weir/link/emulator"
	"weir/loadtest/cluster"
	"weir/loadtest/cluster/batch/kubernetes"
	"weir/loadtest/engine"
	"weir/loadtest/results"
	"weir/monitor"
	"weir/storage/all"
)

// These commands are processes that weir starts. They do not handle signals: the run does, and its
// end ends them.

// setPath sets PATH if a batch system gives its jobs no PATH, so that programs are found. The shell
// of a script would set it as well.
func setPath() error {
	if os.Getenv("PATH") != "" {
		return nil
	}
	return os.Setenv("PATH", "/usr/local/bin:/usr/bin:/bin")
}

// workerCommand returns the command of a worker. It communicates with its run on standard input and
// output or, if a batch system starts it, over the network with a pass.
func workerCommand(s streams) *cobra.Command {
	var pass string
	c := command("worker", cobra.NoArgs, func(c *cobra.Command, _ []string) error {
		files, _, err := monitor.RaiseOpenFiles()
		if err != nil {
			return err
		}
		if pass == "" {
			s.signals.listen()
			return cluster.Work(c.Context(), s.in, s.out, all.Drivers(), func(dir string) (engine.Manifest, io.Closer, error) {
				m, err := results.OpenManifest(dir)
				return m, m, err
			})
		}
		p, err := cluster.ReadPass(pass)
		if err != nil {
			return usage(err)
		}
		if err := setPath(); err != nil {
			return err
		}
		ctx, cancel := s.untilSignal(c.Context(), false)
		defer cancel()
		return cluster.Join(ctx, p, cluster.JoinOptions{Files: files, Version: version()}, all.Drivers())
	})
	flagVars{"pass": &pass}.add(c)
	return c
}

func keeperCommand(s streams) *cobra.Command {
	return command("keeper", cobra.NoArgs, func(c *cobra.Command, _ []string) error {
		s.signals.listen()
		if _, _, err := monitor.RaiseOpenFiles(); err != nil {
			return err
		}
		mover, err := cluster.SelfCommand("mover")
		if err != nil {
			return err
		}
		return emulator.Keep(c.Context(), s.in, s.out, mover, os.Stderr)
	})
}

func moverCommand(s streams) *cobra.Command {
	var probe bool
	c := command("mover", cobra.NoArgs, func(c *cobra.Command, _ []string) error {
		if probe {
			return json.NewEncoder(s.out).Encode(emulator.Probe())
		}
		s.signals.listen()
		return emulator.Move(c.Context(), s.in, s.out)
	})
	flagVars{"probe": &probe}.add(c)
	return c
}

// podCommand returns the command of a pod's first process, which runs weir with its arguments as a
// worker.
func podCommand(s streams) *cobra.Command {
	c := command("pod ARGUMENT...", cobra.MinimumNArgs(1), func(_ *cobra.Command, args []string) error {
		status, err := kubernetes.Pod(args, s.out, s.err)
		if err != nil || status != 0 {
			return exit{exitCode(status), err}
		}
		return nil
	})
	c.DisableFlagParsing = true
	return c
}
