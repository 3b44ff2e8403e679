package analysis

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"weir/internal/unit"
	"weir/link"
	"weir/monitor"
)

// A LinkFigure is what an emulated link went through in one step: means over its measurement time, one entry for each way.
type LinkFigure struct {
	ToClients   WayFigure `json:"to_clients"`
	FromClients WayFigure `json:"from_clients"`
	Over        []string  `json:"over,omitempty"` // links that lead over it, if it is a trunk
	Down        float64   `json:"down_share"`     // of the seconds, by how they ended
	Cost        float64   `json:"emulation_cpu_cores"`
}

// A WayFigure is one way of a link.
type WayFigure struct {
	Carried float64  `json:"carried_bytes_per_second"` // IP headers included
	Rate    float64  `json:"rate_bits_per_second"`     // 0: without a limit
	Busy    *float64 `json:"busy"`                     // share of the time in which the wire was sending; nil: it has no limit
	busy    ranged
	Dropped float64 `json:"dropped_packets_per_second"`
	Lost    float64 `json:"lost_packets_per_second"`
	Cut     float64 `json:"cut_packets_per_second"`
	Wait    float64 `json:"wait_p99_seconds"` // mean of the seconds' 99th percentiles
	Late    float64 `json:"late_p99_seconds"` // the same; by the emulation's own fault
	LateMax float64 `json:"late_max_seconds"`
}

// A linkSum gathers one link's samples in one step.
type linkSum struct {
	ways       [2]waySum // to and from the clients
	down, cost mean
}

type waySum struct {
	carried, busy, dropped, lost, cut, wait, late mean
	spread                                        spread // of busy
	rate, lateMax                                 float64
}

func (l *linkSum) add(s *monitor.Sample, weight float64) {
	v := s.Link
	l.down.add(map[bool]float64{true: 1}[v.Down], weight)
	l.cost.add(ratio(v.Cost, s.Seconds), weight)
	for i, t := range []*link.Traffic{&v.ToClients, &v.FromClients} {
		w := &l.ways[i]
		name := []string{monitor.ToClients, monitor.FromClients}[i]
		if k := slices.IndexFunc(s.Nets, func(n monitor.Net) bool { return n.Name == name }); k >= 0 {
			w.rate = max(w.rate, s.Nets[k].Speed)
		}
		for _, x := range []struct {
			m *mean
			n int64
		}{{&w.carried, t.Bytes}, {&w.dropped, t.Dropped}, {&w.lost, t.Lost}, {&w.cut, t.Cut}} {
			x.m.add(ratio(float64(x.n), s.Seconds), weight)
		}
		w.busy.add(t.Busy, weight)
		w.spread.add(t.Busy, weight, weight >= inside*s.Seconds)
		if t.Packets > 0 {
			w.wait.add(t.Wait.P99, weight)
			w.late.add(t.Late.P99, weight)
		}
		w.lateMax = max(w.lateMax, t.Late.Max)
	}
}

func (l *linkSum) figure() *LinkFigure {
	f := &LinkFigure{Down: l.down.or0(), Cost: l.cost.or0()}
	for i, to := range []*WayFigure{&f.ToClients, &f.FromClients} {
		w := &l.ways[i]
		*to = WayFigure{
			Carried: w.carried.or0(), Rate: w.rate, Dropped: w.dropped.or0(), Lost: w.lost.or0(), Cut: w.cut.or0(),
			Wait: w.wait.or0(), Late: w.late.or0(), LateMax: w.lateMax,
		}
		if w.rate > 0 {
			to.Busy = w.busy.value()
			to.busy, _ = w.spread.interval()
		}
	}
	return f
}

// share is that of the time in which the wire was sending.
func (w *WayFigure) share() ranged {
	if w.busy == (ranged{}) {
		return ranged{mean: value(w.Busy)}
	}
	return w.busy
}

// spare is the part of the throughput that the emulated links leave to gain: 1 without links, 0 if they were full all the time. Of
// several links the emptiest counts.
func (s *Step) spare() float64 {
	spare := -1.0
	for _, h := range s.Hosts {
		if h.Link != nil && len(h.Link.Over) == 0 {
			spare = max(spare, 1-max(value(h.Link.ToClients.Busy), value(h.Link.FromClients.Busy)))
		}
	}
	if spare < 0 {
		return 1
	}
	return spare
}

// linkFull reports whether the links leave too little to gain for it to be seen.
func (s *Step) linkFull() bool { return s.spare() < 0.03 }

