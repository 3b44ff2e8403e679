package links

import (
	"weir/internal/cause"
	"weir/internal/stats"
	"weir/loadtest/analysis/fact"
)

// weir adds the evidence of weir itself: its machine, its limits and its controller.
func (s *subject) weir() {
	s.atCeiling()
	s.late()
	if s.smallFiles() {
		fixed, _ := s.l.sizes.fixed()
		exponent := s.l.elastic
		s.injection.For(cause.Strong, SmallFiles, func() fact.Fact { return fact.New("challenge.because.fixed", "share", fixed) })
		s.injection.For(cause.Strong, SmallFiles, func() fact.Fact { return fact.New("challenge.because.elastic", "exponent", exponent) })
	}
	s.copies()
	m := s.m
	for _, reason := range []int{largeFile, paced, idle} {
		detail, share := Pacing, m.share(reason)
		if share < 0.5 || m.wrong > m.missing()/2 { // the controller counted the bytes of wrong copies
			continue
		}
		name := string(reasons()[reason])
		if reason == largeFile || reason == paced && s.missingFile() {
			detail = LargeFiles
		}
		if (reason == paced || reason == largeFile && s.missingFile()) && s.changed() {
			detail = Start
		}
		s.injection.For(cause.Strong+cause.Weak, detail, func() fact.Fact {
			return fact.New("challenge.because.reason", "reason", name, "share", share)
		})
	}
	if share := m.share(raised); share >= 0.3 && s.changed() {
		s.injection.For(cause.Strong+cause.Weak, Start, func() fact.Fact { return fact.New("challenge.because.changed", "share", share) })
	}
	if n, of := m.mean(m.flight), m.mean(m.allowed); n < 0.7*of && of-n >= 1 &&
		m.reasons[paced] < leastHeld*m.seconds && m.share(failing) < 0.3 && s.limited() {
		s.injection.For(cause.Strong, Pacing, func() fact.Fact { return fact.New("challenge.because.fewer", "flight", n, "allowed", of) })
	}
}

// smallFiles reports whether copies take a time that does not depend on their size, while more
// copies at once bring a higher rate.
func (s *subject) smallFiles() bool {
	share, ok := s.l.sizes.fixed()
	return ok && share >= 0.7 && s.l.elasticKnown && s.l.elastic >= 0.6
}

// missingFile reports whether the missing bytes are less than one file.
func (s *subject) missingFile() bool {
	size := s.l.size()
	return size > 0 && s.m.missing() <= size && size > (1-leastRatio)*s.m.wanted
}

// changed reports whether the target rose in the minute or the one before, or copies failed before.
// It explains no long episode.
func (s *subject) changed() bool {
	if s.span.to-s.span.from > shortEpisodes {
		return false
	}
	before := s.judged(s.index, s.at-1)
	return before == nil || s.m.high > 1.01*s.m.low || before.high > 1.01*before.low || s.m.high > 1.01*before.high ||
		before.share(failing) >= 0.3
}

// atCeiling adds the evidence of the limit of all links together.
func (s *subject) atCeiling() {
	share, limit := s.m.share(ceiling), float64(s.plan.Ceiling)/8
	if share < 0.3 || limit <= 0 {
		return
	}
	sum := 0.0
	for i := range s.links {
		if m := s.judged(i, s.at); m != nil {
			sum += stats.Ratio(m.moved, float64(m.seconds))
		}
	}
	strength := cause.Strong + cause.Weak
	if sum >= atLimit*limit && share >= 0.5 {
		strength = cause.Direct
	}
	s.injection.For(strength, Ceiling, func() fact.Fact { return fact.New("challenge.because.ceiling", "rate", sum, "ceiling", limit) })
}

// crowded reports whether the cores of weir's machine are busy while most links have too little: what
// takes the cores may delay weir, and sites of this machine. While most links have their targets, busy
// cores delay nothing.
func (s *subject) crowded() bool {
	if !s.usage(s.hosts.own).starved() {
		return false
	}
	below, all := 0, 0
	for i := range s.links {
		if m := s.judged(i, s.at); m != nil {
			if all++; m.below() {
				below++
			}
		}
	}
	return 2*below > all
}

// late adds the evidence of weir's own lateness.
func (s *subject) late() {
	own, seconds := s.usage(s.hosts.own), 0.0
	busy := func() fact.Fact {
		share, _ := own.cpu.mean()
		return fact.New("challenge.because.starved", "share", share)
	}
	for at := s.span.from; at < s.span.to; at++ {
		seconds += s.sums.control.lateness(at)
	}
	if seconds <= lateShare*s.sums.minute.Seconds()*float64(s.span.to-s.span.from) {
		if s.crowded() {
			s.injection.For(cause.Weak, Late, busy)
		}
		return
	}
	why := func() fact.Fact { return fact.New("challenge.because.late", "seconds", seconds) }
	if !own.starved() {
		s.injection.For(cause.Strong+cause.Weak, Late, why)
		return
	}
	s.injection.For(cause.Direct, Late, why)
	s.injection.For(cause.Weak, Late, busy)
}

