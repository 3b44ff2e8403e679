package main

import (
	"errors"
	"time"

	"github.com/spf13/cobra"

	"weir/loadtest/run"
)

func mergeCommand(s streams) *cobra.Command {
	var out string
	var asJSON bool
	on := failOnInvalid
	c := command("merge RUN|FOLDER ...", cobra.MinimumNArgs(1), func(_ *cobra.Command, args []string) error {
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
		if r.Findings == nil {
			return err
		}
		if err := errors.Join(err, show(r, asJSON, s)); err != nil {
			return err
		}
		return on.verdict(r.Findings)
	})
	c.PreRunE = existing("a run directory")
	flagVars{"out/o": &out, "json": &asJSON, "fail-on": &on, "quiet/q": &s.quiet, "verbose": &s.verbose}.add(c)
	return c
}
