package analysis

import (
	"time"

	"weir/loadtest/analysis/hosts"
	"weir/loadtest/analysis/limits"
	"weir/loadtest/analysis/steps"
	"weir/loadtest/measure"
	"weir/loadtest/results"
	"weir/loadtest/scenario"
	"weir/storage"
)

// A Series is a run against time, for plots and tables.
type Series struct {
	Plan     *scenario.Plan
	About    results.About
	Start    time.Time // of the first interval
	Points   []steps.Point
	Hosts    []hosts.HostSeries
	Servers  []steps.ServerSeries   // nil: the target did all itself
	Backends []limits.BackendSeries // nil: fewer than two are known
	Events   []measure.Event

	Programs []hosts.Program // that servers report

	Kinds     []storage.Kind       // of operations that ended well at any time
	Classes   []storage.Class      // of failures that there were
	Latencies []steps.Distribution // of the steps' measurement times, by step
	JobTimes  []steps.Distribution // wall clock times of jobs, by step
	Heat      *steps.Heat          // nil: no operation ended well
}
