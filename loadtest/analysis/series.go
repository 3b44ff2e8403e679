package analysis

import (
	"time"

	"weir/loadtest/analysis/hosts"
	"weir/loadtest/analysis/limits"
	"weir/loadtest/analysis/links"
	"weir/loadtest/analysis/steps"
	"weir/loadtest/measure"
	"weir/loadtest/results"
	"weir/loadtest/scenario"
	"weir/storage"
)

// A Series contains the data of a run over time, for plots and tables.
type Series struct {
	Plan     *scenario.Plan
	About    results.About
	Start    time.Time // of the first interval
	Points   []steps.Point
	Hosts    []hosts.HostSeries
	Servers  []steps.ServerSeries   // nil: the target served all operations itself
	Backends []limits.BackendSeries // nil: fewer than two are known
	Events   []measure.Event
	Links    []links.Series // of a data challenge, in the order of its findings

	Programs []hosts.Program // that servers report

	Kinds     []storage.Kind       // of operations that succeeded at any time
	Classes   []storage.Class      // of failures that occurred
	Latencies []steps.Distribution // of the steps' measurement times, by step
	JobTimes  []steps.Distribution // wall clock times of jobs, by step
	Heat      *steps.Heat          // nil: no operation succeeded
}
