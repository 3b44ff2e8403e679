package main

import (
	"io"

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
		return writeChecks(s.out, checks)
	})
	flagVars{"json": &asJSON}.add(c)
	return c
}

// writeChecks prints checks as a table that fits on the terminal.
func writeChecks(w io.Writer, checks []run.HostCheck) error {
	t := say.NewTable(w)
	t.Fit(columns(w))
	for _, c := range checks {
		t.Row(c.Verdict, c.What, c.Is)
		if c.Advice != "" {
			t.Row("", "", c.Advice)
		}
	}
	return t.Flush()
}
