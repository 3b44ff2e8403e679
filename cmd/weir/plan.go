package main

import (
	"time"

	"github.com/spf13/cobra"

	"weir/scenario"
	"weir/storage/all"
)

func planCommand(s streams) *cobra.Command {
	var f scenarioFlags
	var part partFlags
	var asJSON bool
	c := &cobra.Command{
		Use:   "plan [TARGET | SCENARIO.yaml ...]",
		Short: "Say what would run, without running it",
		Example: `  weir plan scenario.yaml
  weir plan scenario.yaml --set load.clients=[1,2,4] --json
  weir plan scenario.yaml --part 3/10                 # of ten machines that each run a part
  weir plan scenario.yaml --set matrix.workload.session=[kept,fresh] --repeat 5`,
		Args: cobra.ArbitraryArgs,
		RunE: func(_ *cobra.Command, args []string) error {
			defer s.working("planning").done()
			scenarios, err := f.readAll(args)
			if err != nil {
				return err
			}
			if isCampaign(scenarios) {
				return showCampaign(s.out, scenarios, asJSON)
			}
			p, err := scenarios[0].Plan(all.Drivers())
			if err != nil {
				return exit{exitUsage, err}
			}
			if p, err = part.of(p, time.Now()); err != nil {
				return err
			}
			if !asJSON {
				return p.WriteText(s.out)
			}
			return p.WriteJSON(s.out)
		},
	}
	f.add(c)
	part.add(c)
	jsonFlag(c, &asJSON, "print plan.json instead of the text; of a campaign, campaign.json and the plan of each variant")
	return c
}

func schemaCommand(s streams) *cobra.Command {
	return &cobra.Command{
		Use:   "schema",
		Short: "Print the JSON Schema of scenarios, for editors that complete and check",
		Example: `  weir schema > weir.schema.json
  # then, as the first line of a scenario:
  # yaml-language-server: $schema=weir.schema.json`,
		Args: cobra.NoArgs,
		RunE: func(*cobra.Command, []string) error {
			b, err := scenario.Schema()
			if err != nil {
				return err
			}
			_, err = s.out.Write(b)
			return err
		},
	}
}
