package main

import (
	"errors"
	"time"

	"github.com/spf13/cobra"

	"weir/run"
)

func mergeCommand(s streams) *cobra.Command {
	var out string
	var asJSON bool
	var on failOn
	c := &cobra.Command{
		Use:   "merge RUN|RUN.tar.gz|FOLDER ...",
		Short: "Merge runs that were recorded on several machines",
		Long: `Merge runs that were recorded on several machines at the same time.

They are parts of one plan (weir run --part 3/10), or the same plan on each machine, and
are added up second by second. A run is its directory, or that packed as one file; of a
folder all runs in it are taken.

The clocks of these machines are not synchronized by weir: a step is measured only in the
seconds in which all runs measured it, by their own clocks. Missing parts are reported and
make the result suspect or invalid. Duplicate parts or runs, and runs of different plans,
are refused.`,
		Example: `  weir merge runs/node1 runs/node2 runs/node3 -o runs/together
  weir merge parts/ -o runs/together`,
		Args: cobra.MinimumNArgs(1),
		RunE: func(_ *cobra.Command, args []string) error {
			runs, err := run.FindRuns(args)
			if err != nil {
				return err
			}
			dir := run.NewDir(out, "merged", time.Now())
			w := s.working("merging")
			err = run.Merge(dir, runs, version())
			w.Stop()
			if err != nil {
				return err
			}
			r, err := run.Analyze(dir, s.console())
			if err != nil {
				return err
			}
			return errors.Join(show(r, asJSON, s), on.verdict(r.Findings))
		},
	}
	outFlag(c, &out, "merged-TIME")
	jsonFlag(c, &asJSON, jsonOfRun)
	failOnFlag(c, &on)
	quietFlag(c, &s.quiet)
	verboseFlag(c, &s.verbose)
	return c
}
