package conduct

import (
	"fmt"
	"slices"
	"time"

	"weir/internal/say"
	"weir/internal/unit"
	"weir/loadtest/challenge"
	"weir/loadtest/scenario"
)

// lastCopies is the time for which the last copies may end after the profile, before they are
// cancelled.
const lastCopies = 30 * time.Second

// Plan returns the plan of a challenge: a step for each stage of its profile.
func Plan(c *challenge.Challenge) *scenario.Plan {
	p := &scenario.Plan{Version: scenario.PlanVersion, Name: c.Name, Driver: "challenge", Model: scenario.ClosedModel, Seed: c.Seed,
		Target:       fmt.Sprintf("%s between %s", say.Plural(len(c.Links), "link"), say.Plural(len(c.Sites), "site")),
		GracefulStop: unit.Duration(lastCopies), Challenge: c, Hosts: slices.Clone(c.Hosts)}
	p.Work.Kind, p.Work.Sum = "copy", "adler32"
	if c.Verify {
		p.Work.Verify = 1
	}
	most := 0
	for i := range c.Links {
		most += c.Links[i].InFlight
	}
	for i, s := range c.Profile {
		p.Steps = append(p.Steps, scenario.Step{Number: i + 1, Clients: most, Duration: s.For})
	}
	for i := range c.Sites {
		p.Hosts = append(p.Hosts, c.Sites[i].Hosts...)
	}
	return p
}
