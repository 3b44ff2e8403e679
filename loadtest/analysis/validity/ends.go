package validity

import (
	"math"

	"weir/internal/stats"
	"weir/loadtest/analysis/fact"
	"weir/loadtest/analysis/transfers"
)

// checkEnds compares the bytes that movers counted with the bytes that the endpoints at the other
// ends counted, if their samples cover the time.
func checkEnds(s *transfers.Sums) Check {
	c := Check{Name: "both ends agree", Status: Skipped}
	moved, there, silent := s.Agreement()
	if moved == 0 {
		return c.Skip(fact.New("check.bytes.no_endpoint"))
	}
	off := stats.Ratio(float64(there-moved), float64(moved))
	c.addFact("check.bytes.movers", "moved", moved, "there", there, "difference", off)
	if silent > 0 {
		c.addFact("check.bytes.silent_sites", "times", silent)
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
