package main

import (
	"errors"
	"fmt"
	"io"
	"strings"
	"text/tabwriter"
	"time"

	"weir/internal/unit"
	"weir/report"
	"weir/run"
	"weir/run/campaign"
	"weir/scenario"
	"weir/storage/all"
)

// isCampaign says whether scenarios ask for more than one run.
func isCampaign(scenarios []*scenario.Scenario) bool {
	sc := scenarios[0]
	return len(scenarios) > 1 || sc.Repeat*sc.Matrix.Variants() > 1 || len(sc.Matrix) > 0
}

// planCampaign plans all runs of the scenarios.
func planCampaign(scenarios []*scenario.Scenario) (*campaign.Planned, map[string]*scenario.Plan, error) {
	p, err := campaign.Plan(scenarios)
	if err != nil {
		return nil, nil, exit{exitUsage, err}
	}
	plans := map[string]*scenario.Plan{}
	for _, v := range p.Variants() {
		plan, err := p.Scenarios[v].Plan(all.Drivers())
		if err != nil {
			return nil, nil, exit{exitUsage, err}
		}
		if err := plan.Anywhere(); err != nil { // it may be resumed from another folder
			return nil, nil, err
		}
		plans[v] = plan
	}
	return p, plans, nil
}

// runCampaign does all runs of the scenarios, in a folder of its own.
func runCampaign(in run.Interrupts, scenarios []*scenario.Scenario, f runFlags, s streams) error {
	p, plans, err := planCampaign(scenarios)
	if err != nil {
		return err
	}
	return f.campaign(in, run.NewDir(f.out, p.Name, time.Now()), len(p.Runs), s, func(c run.CampaignConfig) error {
		return run.Campaign(c, &p.Campaign, plans)
	})
}

// resumeCampaign continues a campaign.
func resumeCampaign(in run.Interrupts, f runFlags, s streams) error {
	c, err := campaign.Read(f.resume)
	if err != nil {
		return err
	}
	return f.campaign(in, f.resume, len(c.Runs), s, func(c run.CampaignConfig) error { return run.ResumeCampaign(c, f.target) })
}

// campaign has do measure into dir, and returns the worst exit code of its runs.
func (f *runFlags) campaign(in run.Interrupts, dir string, runs int, s streams, do func(run.CampaignConfig) error) error {
	f.page.show(dir)
	worst := exitFine
	c := run.CampaignConfig{Config: f.config(in, dir, s)}
	c.Judge = func(number int, r run.Result, again bool) {
		if !s.quiet && !again {
			tell(s.err, "", "run %d of %d: %s", number, runs, report.Final(r.Findings))
			s.say("\n")
		}
		if !again {
			s.stream.tell(streamed{Event: "findings", Run: r.Dir, Findings: r.Findings})
		}
		if code := (exit{}); errors.As(f.failOn.verdict(r.Findings), &code) {
			worst = worst.worse(code.code)
		}
	}
	c.Conclude = func(c *campaign.Campaign, left int, failed bool) error {
		if failed {
			worst = worst.worse(exitError)
		}
		if left == len(c.Runs) {
			return nil // nothing to compare
		}
		_, err := concludeCampaign(dir, c, f.json, s)
		if cannot := (*incomparable)(nil); errors.As(err, &cannot) {
			s.tell("weir: nothing can be compared: %s\n", s.errorLine(err))
			return nil
		}
		return ignoreUnread(err)
	}
	if err := do(c); err != nil {
		return err
	}
	if worst != exitFine {
		return exit{code: worst}
	}
	return nil
}

// showCampaign says what a campaign would do: its runs, their order and time,
// and the plan of its first variant.
func showCampaign(w io.Writer, scenarios []*scenario.Scenario, asJSON bool) error {
	p, plans, err := planCampaign(scenarios)
	if err != nil {
		return err
	}
	if asJSON {
		return writeJSON(w, map[string]any{"campaign": p.Campaign, "plans": plans})
	}
	if _, err := fmt.Fprintf(w, "%s, seed %d\n\n", run.CampaignText(&p.Campaign, plans, len(p.Runs)), p.Seed); err != nil {
		return err
	}
	if err := writeRuns(w, &p.Campaign, plans); err != nil {
		return err
	}
	first := p.Variants()[0]
	if _, err := fmt.Fprintf(w, "\nVariant %s%s:\n\n", first, differs(p.Factors)); err != nil {
		return err
	}
	return plans[first].WriteText(w)
}

func differs(factors []campaign.Factor) string {
	if len(factors) == 0 {
		return ""
	}
	return ", from which the others differ as their levels say"
}

// writeRuns writes a line for each run, with the time from the campaign's
// start as far as it can be planned.
func writeRuns(w io.Writer, c *campaign.Campaign, plans map[string]*scenario.Plan) error {
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	head := "run\tblock\tvariant\t"
	for _, f := range c.Factors {
		head += line(f.Key) + "\t"
	}
	if _, err := fmt.Fprintln(t, head+"from\ttime"); err != nil {
		return err
	}
	var from time.Duration
	for i := range c.Runs {
		r := &c.Runs[i]
		cells := []string{fmt.Sprint(r.Number), fmt.Sprint(r.Block), r.Variant}
		for _, f := range c.Factors {
			cells = append(cells, line(r.Levels[f.Key]))
		}
		each := plans[r.Variant].Time()
		cells = append(cells, unit.Duration(from.Round(time.Second)).String(), unit.Duration(each).String())
		if _, err := fmt.Fprintln(t, strings.Join(cells, "\t")); err != nil {
			return err
		}
		from += each + run.Rest
	}
	return t.Flush()
}
