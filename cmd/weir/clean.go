package main

import (
	"errors"

	"github.com/spf13/cobra"

	"weir/loadtest/run"
)

func cleanCommand(s streams) *cobra.Command {
	var asJSON bool
	var target string
	c := command("clean RUN|CAMPAIGN", cobra.ExactArgs(1), func(c *cobra.Command, args []string) error {
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
	})
	c.PreRunE = existing("a run directory")
	flagVars{"target": &target, "json": &asJSON, "quiet/q": &s.quiet}.add(c)
	return c
}
