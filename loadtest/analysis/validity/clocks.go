package validity

import (
	"fmt"
	"math"

	"weir/internal/stats"
	"weir/internal/unit"
	"weir/loadtest/analysis/basics"
	"weir/loadtest/analysis/steps"
)

// blurred is how far the clock of a worker may be off before its seconds are not those of the others.
const blurred = 0.1

// blurredHold is the share of a step's hold that such a clock must be off by before the step's figures are wrong.
const blurredHold = 0.05

// clocks tells how well the clocks of workers are known. Seconds of workers whose clocks are further apart than is
// known are not the same ones: that matters if it is much of a step's hold.
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
			c.Note("the clocks of the machines of the workers, which were not compared", "run the workers under one controller, "+
				"or synchronize the clocks by NTP")
		}
		return
	}
	c.addDetail("their clocks were up to %s off, known within %s", unit.Seconds(most), unit.Seconds(doubt))
	shortest := math.Inf(1)
	for _, s := range curve.Steps {
		shortest = min(shortest, s.Duration)
	}
	switch {
	case doubt > blurredHold*shortest:
		c.worsen(Warn, "up to %s of the shortest step may belong to another load", unit.Percent(stats.Ratio(doubt, shortest)))
	case doubt > blurred:
		c.Note(fmt.Sprintf("the seconds of different workers against each other: their clocks are known only within %s", unit.Seconds(doubt)),
			"use a network or a controller with shorter delays")
	}
}
