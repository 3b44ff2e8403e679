package validity

import (
	"strings"
	"time"

	"weir/loadtest/analysis/basics"
	"weir/loadtest/analysis/fact"
	"weir/loadtest/analysis/steps"
)

// Largest delays that the emulation itself may cause.
const (
	mostLate      = time.Millisecond // of 99% of the packets,
	mostLateShare = 0.05             // or this share of the link's round trip time
)

// checkLinks checks whether the emulated links behaved as planned. It returns nil for a run without
// emulated links.
func (d *Evidence) checkLinks(curve *steps.Curve) *Check {
	if len(d.Run.Plan.Links) == 0 {
		return nil
	}
	c := &Check{Name: "links", Status: OK}
	var tooLate []fact.Fact
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
				tooLate = append(tooLate, fact.New("check.links.late", "load", curve.At(s), "seconds", late, "link", h.Host, "most", most))
			}
		}
	}
	if c.Status == Warn {
		c.AddSome(tooLate)
		c.addFact("check.links.too_little_cpu")
	} else {
		c.addFact("check.links.on_time", "seconds", worst)
	}
	if past := linksPast(curve); len(past) > 0 {
		c.Status = Warn
		c.AddSome(past)
	}
	return c
}

// leastCarried is the share of the clients' payload that links must have carried, headers included:
// the seconds of the two counts do not begin and end at the same times.
const leastCarried = 0.7

// linksPast lists the steps in which clients moved more than the links carried: an external program
// may have been redirected to a server that it reaches without the links.
func linksPast(curve *steps.Curve) (past []fact.Fact) {
	for _, s := range curve.Steps {
		carried, any := 0.0, false
		for h := range basics.Each(s.Hosts) {
			if h.Link != nil && len(h.Link.Over) == 0 {
				any = true
				carried += h.Link.ToClients.Carried + h.Link.FromClients.Carried
			}
		}
		if any && carried < leastCarried*s.Throughput {
			past = append(past, fact.New("check.links.past", "load", curve.At(s), "carried", carried, "moved", s.Throughput))
		}
	}
	return past
}

// mostLate returns the largest permitted delay of the packets of a link, in seconds.
func (d *Evidence) mostLate(host string) float64 {
	for _, l := range d.Run.Plan.Links {
		if strings.TrimSpace("link "+l.Name) == host {
			return max(mostLate.Seconds(), mostLateShare*time.Duration(l.Spec.RTT).Seconds())
		}
	}
	return mostLate.Seconds()
}
