package analysis

import (
	"fmt"
	"math"
	"strings"

	"weir/internal/unit"
)

// Bounds of the check whether the generator itself was the limit.
const (
	generatorWarn = 0.6  // share of its machine's CPU
	generatorFail = 0.85 // at this share nothing else can have been the limit
	lateWarn      = 0.010
	lateFail      = 0.100
	timed         = 20 // at least one start in so many must have been planned
	missedWarn    = 0.001
	missedFail    = 0.05
)

// checkGenerator asks whether the load generator had room left. Steps beyond
// the best one can only warn: their load was more than any result needs.
func (d *data) checkGenerator(f *Findings, best int) Check {
	c := Check{Name: "generator", Status: Skipped}
	var notes []string
	var topCPU, topLate float64
	seen := false
	for i := range f.Curve {
		s := &f.Curve[i]
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
		topCPU = max(topCPU, value(s.ClientCPU))
		if s.timedStarts*timed >= s.Done {
			topLate = max(topLate, value(s.LateP99))
		}
	}
	if !seen {
		c.Detail = "its CPU was not watched and no starts were timed"
		return c
	}
	c.Detail = fmt.Sprintf("it used at most %s of its machine's CPU", unit.Percent(topCPU))
	if topLate > 0 {
		c.Detail += fmt.Sprintf("; starts were late by at most %s (p99)", unit.Seconds(topLate))
	}
	if len(notes) > 0 {
		c.Detail += "; it may have been the limit: " + strings.Join(head(notes, 3), "; ")
	}
	return c
}

func value(p *float64) float64 {
	if p == nil {
		return 0
	}
	return *p
}

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

// crowded tells whether a step of the open model had all its clients at work
// nearly all the time.
func (s *Step) crowded() bool { return s.Rate > 0 && s.ActiveClients >= 0.95*float64(s.Clients) }

// judge tells whether the generator may have limited step s, and why.
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
	if s.ClientCPU != nil {
		reach(*s.ClientCPU, generatorWarn, generatorFail, "used "+unit.Percent(*s.ClientCPU)+" of the CPU")
	}
	if s.clientMay > 0 && s.ClientCores != nil {
		reach(*s.ClientCores/s.clientMay, generatorWarn, generatorFail, fmt.Sprintf("used %.2f of the %.0f cores that it may", *s.ClientCores, s.clientMay))
	}
	if n := clientMachines(s); n > 0 && s.ExternalCores > 0 { // real clients may cost what they cost: never more than a warning
		reach(s.ExternalCores/n, generatorWarn, math.Inf(1), fmt.Sprintf("client programs kept %.1f of %.0f cores busy", s.ExternalCores, n))
	}
	if s.crowded() { // then arrivals wait for a client, which tells nothing of the generator
		reasons = append(reasons, fmt.Sprintf("all of the at most %d clients were busy: the service took fewer tasks than arrived, or load.max_clients is too small", s.Clients))
		return worse(status, Warn), reasons
	}
	if s.LateP99 != nil && s.timedStarts*timed >= s.Done { // a few starts after a failure say nothing
		cycle := ratio(s.latencySeconds+s.thinkSeconds, float64(s.Done)) // late starts matter if they are a part of it
		warn, fail := max(lateWarn, 0.1*cycle), max(lateFail, 0.5*cycle)
		reach(*s.LateP99, warn, fail, "starts late by "+unit.Seconds(*s.LateP99)+" (p99)")
	}
	if s.Rate > 0 {
		missed := ratio(float64(s.Missed), float64(s.Missed+s.Done+s.Errors))
		reach(missed, missedWarn, missedFail, unit.Percent(missed)+" of the arrivals never started")
	}
	return status, reasons
}
