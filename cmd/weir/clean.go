package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"

	"weir/cluster"
	"weir/engine"
	"weir/engine/scratch"
	"weir/results"
	"weir/results/campaign"
	"weir/scenario"
	"weir/storage"
	"weir/storage/all"
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
				one, err := cleanRun(ctx, args[0], target, s)
				return afterSignal(ctx, errors.Join(err, tellCleaned(s.out, []cleaned{one}, asJSON)))
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

// cleaned is what was removed of what a run had left.
type cleaned struct {
	Run     string   `json:"run"` // its directory
	Target  string   `json:"target"`
	Named   int      `json:"named"` // files and folders in the manifest that were not removed yet
	Removed int      `json:"removed"`
	Scratch []string `json:"scratch,omitempty"` // what became of copies that killed runs had left where this one had its own
	Error   string   `json:"error,omitempty"`
}

// tellCleaned says what was removed. A run that could not be looked at has no target.
func tellCleaned(out io.Writer, all []cleaned, asJSON bool) error {
	if asJSON {
		return writeJSON(out, map[string]any{"runs": append([]cleaned{}, all...)})
	}
	for _, c := range all {
		if c.Target == "" {
			continue
		}
		if _, err := fmt.Fprintf(out, "removed %d of %d files and folders from %s\n", c.Removed, c.Named, c.Target); err != nil {
			return err
		}
		for _, text := range c.Scratch {
			if _, err := fmt.Fprintln(out, text); err != nil {
				return err
			}
		}
	}
	return nil
}

// cleanCampaign cleans all runs in the campaign's folder dir, those that were
// set aside, too.
func cleanCampaign(ctx context.Context, dir, target string, s streams) (all []cleaned, err error) {
	entries, err := os.ReadDir(dir)
	for _, e := range entries {
		run := filepath.Join(dir, e.Name())
		if _, no := os.Stat(filepath.Join(run, results.AboutFile)); no != nil {
			continue
		}
		one, e := cleanRun(ctx, run, target, s)
		if all = append(all, one); e != nil {
			err = errors.Join(err, fmt.Errorf("%s: %w", run, e))
		}
	}
	return all, err
}

// cleanRun removes what the manifest of the run in dir says is left. target is the
// run's where the plan lacks its secrets, or "".
func cleanRun(ctx context.Context, dir, target string, s streams) (c cleaned, err error) {
	c.Run = dir
	defer func() {
		if err != nil {
			c.Error = s.errorLine(err)
		}
	}()
	run, err := results.Open(dir)
	if err != nil {
		return c, err
	}
	m, err := results.OpenManifest(dir)
	if err != nil {
		return c, err
	}
	defer func() { err = errors.Join(err, m.Close()) }()
	if err := forget(ctx, run); err != nil {
		return c, err
	}
	if at := run.About.Scratch; at != nil {
		for _, l := range scratch.Clear(at.Folder) {
			c.Scratch = append(c.Scratch, l.String())
		}
	}
	left, err := leftovers(m)
	if err != nil {
		return c, err
	}
	if err := within(left, runFolder(run.About)); err != nil {
		return c, err
	}
	if len(left) == 0 {
		c.Target = run.Plan.Target
		return c, nil
	}
	plan, service, err := reach(ctx, run.Plan, target, s)
	if err != nil {
		return c, err
	}
	defer func() { err = errors.Join(err, service.Close()) }()
	w := s.working("removing what " + dir + " has left")
	failed, first := engine.Clean(ctx, engine.Config{Plan: plan, Service: service, Manifest: m}, left, w.advance)
	w.done()
	c.Target, c.Named, c.Removed = run.Plan.Target, len(left), len(left)-failed
	if failed > 0 {
		return c, fmt.Errorf("%d are left: %w", failed, first)
	}
	return c, nil
}

// reach opens the service of a run's plan, with the secrets that target has.
func reach(ctx context.Context, plan *scenario.Plan, target string, s streams) (*scenario.Plan, storage.Service, error) {
	if len(plan.Redacted()) == 0 {
		target = "" // it needs none
	}
	plan, err := plan.Complete(target)
	if err != nil {
		return nil, nil, exit{exitUsage, err}
	}
	s.secrets.Learn(plan.Secrets()...)
	service, err := cluster.OpenService(ctx, plan, all.Drivers(), nil)
	return plan, service, err
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
