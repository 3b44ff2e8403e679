package links

import (
	"math"
)

// Limits of minutes that are judged together.
const (
	mostTogether  = 60  // minutes
	similarRatio  = 0.2 // largest difference of a minute's share of the target from that of the minutes before
	shortEpisodes = 2   // minutes: a change of the target can explain as many
)

// A span is a sequence of minutes from one index up to, but without, another one.
type span struct{ from, to int }

// together returns the spans of the minutes of a link below its target that are judged together:
// nothing but a part that carries bytes may be the limit, and neither the share of the target nor
// the other links of both sites that are below their targets differ much. Other minutes are spans
// of their own.
func (j *judge) together(link int) (all []span) {
	var moved, wanted float64
	for at := range j.links[link].minutes {
		m := j.judged(link, at)
		if m == nil || !m.below() {
			continue
		}
		if n := len(all) - 1; n >= 0 && all[n].to >= at-1 && at-all[n].from < mostTogether && j.similar(link, all[n].to-1, at) &&
			math.Abs(m.ratio()-moved/wanted) <= similarRatio {
			all[n].to = at + 1
			moved, wanted = moved+m.moved, wanted+m.wanted
			continue
		}
		all = append(all, span{at, at + 1})
		moved, wanted = m.moved, m.wanted
	}
	return all
}

// similar reports whether two minutes of a link below its target may have the same cause.
func (j *judge) similar(link, before, now int) bool {
	a, b := j.judged(link, before), j.judged(link, now)
	for _, m := range []*minute{a, b} {
		if !m.open() || m.ratio() <= noBytes || max(m.failedShare(), m.share(failing)) >= decisive {
			return false
		}
	}
	if (a.share(inFlight) >= 0.5) != (b.share(inFlight) >= 0.5) {
		return false
	}
	changed, all := 0, 0
	for _, links := range [][]int{j.from[j.links[link].source], j.to[j.links[link].dest]} {
		for _, i := range links {
			x, y := j.judged(i, before), j.judged(i, now)
			if i == link || x == nil || y == nil {
				continue
			}
			if all++; x.below() != y.below() {
				changed++
			}
		}
	}
	return 2*changed <= all
}

// pooled returns the sums of the judged minutes of a link in a span, or nil if fewer than half of
// them were judged. below leaves out the minutes at the target.
func (j *judge) pooled(link int, of span, below bool) *minute {
	if of.to == of.from+1 {
		return j.judged(link, of.from)
	}
	sum, n := minute{}, 0
	for at := of.from; at < of.to; at++ {
		if m := j.judged(link, at); m != nil && (m.below() || !below) {
			sum.join(m)
			n++
		}
	}
	if !below && 2*n < of.to-of.from {
		return nil
	}
	return &sum
}

// join adds the sums of a later minute.
func (m *minute) join(o *minute) {
	if m.seconds == 0 {
		m.low, m.high = o.low, o.high
	}
	m.low, m.high, m.stage = min(m.low, o.low), max(m.high, o.high), o.stage
	m.seconds, m.wanted, m.moved, m.wrong = m.seconds+o.seconds, m.wanted+o.wanted, m.moved+o.moved, m.wrong+o.wrong
	m.flight, m.queued, m.allowed, m.runs = m.flight+o.flight, m.queued+o.queued, m.allowed+o.allowed, m.runs+o.runs
	m.started, m.done, m.failed = m.started+o.started, m.done+o.done, m.failed+o.failed
	for i, seconds := range o.reasons {
		m.reasons[i] += seconds
	}
	for i, p := range o.part {
		m.part[i].seconds, m.part[i].moved, m.part[i].running = m.part[i].seconds+p.seconds, m.part[i].moved+p.moved, m.part[i].running+p.running
	}
	m.moving, m.ended = m.moving+o.moving, m.ended+o.ended
	m.arrived, m.whole, m.unproven = m.arrived+o.arrived, m.whole+o.whole, m.unproven+o.unproven
	m.queue, m.transfer, m.verify = m.queue+o.queue, m.transfer+o.transfer, m.verify+o.verify
	for i, n := range o.at {
		if m.at[i] += n; n > 0 {
			m.classes[i] = o.classes[i]
		}
	}
	m.expired, m.denied, m.lost, m.full = m.expired+o.expired, m.denied+o.denied, m.lost+o.lost, m.full+o.full
}

// judged returns a minute of a link. In the minutes of the subject, that is their sum.
func (s *subject) judged(link, at int) *minute {
	if at != s.at {
		return s.judge.judged(link, at)
	}
	if link == s.index {
		return s.m
	}
	m, known := s.others[link]
	if !known {
		m = s.pooled(link, s.span, false)
		s.others[link] = m
	}
	return m
}

// usage returns the sums of the samples of hosts in the minutes of the subject, or nil if there are
// none.
func (s *subject) usage(all []usage) *usage {
	var sum usage
	for i := s.span.from; i < min(s.span.to, len(all)); i++ {
		sum.join(&all[i])
	}
	if sum.seconds == 0 {
		return nil
	}
	return &sum
}
