package analysis

import (
	"weir/loadtest/analysis/steps"
	"weir/loadtest/analysis/validity"
)

// challenge fills in the findings of a data challenge: its links instead of a curve. Its stages
// differ by their targets, so that they have no best one.
func (d *data) challenge(f *Findings, c *steps.Curve) {
	f.Challenge, d.overTime = d.links.Result()
	f.Facts, f.Verdict = f.Challenge.Headline, f.Challenge.Text()
	f.Headline = f.Facts[0].Text
	f.Validity = (&validity.Evidence{Run: d.run, Hosts: d.hosts, Curve: c, Best: -1}).Challenge(f.Challenge)
	f.Thresholds = stopped(d.run, (&conclusion{Findings: f, c: c}).judged(d.run.Plan.Thresholds))
	f.warnOfErrors(d.run)
	f.warnOfEvents(d.run)
	f.Curve = steps.Document(c.Steps)
}
