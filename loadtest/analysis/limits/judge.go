package limits

import (
	"fmt"
	"math"
	"slices"

	"weir/internal/stats"
	"weir/internal/unit"
	"weir/loadtest/analysis/hosts"
	"weir/loadtest/analysis/steps"
)

// Bounds of the check whether the generator itself was the limit.
const (
	generatorWarn = 0.6  // share of its machine's CPU
	generatorFail = 0.85 // at this share nothing else can have been the limit
	throttledWarn = 0.01 // share of the periods in which its CPU quota was used up
	throttledFail = 0.25 // unless a service on the same machine may have used the quota
	lateWarn      = 0.010
	lateFail      = 0.100
	lateJob       = 0.005 // of jobs: computing that is slept ends late
	lateShare     = 0.05  // and that is so much of a request with its computing
	Timed         = 20    // at least one start in so many must have been planned
	missedWarn    = 0.001
	missedFail    = 0.05
)

// A GeneratorState grades the risk that the load generator limited a step.
type GeneratorState int

// States of the load generator, the gravest last.
const (
	GeneratorUnknown GeneratorState = iota // its CPU was not watched, and it had no planned start times
	GeneratorFree
	GeneratorNear // it may have been the limit
	GeneratorFull // it was the limit
)

// clientMachines returns how many cores the watched hosts of the clients have.
func clientMachines(s *steps.Working) float64 {
	cores := 0
	for _, h := range s.Hosts {
		if h.Role == hosts.Client || h.Role == "both" || h.ClientCores != nil {
			cores += h.Cores
		}
	}
	return float64(cores)
}

// JudgeGenerator reports whether the generator may have limited step s, and why.
func JudgeGenerator(s *steps.Working) (status GeneratorState, reasons []string) {
	reach := func(x, warn, fail float64, reason string) {
		status = max(status, GeneratorFree)
		if x < warn {
			return
		}
		status = max(status, GeneratorNear)
		if x >= fail {
			status = GeneratorFull
		}
		reasons = append(reasons, reason)
	}
	if s.ClientCPU != nil && !s.Programs { // programs count among the generator's processes
		reach(s.OwnCPU(), generatorWarn, generatorFail, "used "+unit.Percent(s.OwnCPU())+" of the CPU")
	}
	if s.ClientMay > 0 && s.ClientCores != nil && !s.Programs {
		own := s.Without(*s.ClientCores)
		reach(own/s.ClientMay, generatorWarn, generatorFail, fmt.Sprintf("used %.2f of the %.3g cores it may use", own, s.ClientMay))
	}
	if s.Throttled > 0 {
		fail := throttledFail
		if slices.ContainsFunc(s.Hosts, func(h hosts.HostFigure) bool { return h.Quota > 0 && h.ServerCores != nil }) {
			fail = math.Inf(1)
		}
		reach(s.Throttled, throttledWarn, fail, "had used up its CPU quota in "+unit.Percent(s.Throttled)+" of the scheduler's periods")
	}
	if n := clientMachines(s); n > 0 && s.ExternalCores > 0 && !s.Programs { // real clients have their own cost: at most a warning
		reach(s.ExternalCores/n, generatorWarn, math.Inf(1), fmt.Sprintf("client programs kept %.1f of %.0f cores busy", s.ExternalCores, n))
	}
	if s.AllClientsBusy() { // then arrivals wait for a client, which is no sign of a slow generator
		reasons = append(reasons, fmt.Sprintf("all %d clients were busy: the service completed fewer tasks than arrived, "+
			"or load.max_clients is too small", s.Clients))
		return max(status, GeneratorNear), reasons
	}
	// a few starts after a failure say nothing; who burns waits for a core
	if s.LateP99 != nil && s.TimedStarts*Timed >= s.Done && s.Burned == 0 {
		cycle := stats.Ratio(s.LatencySeconds+s.ThinkSeconds+s.ComputeSeconds, float64(s.Done)) // delays matter in relation to it
		warn, what := max(lateWarn, 0.1*cycle), "starts late by "
		if s.EachJob {
			warn, what = max(lateJob, lateShare*cycle), "computing ended late by "
		}
		reach(*s.LateP99, warn, max(lateFail, 0.5*cycle), what+unit.Seconds(*s.LateP99)+" (p99)")
	}
	if s.Rate > 0 {
		missed := stats.Ratio(float64(s.Missed), float64(s.Missed+s.Done+s.Errors))
		reach(missed, missedWarn, missedFail, unit.Percent(missed)+" of the arrivals never started")
	}
	return status, reasons
}
