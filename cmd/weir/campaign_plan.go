package main

import (
	"fmt"
	"io"
	"strings"
	"text/tabwriter"
	"time"

	"weir/internal/unit"
	"weir/results/campaign"
	"weir/scenario"
)

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
	if _, err := fmt.Fprintf(w, "%s, seed %d\n\n", campaignText(&p.Campaign, plans, len(p.Runs)), p.Seed); err != nil {
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
		from += each + rest
	}
	return t.Flush()
}
