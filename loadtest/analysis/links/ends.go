package links

import (
	"math"

	"weir/internal/cause"
	"weir/internal/stats"
	"weir/loadtest/analysis/fact"
)

// Limits of evidence on the ends of a link.
const (
	busy        = 0.9  // share of a resource from which it may be saturated
	idleMost    = 0.7  // share below which it is not
	full        = 0.97 // share from which it is
	faster      = 2.0  // times the rate of a copy: the copies do not share the resource that limits
	atLimit     = 0.9  // of a stated capacity or limit
	slowedRatio = 0.6  // of the rate that a copy had in the best minutes at the target
	flat        = 0.3  // scatter of a sum over that of independent links: they share a resource
)

func log(x float32) float64 { return math.Log(float64(x)) }

// watched adds the evidence of the hosts of a site.
func (s *subject) watched(e *end) {
	u := s.usage(s.hosts.bySite[e.site])
	if u == nil || !s.limited() {
		return
	}
	direction := func(u *usage) resource { return u.sent }
	if e.role == atDest {
		direction = func(u *usage) resource { return u.received }
	}
	line := direction(u)
	most, seen, taken := 0.0, 0, false
	if share, ok := u.disk.mean(); ok {
		if most, seen = max(most, share), seen+1; share >= busy {
			taken = true
			strength := s.strength(e, share, func(u *usage) resource { return u.disk })
			e.h.For(strength, Disk, func() fact.Fact { return fact.New("challenge.because.disk", "site", e.name, "share", share) })
		}
	}
	if share, ok := u.cpu.mean(); ok {
		if most, seen = max(most, share), seen+1; share >= busy {
			taken = true
			strength := s.strength(e, share, func(u *usage) resource { return u.cpu })
			e.h.For(strength, CPU, func() fact.Fact { return fact.New("challenge.because.cpu", "site", e.name, "share", share) })
		}
	}
	if share, ok := line.mean(); ok {
		if most = max(most, share); share >= busy {
			taken = true
			n := len(e.all)
			e.h.For(s.strength(e, share, direction), Interface, func() fact.Fact {
				return fact.New("challenge.because.interface", "site", e.name, "share", share, "links", n)
			})
		}
	}
	s.wire(e, u)
	if seen == 2 && !taken && most < idleMost {
		e.idle = true
		if s.ends[0].idle && s.ends[1].idle {
			s.line.For(cause.Weak, "", func() fact.Fact { return fact.New("challenge.because.idle", "site", e.name, "share", most) })
		}
	}
}

// wire adds the evidence of the emulated line of a site.
func (s *subject) wire(e *end, u *usage) {
	direction, dropped := func(u *usage) resource { return u.out }, u.dropped[1]
	if e.role == atDest {
		direction, dropped = func(u *usage) resource { return u.in }, u.dropped[0]
	}
	line := direction(u)
	share, ok := line.mean()
	if !ok || share < busy {
		return
	}
	e.h.For(s.strength(e, share, direction), SiteLine, func() fact.Fact {
		return fact.New("challenge.because.wire", "site", e.name, "share", share, "dropped", dropped)
	})
}

// limited reports whether more copies were wanted: the usage of a host explains nothing while the
// link is held back on purpose.
func (s *subject) limited() bool {
	return s.m.share(paced)+s.m.share(ceiling)+s.m.share(largeFile)+s.m.share(failing) < 0.5
}

// strength returns the strength of a busy resource of a site: direct if it is saturated, and was not
// busy in the minutes in which all links of the site had their targets, so that it is the
// challenge that keeps it busy.
func (s *subject) strength(e *end, share float64, part func(*usage) resource) cause.Strength {
	usage := s.hosts.bySite[e.site]
	sum, n := 0.0, 0
	for i := range usage {
		if usage[i].seconds == 0 || !s.well(e.site, i) {
			continue
		}
		r := part(&usage[i])
		if before, ok := r.mean(); ok {
			sum, n = sum+before, n+1
		}
	}
	switch {
	case n > 0 && sum/float64(n) >= busy:
		return cause.Weak
	case share >= full && n > 0 && sum/float64(n) < busy-0.1:
		return cause.Direct
	}
	if share < full {
		return 2 * cause.Weak
	}
	return cause.Strong + cause.Weak
}

// well reports whether all links of a site had their targets in a minute, and there was one.
func (s *subject) well(site, minute int) bool {
	any := false
	for _, links := range [][]int{s.from[site], s.to[site]} {
		for _, i := range links {
			m := s.judge.judged(i, minute)
			if m == nil {
				continue
			}
			if any = true; m.below() {
				return false
			}
		}
	}
	return any
}

