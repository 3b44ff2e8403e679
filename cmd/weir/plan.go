package main

import (
	"time"

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
		scenarios, err := f.readAll(args)
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
		p, err := planOf(scenarios[0])
		if err != nil {
			return err
		}
		if p, err = part.of(p, time.Now()); err != nil {
			return err
		}
		if asJSON {
			return p.WriteJSON(s.out)
		}
		return p.WriteText(s.out)
	})
	f.add(c)
	part.add(c)
	jsonFlag(c, &asJSON, "print plan.json instead of the text; of a campaign, campaign.json and the plan of each variant")
	return c
}

func schemaCommand(s streams) *cobra.Command {
	return command("schema", cobra.NoArgs, func(*cobra.Command, []string) error {
		b, err := scenario.Schema()
		if err != nil {
			return err
		}
		_, err = s.out.Write(b)
		return err
	})
}
