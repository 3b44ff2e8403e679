package main

import (
	"fmt"
	"strings"
	"time"

	"weir/internal/say"
	"weir/internal/unit"
	"weir/results/campaign"
	"weir/scenario"
)

// begin says what the campaign will be.
func (r *campaigner) begin() {
	r.say("%s, seed %d\nmeasuring into %s\n", campaignText(r.Campaign, r.plans, r.left()), r.Seed, r.dir)
	if n := len(r.Runs) - r.left(); n > 0 {
		r.say("%d of %d runs are done already\n", n, len(r.Runs))
	}
	r.say("\n")
}

// about names a run by its levels, or its repetition where there are none.
func (r *campaigner) about(run *campaign.Run) string {
	block := fmt.Sprintf("block %d of %d", run.Block, r.Repeat)
	if len(r.Factors) == 0 {
		return strings.Replace(block, "block", "repetition", 1)
	}
	return levelsText(r.Campaign, run) + ", " + block
}

// levelsText names the levels of a run: krb5, fresh.
func levelsText(c *campaign.Campaign, run *campaign.Run) string {
	var levels []string
	for _, f := range c.Factors {
		levels = append(levels, run.Levels[f.Key])
	}
	return line(strings.Join(levels, ", "))
}

// campaignText says how many runs there are and how long the next ones take.
func campaignText(c *campaign.Campaign, plans map[string]*scenario.Plan, runs int) string {
	var sum time.Duration
	about := "about"
	for _, p := range plans {
		sum += p.Time()
		if p.Jobs() > 0 {
			about = "at most"
		}
	}
	mean := sum / time.Duration(max(len(plans), 1))
	total := (mean*time.Duration(runs) + rest*time.Duration(max(runs-1, 0))).Round(time.Second)
	return fmt.Sprintf("%s: a campaign of %s, %s each: %s, %s %v",
		c.Name, say.Plural(len(plans), "variant"), say.Plural(c.Repeat, "time"), say.Plural(runs, "run"), about, unit.Duration(total))
}
