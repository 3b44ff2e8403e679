package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"

	"weir/cluster"
	"weir/engine"
	"weir/results"
	"weir/results/campaign"
	"weir/storage/all"
)

func cleanCommand(s streams, signals signalSource) *cobra.Command {
	return &cobra.Command{
		Use:   "clean RUN|CAMPAIGN",
		Short: "Remove what a run that was killed has left on its target",
		Long: `Removes the files and folders that the run's manifest names and nothing else;
folders only when they are empty. All of them lie in the run's own folder on the
target; a manifest that names anything else is refused.`,
		Example: `  weir clean runs/upload-20260301-120000`,
		Args:    cobra.ExactArgs(1),
		RunE: func(c *cobra.Command, args []string) error {
			ctx, cancel := context.WithCancelCause(c.Context())
			defer cancel(nil)
			interrupted := signals.listen()
			go func() {
				select {
				case <-interrupted:
					cancel(errFinishing)
				case <-ctx.Done():
				}
			}()
			if campaign.Is(args[0]) {
				return cleanCampaign(ctx, args[0], s)
			}
			return cleanRun(ctx, args[0], s)
		},
	}
}

// cleanCampaign cleans all runs in the campaign's folder dir, those that were
// set aside, too.
func cleanCampaign(ctx context.Context, dir string, s streams) error {
	entries, err := os.ReadDir(dir)
	for _, e := range entries {
		run := filepath.Join(dir, e.Name())
		if _, no := os.Stat(filepath.Join(run, results.AboutFile)); no != nil {
			continue
		}
		if e := cleanRun(ctx, run, s); e != nil {
			err = errors.Join(err, fmt.Errorf("%s: %w", run, e))
		}
	}
	return err
}

// cleanRun removes what the manifest of the run in dir says is left, and says
// how much that was.
func cleanRun(ctx context.Context, dir string, s streams) (err error) {
	run, err := results.Open(dir)
	if err != nil {
		return err
	}
	m, err := results.OpenManifest(dir)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, m.Close()) }()
	left, err := leftovers(m)
	if err != nil {
		return err
	}
	if err := within(left, runFolder(run.About)); err != nil {
		return err
	}
	service, err := cluster.OpenService(ctx, run.Plan, all.Drivers())
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, service.Close()) }()
	w := s.working("removing what " + dir + " has left")
	failed, first := engine.Clean(ctx, engine.Config{Plan: run.Plan, Service: service, Manifest: m}, left, w.advance)
	w.done()
	_, err = fmt.Fprintf(s.out, "removed %d of %d files and folders from %s\n", len(left)-failed, len(left), run.Plan.Target)
	if failed > 0 {
		err = errors.Join(err, fmt.Errorf("%d are left: %w", failed, first))
	}
	return err
}

// within refuses paths that a run cannot have made: all that it makes lies in
// its own folder. A manifest is a file like others, and may have been changed.
func within(paths []string, folder string) error {
	if strings.Contains(folder, "/") {
		return fmt.Errorf("about.json: no run is called %q: nothing was removed", folder)
	}
	for _, p := range paths {
		plain := strings.TrimSuffix(p, "/")
		if path.Clean(plain) != plain || p != folder+"/" && !strings.HasPrefix(plain, folder+"/") {
			return fmt.Errorf("the manifest names %q, which is not in the run's folder %s: nothing was removed", p, folder)
		}
	}
	return nil
}
