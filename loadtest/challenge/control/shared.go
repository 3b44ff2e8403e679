package control

import "math"

// A site has the slots of a site for copies.
type site struct {
	limit  int // 0: none
	used   int
	weight float64 // sum of the target rates of its links
	need   float64 // slots that its links use at their target rates, each at most its share
	good   float64 // time of the last good copy, seconds
}

// good notes the good copies of sites.
func (c *Controller) good(at float64, seen []Seen) {
	for i := range seen {
		if seen[i].Done > 0 {
			c.sites[c.links[i].limit.Source].good, c.sites[c.links[i].limit.Dest].good = at, at
		}
	}
}

// longest returns the longest pause of a link after failures. Copies that fail between sites that
// carry those of other links may be too many for a site: the link tries again soon, so that the
// others do not keep all places.
func (c *Controller) longest(at float64, l *Limit) int {
	if last := min(c.sites[l.Source].good, c.sites[l.Dest].good); last > 0 && at-last < alive {
		return shortPause
	}
	return longestPause
}

// shareSlots limits each link to the slots of its sites that the other links do not need. A link that
// needs more than its share, in proportion to the targets, gets it from the slots that the others
// leave; its slow copies do not keep the others from their shares.
func (c *Controller) shareSlots(seen []Seen) {
	for i := range c.sites {
		c.sites[i].used, c.sites[i].weight, c.sites[i].need = 0, 0, 0
	}
	for i := range c.links {
		l := &c.links[i]
		for _, k := range [...]int{l.limit.Source, l.limit.Dest} {
			s := &c.sites[k]
			s.used += seen[i].InFlight
			if !l.fail.active() {
				s.weight += l.rate
			}
		}
	}
	for i := range c.links {
		l := &c.links[i]
		for _, k := range [...]int{l.limit.Source, l.limit.Dest} {
			c.sites[k].need += c.sites[k].needed(l)
		}
	}
	for i := range c.links {
		l, d := &c.links[i], &c.decisions[i]
		for _, k := range [...]int{l.limit.Source, l.limit.Dest} {
			d.Allowed = min(d.Allowed, c.sites[k].slots(l))
		}
	}
}

// share returns the slots of a link in proportion to its target.
func (s *site) share(l *link) float64 {
	if s.limit == 0 || l.rate == 0 || l.fail.active() {
		return 0
	}
	return float64(s.limit) * l.rate / s.weight
}

// needed returns the part of its share that a link uses.
func (s *site) needed(l *link) float64 {
	if l.climb.needed == 0 {
		return s.share(l)
	}
	return min(s.share(l), l.rate*l.climb.needed)
}

// slots returns the largest number of slots that a link may have.
func (s *site) slots(l *link) int {
	if s.limit == 0 {
		return math.MaxInt32
	}
	return max(1, int(s.share(l)), int(float64(s.limit)-s.need+s.needed(l)))
}

// free reports whether the sites of a link have a slot.
func (c *Controller) free(l *Limit) bool {
	return c.sites[l.Source].free() && c.sites[l.Dest].free()
}

func (s *site) free() bool { return s.limit == 0 || s.used < s.limit }
