package main

import (
	"github.com/spf13/cobra"

	"weir/internal/say"
	"weir/loadtest/run"
)

func doctorCommand(s streams) *cobra.Command {
	var asJSON bool
	c := command("doctor", cobra.NoArgs, func(c *cobra.Command, _ []string) error {
		checks, err := run.CheckHost(c.Context())
		if err != nil {
			return err
		}
		if asJSON {
			return writeJSON(s.out, map[string]any{"checks": checks})
		}
		t := say.NewTable(s.out)
		for _, f := range checks {
			t.Row(f.Verdict, f.What, f.Is, f.Advice)
		}
		return t.Flush()
	})
	flagVars{"json": &asJSON}.add(c)
	return c
}
