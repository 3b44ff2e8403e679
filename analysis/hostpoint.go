package analysis

import (
	"time"

	"weir/monitor"
)

// HostPointOf returns what a Series of a run that began at start says of s, for
// those who follow a run while it goes on.
func HostPointOf(s *monitor.Sample, start time.Time) HostPoint { return hostPoint(s, start) }