// capacities adds the evidence that links with a common site, or a common line, give.
func (s *subject) capacities() {
	if share := s.m.share(saturated); share >= 0.3 {
		why := func() fact.Fact { return fact.New("challenge.because.saturated", "share", share) }
		s.source.For(cause.Weak, "", why)
		s.dest.For(cause.Weak, "", why)
		s.line.For(cause.Weak, "", why)
		if s.l.elasticKnown && s.l.elastic < 0.4 {
			exponent := s.l.elastic
			s.injection.Against(cause.Strong, func() fact.Fact { return fact.New("challenge.because.inelastic", "exponent", exponent) })
		}
	}
	excluded := 0
	for i := range s.ends {
		if s.excluded(&s.ends[i]) {
			excluded++
		}
	}
	for i := range s.ends {
		s.together(&s.ends[i], excluded)
		s.stated(&s.ends[i])
	}
	if excluded == 2 {
		detail := Own
		if s.block().others(s.judge, s.index) {
			detail = ""
		}
		s.line.For(cause.Strong, detail, func() fact.Fact { return fact.New("challenge.because.only_line") })
	}
	s.shared()
}

// excluded adds the evidence against a site that carries faster copies of other links. It reports
// whether the site is excluded: few links with faster copies exclude nothing while many others are
// slow as well.
func (s *subject) excluded(e *end) bool {
	own := s.copyRate(s.index, s.m)
	best, link, fast, slow := 0.0, -1, 0, 0
	for _, i := range e.other {
		m := s.judged(i, s.at)
		if m == nil {
			continue
		}
		rate := s.copyRate(i, m)
		if rate > best {
			best, link = rate, i
		}
		switch {
		case rate >= faster*own:
			fast++
		case m.below():
			slow++
		}
	}
	if own <= 0 || fast == 0 {
		return false
	}
	name, strength := s.links[link].plan.Name(), cause.Strong
	if 2*fast < slow {
		strength = cause.Weak
	}
	e.h.Against(strength, func() fact.Fact {
		return fact.New("challenge.because.faster", "link", name, "site", e.name, "rate", best, "own", own)
	})
	return strength == cause.Strong
}

// copyRate returns the rate of a copy of a link in bytes/s, of links with few copies in flight by the
// durations of their copies: a link whose copies are short has hardly any in flight. 0: unknown.
func (s *subject) copyRate(link int, m *minute) float64 {
	if m.running() >= 0.5 {
		return m.perCopy()
	}
	if m.arrived < 3 {
		return 0
	}
	return stats.Ratio(s.links[link].size()*float64(m.arrived), float64(m.whole))
}

// size returns the mean size of the files of a link.
func (l *linkSum) size() float64 { return stats.Ratio(float64(l.bytes), float64(l.files)) }

// leastFiles is the number of files of a part of a minute from which its rate is smooth: with fewer
// files the rates scatter by the ends of copies, whatever limits them.
const leastFiles = 5

// smooth reports whether the parts of the minutes have enough files for their scatter to mean
// anything.
func (s *subject) smooth() bool {
	part := s.sums.minute.Seconds() / parts
	return stats.Ratio(s.m.moved, float64(s.m.seconds))*part >= leastFiles*s.l.size()
}

// together adds the evidence of a site all of whose links are below their targets, and of the
// scatter of their sum.
func (s *subject) together(e *end, excluded int) {
	below, well := 0, 0
	own := s.copyRate(s.index, s.m)
	for _, i := range e.other {
		m := s.judged(i, s.at)
		switch {
		case m == nil:
		case m.below() && m.share(ceiling)+m.share(paced)+m.share(failing) < 0.5, s.slowed(i, m) && s.slowed(s.index, s.m):
			below++
		case s.copyRate(i, m) >= faster*own:
			well++
		}
	}
	if below > 0 && 2*well < below {
		strength := cause.Weak
		if below > 1 || excluded == 1 {
			strength = cause.Strong
		}
		n := below
		e.h.For(strength, "", func() fact.Fact { return fact.New("challenge.because.together", "site", e.name, "links", n) })
	}
	if scatter, n := s.block().siteScatter(e); n > 1 && scatter < flat {
		e.h.For(cause.Strong, "", func() fact.Fact {
			return fact.New("challenge.because.flat", "site", e.name, "links", n, "share", scatter)
		})
	} else if n > 1 && scatter > 0.8 && s.smooth() {
		e.h.Against(cause.Weak, func() fact.Fact {
			return fact.New("challenge.because.scatters", "site", e.name, "links", n, "share", scatter)
		})
	}
}

// slowed reports whether the copies of a link are slower than they can be, at the target or not.
func (s *subject) slowed(link int, m *minute) bool {
	return m.running() >= 0.5 && m.perCopy() < slowedRatio*s.links[link].base
}

// stated adds the evidence of the stated capacity of a site.
func (s *subject) stated(e *end) {
	site, links := &s.plan.Sites[e.site], s.from[e.site]
	capacity := float64(site.Out) / 8
	if e.role == atDest {
		capacity, links = float64(site.In)/8, s.to[e.site]
	}
	sum := 0.0
	for _, i := range links {
		if m := s.judged(i, s.at); m != nil {
			sum += stats.Ratio(m.moved, float64(m.seconds))
		}
	}
	if capacity > 0 && sum >= atLimit*capacity {
		e.h.For(cause.Strong, Capacity, func() fact.Fact {
			return fact.New("challenge.because.capacity", "site", e.name, "rate", sum, "capacity", capacity)
		})
	}
}