// copies adds the evidence of the limits of copies in flight.
func (s *subject) copies() {
	m := s.m
	share := m.share(inFlight)
	if share < 0.5 {
		return
	}
	flight, limit := m.mean(m.flight), s.l.limit
	detail := Copies
	if fixed, ok := s.l.sizes.fixed(); ok && fixed >= 0.7 {
		detail = SmallFiles
		s.injection.For(cause.Weak, detail, func() fact.Fact { return fact.New("challenge.because.fixed", "share", fixed) })
	}
	s.injection.For(cause.Strong+cause.Weak, detail, func() fact.Fact {
		if site, sum, most := s.siteLimit(); flight < 0.85*float64(limit) && site != "" {
			return fact.New("challenge.because.site_limit", "site", site, "flight", sum, "limit", most, "share", share)
		}
		return fact.New("challenge.because.limit", "flight", flight, "limit", limit, "share", share)
	})
	if m.verifying() >= longPhase || m.waiting() >= longWait && detail == Copies {
		s.injection.Against(cause.Strong, func() fact.Fact {
			return fact.New("challenge.because.other_phases", "share", m.verifying()+m.waiting())
		})
		return
	}
	others, slow := s.compared()
	if slow {
		why := func() fact.Fact { return fact.New("challenge.because.slow_copies", "rate", m.perCopy()) }
		s.injection.Against(cause.Strong, why)
		s.line.For(cause.Strong, Own, why)
		return
	}
	s.grows(detail, others)
}

// siteLimit returns the site whose limit of copies is reached, its copies in flight and the limit.
func (s *subject) siteLimit() (site string, flight float64, limit int) {
	for i := range s.ends {
		e, sum := &s.ends[i], 0.0
		for _, links := range [][]int{s.from[e.site], s.to[e.site]} {
			for _, o := range links {
				if m := s.judged(o, s.at); m != nil {
					sum += m.mean(m.flight)
				}
			}
		}
		if most := s.plan.Sites[e.site].InFlight; most > 0 && sum >= 0.85*float64(most) {
			return e.name, sum, most
		}
	}
	return "", 0, 0
}

// grows adds the evidence of the rate of a copy at the limit of copies. others is whether copies of
// other links at both ends are about as fast.
func (s *subject) grows(detail string, others bool) {
	rate, base, exponent := s.m.perCopy(), s.l.base, s.l.elastic
	strength := cause.Strong
	if others && s.l.verify.count > 0 { // verification is known to be short
		strength = cause.Direct
	}
	switch {
	case base > 0 && rate >= 0.7*base:
		s.injection.For(strength, detail, func() fact.Fact { return fact.New("challenge.because.as_fast", "rate", rate, "base", base) })
	case base > 0 && rate < 0.5*base:
		s.injection.Against(cause.Strong, func() fact.Fact { return fact.New("challenge.because.slower", "rate", rate, "base", base) })
	case s.l.elasticKnown && exponent >= 0.7:
		s.injection.For(cause.Strong, detail, func() fact.Fact { return fact.New("challenge.because.elastic", "exponent", exponent) })
	case s.l.elasticKnown && exponent <= 0.4:
		s.injection.Against(cause.Strong, func() fact.Fact { return fact.New("challenge.because.inelastic", "exponent", exponent) })
	}
}

// compared compares the rate of a copy with those of other links at both ends: similar reports
// whether there are such links at both ends and none has twice the rate; slow whether there are such
// links at both ends with three times the rate or more.
func (s *subject) compared() (similar, slow bool) {
	own := s.m.perCopy()
	similar, slow = true, own > 0
	for i := range s.ends {
		most := 0.0
		for _, o := range s.ends[i].other {
			if m := s.judged(o, s.at); m != nil && m.running() >= 0.5 {
				most = max(most, m.perCopy())
			}
		}
		similar = similar && most > 0 && most < faster*own
		slow = slow && most >= 1.5*faster*own
	}
	return similar, slow
}

// atService adds the evidence of the transfer service.
func (s *subject) atService() {
	m := s.m
	flight, waiting := m.mean(m.flight), m.mean(m.queued)
	share := max(m.share(queued), stats.Ratio(waiting, flight))
	if share < 0.3 || waiting < 0.5 {
		return
	}
	why := func() fact.Fact { return fact.New("challenge.because.queued", "queued", waiting, "flight", flight) }
	s.service.For(cause.Strong+cause.Weak, Queue, why)
	rate, base := m.perCopy(), s.l.base
	switch {
	case m.running() < 0.5 && m.ratio() < noBytes && m.share(failing) < someFailures:
		s.service.For(cause.Direct, Queue, func() fact.Fact { return fact.New("challenge.because.none_runs", "queued", waiting) })
	case base > 0 && rate >= 0.7*base:
		s.service.For(cause.Strong, "", func() fact.Fact { return fact.New("challenge.because.as_fast", "rate", rate, "base", base) })
	case base > 0 && rate < 0.5*base && rate > 0:
		s.service.Against(cause.Strong, func() fact.Fact { return fact.New("challenge.because.slower", "rate", rate, "base", base) })
	}
	if starts, ok := s.block().starts(); ok {
		s.service.For(cause.Strong, Starts, func() fact.Fact { return fact.New("challenge.because.starts", "rate", starts) })
	}
}
