package main

import (
	"context"
	"errors"
	"fmt"

	"github.com/spf13/cobra"

	"weir/cluster"
	"weir/engine"
	"weir/results"
	"weir/storage/all"
)

func cleanCommand(s streams, signals signalSource) *cobra.Command {
	return &cobra.Command{
		Use:   "clean RUN",
		Short: "Remove what a run that was killed has left on its target",
		Long: `Removes the files and folders that the run's manifest names and nothing else;
folders only when they are empty.`,
		Example: `  weir clean runs/upload-20260301-120000`,
		Args:    cobra.ExactArgs(1),
		RunE: func(c *cobra.Command, args []string) (err error) {
			run, err := results.Open(args[0])
			if err != nil {
				return err
			}
			m, err := results.OpenManifest(args[0])
			if err != nil {
				return err
			}
			defer func() { err = errors.Join(err, m.Close()) }()
			left, err := leftovers(m)
			if err != nil {
				return err
			}
			ctx, cancel := context.WithCancelCause(c.Context())
			defer cancel(nil)
			go func() {
				select {
				case <-signals.listen():
					cancel(errFinishing)
				case <-ctx.Done():
				}
			}()
			service, err := cluster.OpenService(ctx, run.Plan, all.Drivers())
			if err != nil {
				return err
			}
			defer func() { err = errors.Join(err, service.Close()) }()
			failed, first := engine.Clean(ctx, engine.Config{Plan: run.Plan, Service: service, Manifest: m}, left, nil)
			_, err = fmt.Fprintf(s.out, "removed %d of %d files and folders from %s\n", len(left)-failed, len(left), run.Plan.Target)
			if failed > 0 {
				err = errors.Join(err, fmt.Errorf("%d are left: %w", failed, first))
			}
			return err
		},
	}
}
