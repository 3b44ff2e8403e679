package links

import (
	"weir/internal/cause"
	"weir/internal/stats"
	"weir/loadtest/analysis/fact"
	"weir/storage"
)

// Limits of the evidence of failures.
const (
	someFailures = 0.05 // share of the time that the controller waits after them, below which there are hardly any
	decisive     = 0.3  // share of failed copies, or of that time, from which they can explain a minute
	mostOf       = 0.8
	noBytes      = 0.05 // of the target's bytes
)

// failures are the rules for copies that fail and for silence.
type failures struct{ s *subject }

// failing adds the evidence of failed copies.
func (f failures) failing() {
	s := f.s
	f.silent()
	f.interrupted()
	if at, ok := f.waitsSince(); ok {
		defer func(m *minute, at int) { s.m, s.at = m, at }(s.m, s.at)
		s.m, s.at = &s.l.minutes[at], at
	}
	m := s.m
	all := m.failures() + m.expired
	if max(m.failedShare(), m.share(failing)) < decisive {
		return
	}
	f.expiredOrDenied(all)
	for i := range s.ends {
		e := &s.ends[i]
		n := m.at[e.role]
		switch {
		case n > 0 && float64(n) >= mostOf*float64(all):
			f.failsAt(e, n)
		case float64(m.at[atUnknown]) >= mostOf*float64(all) && all > 0 && f.pattern(e, false):
			e.h.For(cause.Strong+cause.Weak, f.failureDetail(e, m.at[atUnknown]), func() fact.Fact {
				return fact.New("challenge.because.pattern", "site", e.name)
			})
		}
	}
}

// waitsSince returns the minute of the last failures, if the controller waits after them and no copy
// has ended since.
func (f failures) waitsSince() (at int, ok bool) {
	s := f.s
	if s.m.share(failing) < 0.5 {
		return 0, false
	}
	for at = s.at; at >= 0; at-- {
		m := &s.l.minutes[at]
		if m.failures()+m.expired > 0 {
			return at, at < s.at
		}
		if m.done > 0 {
			return 0, false
		}
	}
	return 0, false
}

// expiredOrDenied adds the evidence of credentials. all is the number of failed copies.
func (f failures) expiredOrDenied(all int32) {
	s := f.s
	m := s.m
	if n := m.expired; n > 0 && 2*n >= all {
		s.credentials.For(cause.Direct, Expired, func() fact.Fact { return fact.New("challenge.because.expired", "failed", int(n)) })
	}
	if n := m.denied; n > 0 && 2*n >= all {
		strength := cause.Weak
		if m.at[atUnknown] >= n {
			strength = cause.Strong + cause.Weak
		}
		s.credentials.For(strength, Denied, func() fact.Fact { return fact.New("challenge.because.denied", "failed", int(n)) })
	}
}

// failsAt adds the evidence of n copies that failed at a site.
func (f failures) failsAt(e *end, n int32) {
	s := f.s
	strength := cause.Strong + cause.Weak
	if n < 2 && s.m.share(failing) < 0.5 { // one failure is no pattern
		strength = cause.Weak
	}
	ended, class := int(s.m.done)+int(s.m.failures()), s.m.classes[e.role].String()
	e.h.For(strength, f.failureDetail(e, n), func() fact.Fact {
		return fact.New("challenge.because.failures", "site", e.name, "failed", int(n), "ended", ended, "class", class)
	})
	if strength > cause.Weak && f.pattern(e, true) {
		e.h.For(cause.Direct, "", func() fact.Fact { return fact.New("challenge.because.pattern", "site", e.name) })
	}
}

// failureDetail names the way in which copies fail at a site.
func (f failures) failureDetail(e *end, n int32) string {
	s := f.s
	m := s.m
	most := func(k int32) bool { return float64(k) >= mostOf*float64(n) }
	switch class := m.classes[e.role]; {
	case most(m.unproven):
		return Checksum
	case most(m.lost) && m.failedShare() > 0.5:
		return Away
	case e.role == atDest && most(m.full) && m.failedShare() > 0.5:
		return Full
	case class == storage.Denied || class == storage.Busy || class == storage.Refused:
		return Refuses
	}
	return Fails
}

// pattern reports whether the failures belong to a site: copies of another link of the site fail
// as well, and those of the other site's other links do not. there is whether the failures must
// have been reported as those of the site.
func (f failures) pattern(e *end, there bool) bool {
	s := f.s
	own, fail := s.m.failedShare(), 0
	partner := &s.ends[1-e.role]
	for _, i := range e.other {
		m := s.judged(i, s.at)
		if m == nil || m.failedShare() < 0.25*own {
			continue
		}
		if n := m.at[e.role]; !there || n > 0 && float64(n) >= 0.5*float64(m.failures()) {
			fail++
		}
	}
	well := 0
	for _, i := range partner.other {
		switch m := s.judged(i, s.at); {
		case m == nil || m.done+m.failed == 0:
		case m.failedShare() < 0.25*own && (i < 0 || s.links[i].source != e.site && s.links[i].dest != e.site):
			well++
		}
	}
	return fail > 0 && well > 0
}

// silent adds the evidence of a site without any bytes on all of its links, while the other site of
// the link carries bytes elsewhere.
func (f failures) silent() {
	s := f.s
	if s.m.ratio() > noBytes || f.nowhere() || s.m.running() < 0.5 && s.m.failures() == 0 {
		return
	}
	// copies that take long may have moved bytes that the service reports at their end
	lumps := s.l.whole.count == 0 || s.l.whole.quantile(0.5) > s.sums.minute.Seconds()/2
	for i := range s.ends {
		e, partner := &s.ends[i], &s.ends[1-i]
		here, moving := f.carrying(e.other, e.away)
		there, elsewhere := f.carrying(partner.other, partner.away)
		if moving == 0 && here > 0 && elsewhere > 0 && there > 0 {
			strength := cause.Strong
			if here > 1 && !lumps && !s.crowded() {
				strength = cause.Direct
			}
			n := here
			e.h.For(strength, Away, func() fact.Fact {
				return fact.New("challenge.because.silent", "site", e.name, "links", n, "partner", partner.name, "moving", elsewhere)
			})
		}
	}
}

// nowhere reports whether no link carries bytes: the reason is not at a site then.
func (f failures) nowhere() bool {
	s := f.s
	for i := range s.links {
		if m := s.judged(i, s.at); m != nil && m.ratio() > noBytes {
			return false
		}
	}
	return true
}

// carrying returns the number of links with a target in the minute, without the subject, and of
// those that carry bytes.
func (f failures) carrying(groups ...[]int) (all, moving int) {
	s := f.s
	for _, links := range groups {
		for _, i := range links {
			m := s.judged(i, s.at)
			if m == nil || i == s.index {
				continue
			}
			if all++; stats.Ratio(m.moved, m.wanted) > noBytes {
				moving++
			}
		}
	}
	return all, moving
}