// what is how the link is called in sentences.
func (f *LinkFigure) what() string {
	if len(f.Over) == 0 {
		return "link"
	}
	return "trunk of " + strings.Join(f.Over, ", ")
}

// linkUses are the two ways of an emulated link.
func linkUses(h *HostFigure) []ResourceUsage {
	var all []ResourceUsage
	for i, w := range []*WayFigure{&h.Link.ToClients, &h.Link.FromClients} {
		way := []string{monitor.ToClients, monitor.FromClients}[i]
		switch {
		case w.Busy != nil && *w.Busy >= 0.001:
			u := use(ResourceNetwork, h, w.share(), "the %s %s was sending for %s of the time: %s, headers included, of %s", h.Link.what(), way,
				unit.Percent(w.share().mean), unit.Bits(w.Carried), unit.Bits(w.Rate/8))
			if w.Dropped > 0 {
				u.Detail += fmt.Sprintf("; %s packets/s were dropped at its full queue", unit.Count(w.Dropped))
				// it is idle between bursts, or before and after the load, but not enough
				u.reached = *u.Low >= boundOf(ResourceNetwork).holds-doubtful && u.holds
			}
			all = append(all, u)
		case w.Busy == nil && w.Carried >= leastTraffic:
			all = append(all, amount(ResourceNetwork, h, "it carried %s %s; it has no rate limit", unit.Bits(w.Carried), way))
		}
	}
	if len(all) == 2 && shareOf(all[1].Share) > shareOf(all[0].Share) { // the fuller way represents the link
		all[0] = all[1]
	}
	return all[:min(len(all), 1)]
}

// Bounds of the emulation's own fault.
const (
	mostLate      = time.Millisecond // of 99% of the packets,
	mostLateShare = 0.05             // or this share of the link's round trip time
)

// checkLinks asks whether the emulated links were what the plan wants. It returns nil for a run without.
func (d *data) checkLinks(f *Findings) *Check {
	if len(d.plan.Links) == 0 {
		return nil
	}
	c := &Check{Name: "links", Status: OK}
	var notes []string
	worst := 0.0
	for s := range each(f.Curve) {
		for h := range each(s.Hosts) {
			if h.Link == nil {
				continue
			}
			late := max(h.Link.ToClients.Late, h.Link.FromClients.Late)
			worst = max(worst, late)
			if most := d.mostLate(h.Host); late > most {
				c.Status = Warn
				notes = append(notes, fmt.Sprintf("at %s packets were %s late on %s (p99); at most %s is acceptable", f.at(s), unit.Seconds(late),
					h.Host, unit.Seconds(most)))
			}
		}
	}
	past := linksPast(f)
	if c.Status == Warn {
		notes = append(head(notes, 3), "the links were not as specified: the emulation had too little CPU")
	} else {
		notes = append(notes, fmt.Sprintf("the emulation delayed packets by at most %s (p99) more than specified", unit.Seconds(worst)))
	}
	if len(past) > 0 {
		c.Status = Warn
		notes = append(notes, head(past, 3)...)
	}
	c.Detail = strings.Join(notes, "; ")
	return c
}

// leastCarried is the share of the clients' payload that links must have carried, headers included: beginnings and ends of
// seconds differ.
const leastCarried = 0.7

// linksPast says, a sentence for each step, where clients moved more than the links carried: an external program may have
// been redirected to a server that it reaches without them.
func linksPast(f *Findings) (notes []string) {
	for s := range each(f.Curve) {
		carried, any := 0.0, false
		for h := range each(s.Hosts) {
			if h.Link != nil && len(h.Link.Over) == 0 {
				any = true
				carried += h.Link.ToClients.Carried + h.Link.FromClients.Carried
			}
		}
		if any && carried < leastCarried*s.Throughput {
			notes = append(notes, fmt.Sprintf("at %s the links carried %s and the clients moved %s: the rest went past the links", f.at(s),
				unit.Bits(carried), unit.Bits(s.Throughput)))
		}
	}
	return notes
}

// mostLate is what the packets of a link may be late by.
func (d *data) mostLate(host string) float64 {
	for _, l := range d.plan.Links {
		if strings.TrimSpace("link "+l.Name) == host {
			return max(mostLate.Seconds(), mostLateShare*time.Duration(l.Spec.RTT).Seconds())
		}
	}
	return mostLate.Seconds()
}
