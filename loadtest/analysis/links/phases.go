package links

import (
	"weir/internal/cause"
	"weir/internal/stats"
	"weir/loadtest/analysis/fact"
)

// Limits of the evidence of the phases of copies.
const (
	longPhase = 0.35 // share of the time of copies from which verification is long
	longWait  = 0.4  // the same of the time before the first byte
	shortWait = 0.2
	asLong    = 0.5 // of the seconds of another link's phase: both phases are about as long
)

// phases adds the evidence of the phases of copies: waiting for a site that carries few copies at
// once, verification, and costs of a copy that do not depend on its size.
func (s *subject) phases() {
	if s.unproven() || s.m.ended < 3 || !s.limited() {
		return
	}
	strength := cause.Strong
	if s.sums.late(s.at) || s.crowded() { // weir measures the phases, and may delay them itself
		strength = cause.Weak
	}
	s.verifying(strength)
	for i := range s.ends {
		s.waiting(&s.ends[i], strength)
	}
}

// verifying adds the evidence of a long verification. It belongs to the destination, unless only
// links of the source have it.
func (s *subject) verifying(strength cause.Strength) {
	m, share := s.m, s.m.verifying()
	if share < longPhase || m.share(inFlight) < 0.5 && m.verification() < faster*s.l.usual {
		return // of short copies it is a large part, and no longer than in the minutes at the target
	}
	e, why := s.verifier(), func() fact.Fact { return fact.New("challenge.because.verifying", "share", share) }
	detail := Checksum
	if s.slowBytes() { // the site is slow in all that it does
		detail = ""
	}
	e.h.For(strength, detail, why)
	if strength == cause.Strong && m.moved >= leastRatio*m.wanted*(1-share) {
		e.h.For(cause.Strong, detail, why)
	}
}

// verifier returns the end at which copies are verified: the destination, unless copies to it from
// other sites are verified soon and copies of other links of the source are not.
func (s *subject) verifier() *end {
	own := s.m.verification()
	long, _ := s.compare(&s.ends[atSource], (*minute).verification, own)
	_, short := s.compare(&s.ends[atDest], (*minute).verification, own)
	if long > 0 && short > 0 {
		return &s.ends[atSource]
	}
	return &s.ends[atDest]
}

// compare counts the other links of an end whose phase takes about as many seconds as own, and those
// in which it is shorter.
func (s *subject) compare(e *end, phase func(*minute) float64, own float64) (long, short int) {
	for _, i := range e.other {
		switch m := s.judged(i, s.at); {
		case m == nil || m.ended+m.unproven < 3:
		case m.unproven > m.ended || phase(m) >= asLong*own:
			long++
		default:
			short++
		}
	}
	return long, short
}

// verification returns the mean duration of the verification of a copy in seconds.
func (m *minute) verification() float64 { return stats.Ratio(float64(m.verify), float64(m.ended)) }

// slowBytes reports whether the bytes themselves move slowly: at less than half of the rate at which
// those of a copy of another link of one of the ends move.
func (s *subject) slowBytes() bool {
	own := s.byteRate(s.index, s.m)
	for i := range s.ends {
		for _, o := range s.ends[i].other {
			if m := s.judged(o, s.at); m != nil && m.ended >= 3 && s.byteRate(o, m) > faster*own {
				return true
			}
		}
	}
	return false
}

// byteRate returns the rate of a copy between its first and its last byte, in bytes/s.
func (s *subject) byteRate(link int, m *minute) float64 {
	return stats.Ratio(s.links[link].size()*float64(m.ended), float64(m.transfer))
}

// unproven adds the evidence of copies whose bytes have all moved and that failed before they were
// verified. It reports whether the minute lacks mostly their bytes.
func (s *subject) unproven() bool {
	m := s.m
	if m.wrong < m.missing()/2 || m.wrong == 0 || s.l.unproven == 0 {
		return false
	}
	share := stats.Ratio(m.wrong, m.wanted)
	why := func() fact.Fact { return fact.New("challenge.because.unproven", "share", share) }
	s.verifierOfFailed().h.For(cause.Strong+cause.Weak, Checksum, why)
	return true
}

// verifierOfFailed returns the end at which copies of the link fail before they are verified, as
// verifier does.
func (s *subject) verifierOfFailed() *end {
	fails := func(e *end) bool {
		for _, i := range e.other {
			if s.links[i].unproven > 0 {
				return true
			}
		}
		return len(e.other) == 0
	}
	if fails(&s.ends[atSource]) && !fails(&s.ends[atDest]) {
		return &s.ends[atSource]
	}
	return &s.ends[atDest]
}

// waiting adds the evidence of copies that wait before their first byte.
func (s *subject) waiting(e *end, strength cause.Strength) {
	m := s.m
	share := m.waiting()
	if s.smallFiles() || share < longWait || !s.direct && m.mean(m.queued) > 0.3*m.mean(m.flight) {
		return
	}
	waiting, free := 0, 0
	for _, i := range e.other {
		switch o := s.judged(i, s.at); {
		case o == nil || o.ended < 3:
		case o.waiting() >= longWait:
			waiting++
		case o.waiting() < shortWait:
			free++
		}
	}
	switch {
	case free > 0 && waiting == 0:
		e.h.Against(cause.Strong, func() fact.Fact { return fact.New("challenge.because.no_wait", "site", e.name, "links", free) })
	case waiting > 0 && free == 0:
		e.h.For(strength, "", func() fact.Fact { return fact.New("challenge.because.wait_together", "site", e.name, "links", waiting) })
		fallthrough
	default:
		e.h.For(strength, s.doorOrLogin(), func() fact.Fact { return fact.New("challenge.because.waiting", "share", share) })
	}
}

// doorOrLogin distinguishes the two reasons for which copies wait at a site: it carries few at once,
// or each one has a cost whatever its size.
func (s *subject) doorOrLogin() string {
	if share, ok := s.l.sizes.fixed(); ok && share >= 0.7 {
		return Login
	}
	return Door
}
