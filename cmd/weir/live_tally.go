package main

import (
	"fmt"

	"weir/internal/unit"
	"weir/measure"
)

func perSecond(x float64) string { return fmt.Sprintf("%s/s", unit.Count(x)) }

// quantile returns a quantile of the latency in w, "-" where no operation succeeded.
func quantile(w *measure.Window, q float64) string {
	if w.Done == 0 {
		return "-"
	}
	return unit.Seconds(w.Latency.Quantile(q))
}
