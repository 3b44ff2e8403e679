package simulated

import "math"

// A sharing computes the rates of the copies by max-min fairness: the rates of all copies rise
// together, and those that reach a limit keep the rate that they have then (progressive filling; D.
// Bertsekas, R. Gallager: Data Networks, section 6.5.2).
type sharing struct {
	limits []limit
	uses   [][]int   // limits of each link
	alone  []float64 // highest rate of one copy of each link
	base   []float64 // alone without the limits of the sites
	sites  []float64 // the same limits of the sites of each link
	copies []int     // that run, of each link
	busy   []int     // links with copies, in no order
	at     []int     // place of each link in busy, or -1
	open   []int     // busy links without final rate, while they are computed
	trunks int
	stale  bool
}

// A limit is a capacity that copies share.
type limit struct {
	capacity float64
	left     float64 // capacity that is not used by links with their final rate
	copies   int     // copies without final rate
	wanted   float64 // rate of all copies if nothing else limits them
}

// build makes the limits in the order of Part.
func (s *sharing) build(o *Options) {
	add := func(capacity float64) int {
		s.limits = append(s.limits, limit{capacity: unlimited(capacity)})
		return len(s.limits) - 1
	}
	for i := range o.Sites {
		add(o.Sites[i].In)
	}
	for i := range o.Sites {
		add(o.Sites[i].Out)
	}
	for i, l := range o.Links {
		k := add(l.Capacity)
		s.uses = append(s.uses, []int{l.To, len(o.Sites) + l.From, k})
		s.base = append(s.base, unlimited(l.PerCopy))
		s.sites = append(s.sites, min(unlimited(o.Sites[l.From].PerCopy), unlimited(o.Sites[l.To].PerCopy)))
		s.alone = append(s.alone, min(s.base[i], s.sites[i]))
		s.at = append(s.at, -1)
	}
	s.trunks = len(o.Trunks)
	for _, t := range o.Trunks {
		k := add(t.Capacity)
		for _, l := range t.Links {
			s.uses[l] = append(s.uses[l], k)
		}
	}
	s.copies = make([]int, len(o.Links))
}

// unlimited returns a capacity of which 0 is no limit. A limit of 1 TB/s keeps all rates finite.
func unlimited(x float64) float64 {
	if x <= 0 {
		return 1e12
	}
	return x
}

// change sets a capacity.
func (s *sharing) change(c Change) {
	s.stale = true
	x, links := unlimited(c.Capacity), len(s.alone)
	sites := (len(s.limits) - s.trunks - links) / 2
	switch c.Part {
	case SiteIn:
		s.limits[c.Index].capacity = x
	case SiteOut:
		s.limits[sites+c.Index].capacity = x
	case OfLink:
		s.limits[2*sites+c.Index].capacity = x
	case OfTrunk:
		s.limits[2*sites+links+c.Index].capacity = x
	case PerCopy:
		s.base[c.Index] = x
		s.alone[c.Index] = min(x, s.sites[c.Index])
	}
}

// add changes the number of running copies of a link.
func (s *sharing) add(link, n int) {
	s.stale = true
	s.copies[link] += n
	switch at := s.at[link]; {
	case s.copies[link] > 0 && at < 0:
		s.at[link] = len(s.busy)
		s.busy = append(s.busy, link)
	case s.copies[link] == 0 && at >= 0:
		last := s.busy[len(s.busy)-1]
		s.busy[at], s.at[last] = last, at
		s.busy, s.at[link] = s.busy[:len(s.busy)-1], -1
	}
}

// share computes the rates of the links anew if they can have changed.
func (s *sharing) share(links []link) {
	if !s.stale {
		return
	}
	s.stale = false
	for i := range s.limits {
		l := &s.limits[i]
		l.left, l.copies, l.wanted = l.capacity, 0, 0
	}
	for _, i := range s.busy {
		for _, k := range s.uses[i] {
			s.limits[k].copies += s.copies[i]
			s.limits[k].wanted += s.alone[i] * float64(s.copies[i])
		}
	}
	s.open = s.open[:0]
	for _, i := range s.busy {
		if s.crowded(i) {
			s.open = append(s.open, i)
		} else {
			s.settle(links, i, s.alone[i])
		}
	}
	for len(s.open) > 0 {
		s.fill(links, s.level())
	}
}

// crowded reports whether a limit of a link can lower the rates of its copies.
func (s *sharing) crowded(link int) bool {
	for _, k := range s.uses[link] {
		if l := &s.limits[k]; l.wanted > l.capacity {
			return true
		}
	}
	return false
}

// level returns the rate at which the first of the open links reaches a limit.
func (s *sharing) level() float64 {
	level := math.Inf(1)
	for _, i := range s.open {
		level = min(level, s.limit(i))
	}
	return level
}

// limit returns the rate of each copy of an open link if all open copies have the same rate.
func (s *sharing) limit(link int) float64 {
	rate := s.alone[link]
	for _, k := range s.uses[link] {
		l := &s.limits[k]
		rate = min(rate, max(0, l.left)/float64(l.copies))
	}
	return rate
}

// fill gives the open links that are limited at level this rate.
func (s *sharing) fill(links []link, level float64) {
	open := s.open[:0]
	for _, i := range s.open {
		if s.limit(i) <= level*(1+1e-9) {
			s.settle(links, i, level)
		} else {
			open = append(open, i)
		}
	}
	s.open = open
}

// settle gives the copies of a link their final rate.
func (s *sharing) settle(links []link, i int, rate float64) {
	links[i].rate = rate
	for _, k := range s.uses[i] {
		l := &s.limits[k]
		l.left -= rate * float64(s.copies[i])
		l.copies -= s.copies[i]
	}
}
