package main

import (
	"github.com/spf13/cobra"

	"weir/run"
	"weir/run/campaign"
	"weir/scenario"
)

func planCommand(s streams) *cobra.Command {
	var f scenarioFlags
	var part partFlags
	var asJSON bool
	c := command("plan [TARGET | SCENARIO.yaml ...]", cobra.ArbitraryArgs, func(_ *cobra.Command, args []string) error {
		defer s.working("planning").Stop()
		scenarios, err := f.selection().ReadAll(args)
		if err != nil {
			return err
		}
		if campaign.Needed(scenarios) {
			p, plans, err := run.PlanCampaign(scenarios)
			switch {
			case err != nil:
				return err
			case asJSON:
				return writeJSON(s.out, map[string]any{"campaign": p.Campaign, "plans": plans})
			}
			return run.WritePlanned(s.out, p, plans)
		}
		p, err := run.PlanPart(scenarios[0], part.part, part.begin)
		if err != nil {
			return err
		}
		if asJSON {
			return p.WriteJSON(s.out)
		}
		return p.WriteText(s.out)
	})
	f.add(c)
	part.add(c)
	flagVars{"json": &asJSON}.add(c)
	return c
}

func schemaCommand(s streams) *cobra.Command {
	return printCommand(s, "schema", cobra.NoArgs, func([]string) ([]byte, error) { return scenario.Schema() })
}
