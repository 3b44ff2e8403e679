package validity

import (
	"fmt"
	"strings"
	"time"

	"weir/internal/unit"
	"weir/loadtest/analysis/basics"
	"weir/loadtest/analysis/steps"
)

// Bounds of the emulation's own fault.
const (
	mostLate      = time.Millisecond // of 99% of the packets,
	mostLateShare = 0.05             // or this share of the link's round trip time
)

// checkLinks asks whether the emulated links were what the plan wants. It returns nil for a run without.
func (d *Evidence) checkLinks(curve *steps.Curve) *Check {
	if len(d.Run.Plan.Links) == 0 {
		return nil
	}
	c := &Check{Name: "links", Status: OK}
	var notes []string
	worst := 0.0
	for _, s := range curve.Steps {
		for h := range basics.Each(s.Hosts) {
			if h.Link == nil {
				continue
			}
			late := max(h.Link.ToClients.Late, h.Link.FromClients.Late)
			worst = max(worst, late)
			if most := d.mostLate(h.Host); late > most {
				c.Status = Warn
				notes = append(notes, fmt.Sprintf("at %s packets were %s late on %s (p99); at most %s is acceptable", curve.At(s), unit.Seconds(late),
					h.Host, unit.Seconds(most)))
			}
		}
	}
	past := linksPast(curve)
	if c.Status == Warn {
		notes = append(basics.Head(notes, 3), "the links were not as specified: the emulation had too little CPU")
	} else {
		notes = append(notes, fmt.Sprintf("the emulation delayed packets by at most %s (p99) more than specified", unit.Seconds(worst)))
	}
	if len(past) > 0 {
		c.Status = Warn
		notes = append(notes, basics.Head(past, 3)...)
	}
	c.Detail = strings.Join(notes, "; ")
	return c
}

// leastCarried is the share of the clients' payload that links must have carried, headers included: beginnings and ends of
// seconds differ.
const leastCarried = 0.7

// linksPast says, a sentence for each step, where clients moved more than the links carried: an external program may have
// been redirected to a server that it reaches without them.
func linksPast(curve *steps.Curve) (notes []string) {
	for _, s := range curve.Steps {
		carried, any := 0.0, false
		for h := range basics.Each(s.Hosts) {
			if h.Link != nil && len(h.Link.Over) == 0 {
				any = true
				carried += h.Link.ToClients.Carried + h.Link.FromClients.Carried
			}
		}
		if any && carried < leastCarried*s.Throughput {
			notes = append(notes, fmt.Sprintf("at %s the links carried %s and the clients moved %s: the rest went past the links", curve.At(s),
				unit.Bits(carried), unit.Bits(s.Throughput)))
		}
	}
	return notes
}

// mostLate is what the packets of a link may be late by.
func (d *Evidence) mostLate(host string) float64 {
	for _, l := range d.Run.Plan.Links {
		if strings.TrimSpace("link "+l.Name) == host {
			return max(mostLate.Seconds(), mostLateShare*time.Duration(l.Spec.RTT).Seconds())
		}
	}
	return mostLate.Seconds()
}
