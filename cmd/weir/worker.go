package main

import (
	"io"

	"github.com/spf13/cobra"

	"weir/cluster"
	"weir/engine"
	"weir/monitor"
	"weir/results"
	"weir/storage/all"
)

// workerCommand is a part of a run in a process of its own. It is started by
// weir run and speaks with it on standard input and output.
func workerCommand(s streams, signals signalSource) *cobra.Command {
	return &cobra.Command{
		Use:    "worker",
		Short:  "One process of a run (started by weir run)",
		Hidden: true,
		Args:   cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			signals.listen() // and leave it to the run, whose end ends its workers, to heed them
			if _, _, err := monitor.RaiseOpenFiles(); err != nil {
				return err
			}
			return cluster.Work(c.Context(), s.in, s.out, all.Drivers(), openManifest)
		},
	}
}

func openManifest(dir string) (engine.Manifest, io.Closer, error) {
	m, err := results.OpenManifest(dir)
	return m, m, err
}
