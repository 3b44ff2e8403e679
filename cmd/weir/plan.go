package main

import (
	"maps"
	"slices"
	"time"

	"github.com/spf13/cobra"

	"weir/loadtest/analysis/campaign"
	"weir/loadtest/challenge"
	"weir/loadtest/run"
	"weir/loadtest/scenario"
)

func planCommand(s streams) *cobra.Command {
	var f scenarioFlags
	var asJSON bool
	c := command("plan [TARGET | SCENARIO.yaml ...]", cobra.ArbitraryArgs, func(_ *cobra.Command, args []string) error {
		defer s.working("planning").Stop()
		if isChallenge(args) {
			c, err := f.challenge(args[0])
			if err != nil {
				return err
			}
			return s.planChallenge(c, asJSON)
		}
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
			if err := run.WritePlanned(s.out, p, plans); err != nil {
				return err
			}
			s.warnOfCredentials(plans[p.Variants()[0]], plans.Time(p))
			return run.WriteQuota(s.out, slices.Collect(maps.Values(plans))...)
		}
		p, err := run.Plan(scenarios[0])
		if err != nil {
			return err
		}
		if asJSON {
			return p.WriteJSON(s.out)
		}
		if err := p.WriteText(s.out); err != nil {
			return err
		}
		s.warnOfCredentials(p, p.Time())
		return run.WriteQuota(s.out, p)
	})
	f.add(c)
	flagVars{"json": &asJSON}.add(c)
	return c
}

// warnOfCredentials warns of credentials of p that expire before the end of a load that begins now
// and takes that long.
func (s streams) warnOfCredentials(p *scenario.Plan, load time.Duration) {
	for _, text := range run.CredentialWarnings(p, load) {
		s.printErr("warning: %s\n", text)
	}
}

func schemaCommand(s streams) *cobra.Command {
	var ofChallenge bool
	c := printCommand(s, "schema", cobra.NoArgs, func([]string) ([]byte, error) {
		if ofChallenge {
			return challenge.Schema()
		}
		return scenario.Schema()
	})
	flagVars{"challenge": &ofChallenge}.add(c)
	return c
}
