package main

import (
	"github.com/spf13/cobra"
)

func reportCommand(s streams) *cobra.Command {
	var asJSON bool
	c := &cobra.Command{
		Use:   "report RUN",
		Short: "Analyze a run directory again: table, findings.json, CSV, report.html",
		Long: `Reads what a run has measured, also one that was killed, and makes again what
can be made from it: findings.json, curve.csv, intervals.csv, hosts.csv and
report.html in the run directory, and the table on standard output.`,
		Example: `  weir report runs/latest
  weir report runs/latest --json | jq .optimum`,
		Args: cobra.ExactArgs(1),
		RunE: func(_ *cobra.Command, args []string) error {
			return conclude(args[0], runFlags{json: asJSON}, s)
		},
	}
	c.Flags().BoolVar(&asJSON, "json", false, "print findings.json instead of the table")
	return c
}
