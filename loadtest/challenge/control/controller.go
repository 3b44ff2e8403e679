package control

import (
	"cmp"
	"math"
	"slices"
	"time"

	"weir/loadtest/challenge"
)

// A Controller decides how many copies each link of a challenge requests. It is a pure value: its
// decisions depend on Options and the arguments of Decide only. It is for one goroutine at a time.
//
// Each link has a debt: the bytes that its target rate has required so far, less the bytes of the
// copies that were requested and did not fail, plus the bytes that are in flight at the target rate
// (Little's law). A copy is due while the debt is positive. So the rate of requests is the target
// rate, whatever the latency of the copies is, and the error of the achieved rate does not grow with
// time. The debt is bounded: a link that cannot have its target rate owes no more than backlog, and has
// nothing to make up for later.
type Controller struct {
	o         Options
	links     []link
	decisions []Decision
	due       []int // links with due copies, in the order in which they get them
	sites     []site
	limited   bool // a site has a limit of copies
	last      time.Duration
	began     bool
	total     ceiling
}

// Constants of the controller. Times are in seconds.
const (
	backlog   = 4.0  // of target rate that a link may owe: 7% of the next minute
	credit    = 60.0 // of target rate that a link may have moved in advance, after its target fell
	longTick  = 2.0  // between two decisions; a longer time is that of a suspended process
	overshoot = 0.1  // of the target rate, by which more may move before no copy is started
	smooth    = 10.0 // over which the achieved rate is smoothed for that
	slotTime  = 30.0 // over which the use of slots is smoothed
)

// A period is the time since the last decision.
type period struct {
	at, dt      float64 // its end and its duration, seconds
	share       float64 // of their targets that the links may have
	rate, slots float64 // weights of the period in the smoothed values
	pause       int     // longest pause of a link after failures, seconds
}

// New returns a controller of links that have not started.
func New(o Options) *Controller {
	c := &Controller{
		o: o, links: make([]link, len(o.Links)), decisions: make([]Decision, len(o.Links)),
		due: make([]int, 0, len(o.Links)), sites: make([]site, len(o.Sites)),
	}
	for i := range c.links {
		c.links[i].reset(&o.Links[i], o.Delay.Seconds())
		// links do not begin their files all at once: the golden ratio spreads any number of them evenly
		_, part := math.Modf(float64(i) * (math.Phi - 1))
		c.links[i].phase = part * c.links[i].size
	}
	for i, n := range o.Sites {
		c.sites[i].limit = n
		c.limited = c.limited || n > 0
	}
	c.total.limit = o.Ceiling
	return c
}

// Decide returns one decision for each link. now is the time since any fixed moment; seen has one
// element for each link, and includes the copies that were requested after the last decision. It is
// meant to be called ten times a second. The result is valid until the next call.
func (c *Controller) Decide(now time.Duration, seen []Seen) []Decision {
	dt := min(max(0, (now-c.last).Seconds()), longTick)
	if !c.began {
		dt, c.began = 0, true
	}
	c.last = now
	p := period{at: now.Seconds(), dt: dt, rate: 1 - math.Exp(-dt/smooth), slots: 1 - math.Exp(-dt/slotTime)}
	p.share = c.total.observe(p.at, dt, seen, c.links)
	c.due = c.due[:0]
	c.good(p.at, seen)
	for i := range c.links {
		l := &c.links[i]
		p.pause = c.longest(p.at, l.limit)
		l.observe(&p, &seen[i])
		c.decisions[i] = l.limits(p.at, &seen[i])
		if l.debt > 0 && c.decisions[i].Reason == "" {
			c.due = append(c.due, i)
		}
	}
	if c.limited {
		c.shareSlots(seen)
	}
	slices.SortFunc(c.due, func(a, b int) int {
		return cmp.Or(cmp.Compare(c.links[a].used, c.links[b].used), cmp.Compare(c.links[b].debt, c.links[a].debt), cmp.Compare(a, b))
	})
	c.start(seen)
	for i := range c.links {
		d := &c.decisions[i]
		c.links[i].note(dt, d, seen[i].InFlight)
		if p.share < 1 && (d.Reason == challenge.Paced || d.Reason == challenge.LargeFile) {
			d.Reason = challenge.Ceiling // paced by its share of the ceiling
		}
	}
	return c.decisions
}

// start gives the due links their copies, one after the other until a limit is reached.
func (c *Controller) start(seen []Seen) {
	for more := true; more; {
		more = false
		for _, i := range c.due {
			d := &c.decisions[i]
			if d.Reason != "" {
				continue
			}
			if d.Reason = c.obstacle(i, seen[i].InFlight+d.Start); d.Reason == "" {
				d.Start++
				more = true
				c.take(i)
			}
		}
	}
}

// obstacle returns the reason for no further copy of a link with n copies in flight, or "".
func (c *Controller) obstacle(i, n int) challenge.Reason {
	l, d := &c.links[i], &c.decisions[i]
	switch {
	case l.owed <= 0:
		return l.pacedReason(n)
	case c.total.reached():
		return challenge.Ceiling
	case c.limited && !c.free(l.limit), n >= d.Allowed && d.Allowed < l.climb.allowed:
		return challenge.Copies
	case n >= d.Allowed:
		return l.climb.reason()
	}
	return ""
}

// take counts a copy that is started.
func (c *Controller) take(i int) {
	l := &c.links[i]
	l.owed -= l.size
	l.started()
	c.total.take(l.size)
	if c.limited {
		c.sites[l.limit.Source].used++
		c.sites[l.limit.Dest].used++
	}
}
