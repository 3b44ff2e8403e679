package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"

	"github.com/spf13/cobra"

	"weir/results"
	"weir/run"
	"weir/run/campaign"
)

func cleanCommand(s streams, signals signalSource) *cobra.Command {
	var asJSON bool
	var target string
	c := &cobra.Command{
		Use:   "clean RUN|CAMPAIGN",
		Short: "Remove what a run that was killed has left on its target",
		Long: `Removes the files and folders that the run's manifest names and nothing else;
folders only when they are empty. Workers that it submitted to a batch system and
that are still there are removed, and so is what it kept of their secrets. All of them lie in the run's own folder on the
target; a manifest that names anything else is refused. Copies of files that staged
jobs of killed runs have left on the same scratch disk of this machine go, too.`,
		Example: `  weir clean runs/upload-20260301-120000`,
		Args:    cobra.ExactArgs(1),
		RunE: func(c *cobra.Command, args []string) error {
			ctx, cancel := context.WithCancelCause(c.Context())
			defer cancel(nil)
			caught := signals.listen()
			go func() {
				select {
				case by := <-caught:
					cancel(interruption{by})
				case <-ctx.Done():
				}
			}()
			if !campaign.Is(args[0]) {
				one, err := run.Clean(ctx, args[0], target, s.console())
				return afterSignal(ctx, errors.Join(err, tellCleaned(s.out, []run.Cleaned{one}, asJSON)))
			}
			all, err := cleanCampaign(ctx, args[0], target, s)
			return afterSignal(ctx, errors.Join(err, tellCleaned(s.out, all, asJSON)))
		},
	}
	c.Flags().StringVar(&target, "target", "", "the run's target as a whole `URL`, where it has a secret: run directories keep none")
	jsonFlag(c, &asJSON, "print what was removed as JSON")
	quietFlag(c, &s.quiet)
	return c
}

// tellCleaned prints what was removed.
func tellCleaned(out io.Writer, all []run.Cleaned, asJSON bool) error {
	if asJSON {
		return writeJSON(out, map[string]any{"runs": append([]run.Cleaned{}, all...)})
	}
	for i := range all {
		if err := all[i].WriteText(out); err != nil {
			return err
		}
	}
	return nil
}

// cleanCampaign cleans all runs in the campaign's folder dir, those that were
// set aside, too.
func cleanCampaign(ctx context.Context, dir, target string, s streams) (all []run.Cleaned, err error) {
	entries, err := os.ReadDir(dir)
	for _, e := range entries {
		name := filepath.Join(dir, e.Name())
		if _, no := os.Stat(filepath.Join(name, results.AboutFile)); no != nil {
			continue
		}
		one, e := run.Clean(ctx, name, target, s.console())
		if all = append(all, one); e != nil {
			err = errors.Join(err, fmt.Errorf("%s: %w", name, e))
		}
	}
	return all, err
}
