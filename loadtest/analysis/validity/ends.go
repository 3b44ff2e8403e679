package validity

import (
	"fmt"
	"math"

	"weir/internal/say"
	"weir/internal/stats"
	"weir/internal/unit"
	"weir/loadtest/analysis/transfers"
)

// checkEnds compares what movers counted with what the endpoints at the other ends did, where their samples cover the
// time.
func checkEnds(s *transfers.Sums) Check {
	c := Check{Name: "both ends agree", Status: Skipped}
	moved, there, silent := s.Agreement()
	if moved == 0 {
		c.Detail = "no endpoint of an agent transferred bytes while its host was sampled"
		return c
	}
	off := stats.Ratio(float64(there-moved), float64(moved))
	c.Detail = fmt.Sprintf("movers counted %s, the endpoints at the other ends %s: %+.2f%%", unit.Bytes(float64(moved)),
		unit.Bytes(float64(there)), 100*off)
	if silent > 0 {
		c.Detail += fmt.Sprintf("; not compared where a site sent no samples (%s)", say.Times(int64(silent)))
	}
	switch off = math.Abs(off); {
	case off <= bytesOK:
		c.Status = OK
	case off <= bytesWarn:
		c.Status = Warn
	default:
		c.Status = Fail
	}
	return c
}
