package validity

import (
	"math"

	"weir/internal/stats"
	"weir/loadtest/analysis/basics"
	"weir/loadtest/analysis/fact"
	"weir/loadtest/analysis/steps"
)

// blurred is the uncertainty of a worker's clock, in seconds, from which its seconds may differ
// from the seconds of the other workers.
const blurred = 0.1

// blurredHold is the uncertainty of such a clock, as a share of a step's hold, from which the
// step's figures may be wrong.
const blurredHold = 0.05

// clocks reports the accuracy to which the clocks of workers are known. If it is low, the seconds
// of different workers may not be the same seconds: that matters if the uncertainty is a large part
// of a step's hold.
func clocks(curve *steps.Curve, workers []WorkerFigure, c *Check) {
	most, doubt, known := 0.0, 0.0, 0
	hosts := map[string]bool{}
	for w := range basics.Each(workers) {
		if w.Came == nil {
			continue
		}
		hosts[w.Host] = true
		if w.Offset != nil && w.Doubt != nil {
			known++
			most, doubt = max(most, math.Abs(*w.Offset)), max(doubt, *w.Doubt)
		}
	}
	if known == 0 {
		if len(hosts) >= 2 {
			c.Note(fact.New("check.workers.clocks_unknown"), fact.New("remedy.compare_clocks"))
		}
		return
	}
	c.addFact("check.workers.clocks", "offset", most, "doubt", doubt)
	shortest := math.Inf(1)
	for _, s := range curve.Steps {
		shortest = min(shortest, s.Duration)
	}
	switch {
	case doubt > blurredHold*shortest:
		c.worsen(Warn, fact.New("effect.blurred_steps", "share", stats.Ratio(doubt, shortest)))
	case doubt > blurred:
		c.Note(fact.New("check.workers.clocks_vague", "seconds", doubt), fact.New("remedy.shorter_delays"))
	}
}
