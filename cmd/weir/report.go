package main

import (
	"github.com/spf13/cobra"

	"weir/results/campaign"
)

func reportCommand(s streams) *cobra.Command {
	var asJSON bool
	c := &cobra.Command{
		Use:   "report RUN|CAMPAIGN",
		Short: "Analyze a run directory again: table, findings.json, CSV, report.html",
		Long: `Reads what a run has measured, also one that was killed, and makes again what
can be made from it: findings.json, curve.csv, intervals.csv, hosts.csv and
report.html in the run directory, and the table on standard output. Of a
campaign's folder, it compares the runs that are there again.`,
		Example: `  weir report runs/latest
  weir report runs/latest --json | jq .optimum`,
		Args: cobra.ExactArgs(1),
		RunE: func(_ *cobra.Command, args []string) error {
			if !campaign.Is(args[0]) {
				return conclude(args[0], asJSON, s)
			}
			c, err := campaign.Read(args[0])
			if err != nil {
				return err
			}
			return concludeCampaign(args[0], c, asJSON, s)
		},
	}
	jsonFlag(c, &asJSON, jsonOfMaybe)
	return c
}
