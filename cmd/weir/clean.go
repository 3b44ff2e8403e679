package main

import (
	"errors"

	"github.com/spf13/cobra"

	"weir/run"
)

func cleanCommand(s streams) *cobra.Command {
	var asJSON bool
	var target string
	c := &cobra.Command{
		Use:   "clean RUN|CAMPAIGN",
		Short: "Remove the files and workers that a killed run left behind",
		Long: `Remove the files and workers that a killed run left behind.

Only the files and folders in the run's manifest are removed, and folders only when they
are empty. All of them are in the run's own folder on the target; a manifest with other
names is refused. Workers that the run submitted to a batch system and their secrets are
also removed, as are the copies that staged jobs of killed runs left on the same scratch
disk of this machine.`,
		Example: `  weir clean runs/upload-20260301-120000`,
		Args:    cobra.ExactArgs(1),
		RunE: func(c *cobra.Command, args []string) error {
			ctx, cancel := s.untilSignal(c.Context(), false)
			defer cancel()
			all, err := run.CleanAll(ctx, args[0], target, s.console())
			if asJSON {
				err = errors.Join(err, writeJSON(s.out, map[string]any{"runs": append([]run.Cleaned{}, all...)}))
				all = nil
			}
			for i := range all {
				err = errors.Join(err, all[i].WriteText(s.out))
			}
			return afterSignal(ctx, err)
		},
	}
	c.Flags().StringVar(&target, "target", "", "the run's target as a whole `URL`, if it has a secret: run directories keep none")
	jsonFlag(c, &asJSON, "print the removed files as JSON")
	quietFlag(c, &s.quiet)
	return c
}
