package limits

import (
	"math"
	"slices"

	"weir/internal/stats"
	"weir/loadtest/analysis/fact"
	"weir/loadtest/analysis/hosts"
	"weir/loadtest/analysis/steps"
)

// Bounds of the check whether the generator was the limit.
const (
	generatorWarn = 0.6  // share of its machine's CPU
	generatorFail = 0.85 // at this share the generator is certainly the limit
	throttledWarn = 0.01 // share of the periods in which its CPU quota was used up
	throttledFail = 0.25 // unless a service on the same machine may have used the quota
	lateWarn      = 0.010
	lateFail      = 0.100
	lateJob       = 0.005 // of jobs: computing that is simulated by sleeping ends late
	lateShare     = 0.05  // minimum share of a request with its computing
	Timed         = 20    // at least one in so many starts must have a planned time
	missedWarn    = 0.001
	missedFail    = 0.05
)

// A GeneratorState grades the risk that the load generator limited a step.
type GeneratorState int

// States of the load generator, in the order of severity.
const (
	GeneratorUnknown GeneratorState = iota // its CPU was not watched, and it had no planned start times
	GeneratorFree
	GeneratorNear // it may have been the limit
	GeneratorFull // it was the limit
)

// clientMachines returns the number of cores of the watched hosts of the clients.
func clientMachines(s *steps.Working) float64 {
	cores := 0
	for _, h := range s.Hosts {
		if h.Role == hosts.Client || h.Role == "both" || h.ClientCores != nil {
			cores += h.Cores
		}
	}
	return float64(cores)
}

// JudgeGenerator reports whether the generator may have limited step s, and why, as GeneratorFacts does.
func JudgeGenerator(s *steps.Working) (status GeneratorState, reasons []string) {
	status, facts := GeneratorFacts(s)
	return status, fact.Texts(facts)
}

// A judgment is the state of the load generator in a step, with the reasons for it.
type judgment struct {
	state GeneratorState
	facts []fact.Fact
}

// reach compares x with the bounds of a warning and of a failure. reason is the fact for either
// case.
func (j *judgment) reach(x, warn, fail float64, reason fact.Fact) {
	j.state = max(j.state, GeneratorFree)
	if x < warn {
		return
	}
	j.state = max(j.state, GeneratorNear)
	if x >= fail {
		j.state = GeneratorFull
	}
	j.facts = append(j.facts, reason)
}

// GeneratorFacts reports whether the generator may have limited step s, and why.
func GeneratorFacts(s *steps.Working) (GeneratorState, []fact.Fact) {
	var j judgment
	j.cpu(s)
	if s.AllClientsBusy() { // then arrivals wait for a client, which does not show a slow generator
		j.state = max(j.state, GeneratorNear)
		j.facts = append(j.facts, fact.New("limit.generator.busy", "clients", s.Clients))
		return j.state, j.facts
	}
	j.late(s)
	if s.Rate > 0 {
		missed := stats.Ratio(float64(s.Missed), float64(s.Missed+s.Done+s.Errors))
		j.reach(missed, missedWarn, missedFail, fact.New("limit.generator.missed", "share", missed))
	}
	return j.state, j.facts
}

// cpu judges the use of the CPU.
func (j *judgment) cpu(s *steps.Working) {
	if s.ClientCPU != nil && !s.Programs { // programs count among the generator's processes
		j.reach(s.OwnCPU(), generatorWarn, generatorFail, fact.New("limit.generator.cpu", "share", s.OwnCPU()))
	}
	if s.ClientMay > 0 && s.ClientCores != nil && !s.Programs {
		own := s.Without(*s.ClientCores)
		j.reach(own/s.ClientMay, generatorWarn, generatorFail, fact.New("limit.generator.affinity", "used", own, "allowed", s.ClientMay))
	}
	if s.Throttled > 0 {
		fail := throttledFail
		if slices.ContainsFunc(s.Hosts, func(h hosts.HostFigure) bool { return h.Quota > 0 && h.ServerCores != nil }) {
			fail = math.Inf(1)
		}
		j.reach(s.Throttled, throttledWarn, fail, fact.New("limit.generator.throttled", "share", s.Throttled))
	}
	if n := clientMachines(s); n > 0 && s.ExternalCores > 0 && !s.Programs { // real clients have their own cost: at most a warning
		j.reach(s.ExternalCores/n, generatorWarn, math.Inf(1), fact.New("limit.generator.programs", "used", s.ExternalCores, "cores", n))
	}
}

// late judges delayed starts. A few starts after a failure are not significant; jobs that compute
// wait for a core.
func (j *judgment) late(s *steps.Working) {
	if s.LateP99 == nil || s.TimedStarts*Timed < s.Done || s.Burned != 0 {
		return
	}
	cycle := stats.Ratio(s.LatencySeconds+s.ThinkSeconds+s.ComputeSeconds, float64(s.Done)) // delays matter in relation to it
	late, fail := *s.LateP99, max(lateFail, 0.5*cycle)
	if s.EachJob {
		j.reach(late, max(lateJob, lateShare*cycle), fail, fact.New("limit.generator.computing", "late", late))
		return
	}
	j.reach(late, max(lateWarn, 0.1*cycle), fail, fact.New("limit.generator.late", "late", late))
}
