package analysis

import (
	"fmt"
	"math"
	"slices"
	"strings"

	"weir/internal/unit"
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
	timed         = 20    // at least one start in so many must have been planned
	missedWarn    = 0.001
	missedFail    = 0.05
)

// checkGenerator asks whether the load generator had room left. Steps beyond the best one can only warn: their load
// was more than any result needs.
func (d *data) checkGenerator(f *Findings, best int) Check {
	c := Check{Name: "generator", Status: Skipped}
	var notes []string
	var topCPU, topLate, burned float64
	what := "starts were"
	seen := false
	for s := range each(f.Curve) {
		status, reasons := judge(s)
		if status == Skipped {
			continue
		}
		seen = true
		if best >= 0 && f.load(s) > f.load(&f.Curve[best]) && status == Fail {
			status = Warn
		}
		c.Status = worse(c.Status, status)
		if status != OK {
			notes = append(notes, f.at(s)+": "+strings.Join(reasons, ", "))
		}
		topCPU, burned = max(topCPU, s.ownCPU()), max(burned, s.burned)
		if s.eachJob {
			what = "computing ended"
		}
		if s.timedStarts*timed >= s.Done && s.burned == 0 {
			topLate = max(topLate, value(s.LateP99))
		}
	}
	if !seen {
		why, remedy := "its CPU was not monitored, and it had no planned start times", "name the clients' machines in hosts"
		if len(f.Curve) > 0 && f.Curve[0].programs {
			why, remedy = "its CPU time cannot be separated from that of the programs it starts, and it had no planned start times", ""
		}
		return c.unchecked(why, remedy)
	}
	c.Detail = fmt.Sprintf("it used at most %s of the CPU of its machine", unit.Percent(topCPU))
	if burned > 0 {
		c.Detail += fmt.Sprintf(", in addition to at most %s cores that its jobs burned on purpose", unit.Significant(burned))
	}
	for h := range each(f.Curve[max(0, best)].Hosts) {
		if h.Quota > 0 && h.Quota < float64(h.Cores) {
			c.Detail += fmt.Sprintf("; control group %s allows it %.3g of %d cores", h.QuotaGroup, h.Quota, h.Cores)
		}
	}
	if topLate > 0 {
		c.Detail += fmt.Sprintf("; %s late by at most %s (p99)", what, unit.Seconds(topLate))
	}
	for i := range f.Outages {
		if what := ranOut(f.Outages[i].Error); what != "" {
			c.worsen(Fail, "operations failed because it had no %s left: use more machines, or several addresses on them", what)
			break
		}
	}
	if len(notes) > 0 {
		c.Detail += "; it may have been the limit: " + strings.Join(head(notes, 3), "; ")
	}
	return c
}

// without returns what is left of cores that all clients kept busy when what their jobs burned on purpose is taken
// off: that is load, not the generator's cost.
func (s *Step) without(cores float64) float64 {
	return cores * max(0, 1-ratio(s.burned, value(s.ClientCores)))
}

// ownCPU is the share of its machines' CPU that the generator itself used.
func (s *Step) ownCPU() float64 { return s.without(value(s.ClientCPU)) }

// clientMachines returns how many cores the watched hosts of the clients have.
func clientMachines(s *Step) float64 {
	cores := 0
	for _, h := range s.Hosts {
		if h.Role == client || h.Role == "both" || h.ClientCores != nil {
			cores += h.Cores
		}
	}
	return float64(cores)
}

// allClientsBusy reports whether a step of the open model had all its clients at work nearly all the time.
func (s *Step) allClientsBusy() bool { return s.Rate > 0 && s.ActiveClients >= 0.95*float64(s.Clients) }

// judge reports whether the generator may have limited step s, and why.
func judge(s *Step) (status string, reasons []string) {
	status = Skipped
	reach := func(x, warn, fail float64, reason string) {
		status = worse(status, OK)
		if x < warn {
			return
		}
		status = worse(status, Warn)
		if x >= fail {
			status = Fail
		}
		reasons = append(reasons, reason)
	}
	if s.ClientCPU != nil && !s.programs { // what programs use counts among what the generator's processes do
		reach(s.ownCPU(), generatorWarn, generatorFail, "used "+unit.Percent(s.ownCPU())+" of the CPU")
	}
	if s.clientMay > 0 && s.ClientCores != nil && !s.programs {
		own := s.without(*s.ClientCores)
		reach(own/s.clientMay, generatorWarn, generatorFail, fmt.Sprintf("used %.2f of the %.3g cores it may use", own, s.clientMay))
	}
	if s.throttled > 0 {
		fail := throttledFail
		if slices.ContainsFunc(s.Hosts, func(h HostFigure) bool { return h.Quota > 0 && h.ServerCores != nil }) {
			fail = math.Inf(1)
		}
		reach(s.throttled, throttledWarn, fail, "had used up its CPU quota in "+unit.Percent(s.throttled)+" of the scheduler's periods")
	}
	if n := clientMachines(s); n > 0 && s.ExternalCores > 0 && !s.programs { // real clients may cost what they cost: never more than a warning
		reach(s.ExternalCores/n, generatorWarn, math.Inf(1), fmt.Sprintf("client programs kept %.1f of %.0f cores busy", s.ExternalCores, n))
	}
	if s.allClientsBusy() { // then arrivals wait for a client, which tells nothing of the generator
		reasons = append(reasons, fmt.Sprintf("all %d clients were busy: the service completed fewer tasks than arrived, "+
			"or load.max_clients is too small", s.Clients))
		return worse(status, Warn), reasons
	}
	// a few starts after a failure say nothing; who burns waits for a core
	if s.LateP99 != nil && s.timedStarts*timed >= s.Done && s.burned == 0 {
		cycle := ratio(s.latencySeconds+s.thinkSeconds+s.computeSeconds, float64(s.Done)) // what is late matters if it is a part of it
		warn, what := max(lateWarn, 0.1*cycle), "starts late by "
		if s.eachJob {
			warn, what = max(lateJob, lateShare*cycle), "computing ended late by "
		}
		reach(*s.LateP99, warn, max(lateFail, 0.5*cycle), what+unit.Seconds(*s.LateP99)+" (p99)")
	}
	if s.Rate > 0 {
		missed := ratio(float64(s.Missed), float64(s.Missed+s.Done+s.Errors))
		reach(missed, missedWarn, missedFail, unit.Percent(missed)+" of the arrivals never started")
	}
	return status, reasons
}
