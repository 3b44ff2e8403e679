package control

import "math"

// A ceiling limits the rate of all links together. Copies cannot be slowed down, only started later.
// So the ceiling holds three numbers: the bytes that are requested, the copies in flight, and the rate
// of the last seconds, above which nothing is started.
type ceiling struct {
	limit  float64 // bytes/s; 0: none
	owed   float64 // bytes that may be requested
	free   float64 // owed less the copies of the present decision
	left   float64 // bytes in flight of all links
	room   float64 // copies that may be started
	recent recent
	margin float64 // share of the limit that is kept free, because the rate varies
	full   bool    // the links have moved the limit in the last seconds
}

const (
	leastMargin = 0.03
	mostMargin  = 0.2
	marginTime  = 600.0 // seconds in which a margin becomes smaller
	burst       = 0.3   // seconds of the limit that are requested at once
	ample       = 2.0   // times the targets: the number of copies in flight does not matter for such a limit
)

// observe returns the share of their targets that the links may have.
func (c *ceiling) observe(at, dt float64, seen []Seen, links []link) float64 {
	if c.limit <= 0 {
		return 1
	}
	target, moved, left, size := 0.0, 0.0, 0.0, 0.0
	copies, needed, known := 0, 0.0, true
	for i := range seen {
		s, l := &seen[i], &links[i]
		target += s.Target
		moved += float64(s.Moved)
		left += float64(s.Left)
		size = max(size, l.size)
		copies += s.InFlight
		needed += l.rate * l.climb.needed
		known = known && (l.rate == 0 || l.climb.needed > 0)
	}
	c.adapt(at, dt, moved)
	share := (1 - c.margin) * c.limit / max(target, 1)
	most := max(burst*c.limit, size)
	c.owed = min(c.owed+c.limit*dt-(moved+left-c.left), most)
	if dt == 0 && share > 1 {
		c.owed = most // the first decision
	}
	c.left, c.free = left, c.owed
	c.room = float64(len(links))
	switch {
	case share >= ample:
		c.room = math.Inf(1)
	case known: // copies that carry the targets; in proportion, more of them carry the limit
		c.room = (needed+math.Sqrt(needed)+1)*max(1, share) - float64(copies)
	}
	return min(1, share)
}

// adapt enlarges the margin if the rate of the last seconds was above the limit.
func (c *ceiling) adapt(at, dt, moved float64) {
	mean := c.recent.add(at, moved) / c.limit
	c.full = mean > 1
	if mean > 1 {
		c.margin += dt * (mean - 1)
	}
	c.margin = min(max(c.margin-dt*c.margin/marginTime, leastMargin), mostMargin)
}

// reached reports whether no more may be requested.
func (c *ceiling) reached() bool { return c.limit > 0 && (c.full || c.free <= 0 || c.room <= 0) }

// take counts a copy that is started.
func (c *ceiling) take(size float64) {
	c.free -= size
	c.room--
}

// A recent is the rate of the last five seconds.
type recent struct {
	parts [50]float64 // bytes of a tenth of a second each
	last  int         // number of the last part
	sum   float64
}

// add adds bytes, and returns the rate in bytes/s.
func (r *recent) add(at, moved float64) float64 {
	now := int(at * 10)
	for i := max(r.last, now-len(r.parts)) + 1; i <= now; i++ {
		r.sum -= r.parts[i%len(r.parts)]
		r.parts[i%len(r.parts)] = 0
	}
	r.last = now
	r.parts[now%len(r.parts)] += moved
	r.sum += moved
	return r.sum * 10 / float64(len(r.parts))
}
