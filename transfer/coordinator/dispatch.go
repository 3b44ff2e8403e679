package coordinator

import (
	"context"
	"errors"
	"slices"
	"time"

	"weir/internal/db"
	"weir/transfer"
	"weir/transfer/queue"
	"weir/transfer/schedule"
)

const (
	batch  = 512 // files that are given out at a time
	thirds = 256 // copies by third parties at once, at one destination
	rounds = 4   // of questions for candidates with ever fewer sources
	probed = 16  // files that are looked at for agents who could push, where none did lately
)

// dispatch gives out what waits, until nothing more can be given now.
func (c *Coordinator) dispatch(ctx context.Context) error {
	if c.unsure.Load() {
		if err := c.recall(ctx); err != nil {
			return err
		}
	}
	dests, err := c.queue.Destinations(ctx)
	if err != nil {
		return err
	}
	for _, dest := range dests {
		var busy []string
		for range rounds {
			given, full, err := c.dispatchTo(ctx, dest, busy)
			if err != nil {
				return err
			}
			if full = slices.DeleteFunc(full, func(s string) bool { return slices.Contains(busy, s) }); given == 0 && len(full) == 0 {
				break
			}
			busy = append(busy, full...)
		}
	}
	return nil
}

// dispatchTo gives out files for one destination. full are sources that could not be
// used, so that others are looked for.
func (c *Coordinator) dispatchTo(ctx context.Context, dest string, busy []string) (given int, full []string, err error) {
	n := c.roomAt(dest)
	if n == 0 {
		return 0, nil, nil
	}
	candidates, err := c.queue.Waiting(ctx, queue.Want{Dest: dest, N: n, Busy: busy})
	if err != nil || len(candidates) == 0 {
		return 0, nil, err
	}
	choices, plans, full := c.choose(dest, candidates)
	leases, err := c.queue.Take(ctx, choices)
	if err != nil {
		leases = nil
		if errors.Is(err, db.ErrUnsure) {
			c.unsure.Store(true)
		}
	}
	leases, back := c.open(ctx, leases)
	if ferr := c.foresee(ctx, leases); ferr != nil { // nothing is made anywhere that is not written down
		c.unsure.Store(true) // so these are taken back
		leases, err = nil, errors.Join(err, ferr)
	}
	gone := c.give(ctx, leases, plans)
	if len(leases) == 0 {
		c.registry.mu.Lock()
		c.registry.calm[dest] = c.now().Add(calm)
		c.registry.mu.Unlock()
		time.AfterFunc(calm, c.wake.give)
	}
	return len(leases), full, errors.Join(err, c.ended(ctx, "", append(gone, back...)))
}

// recall takes back leases that the database gave out when the connection to it was
// lost, so that nobody was told of them. It is called between Takes: what is in the
// database then, and was not in the registry before, is such a lease.
func (c *Coordinator) recall(ctx context.Context) error {
	known := map[int64]int64{}
	c.registry.mu.Lock()
	for item, l := range c.registry.leases {
		known[item] = l.Epoch
	}
	c.registry.mu.Unlock()
	leases, err := c.queue.Leases(ctx)
	if err != nil {
		return err
	}
	var back []transfer.Outcome
	for _, l := range leases {
		if known[l.Item] != l.Epoch {
			back = append(back, c.without(&activeLease{Lease: l, given: c.now()}, transfer.MoverStopped, "the connection to the database was lost while it was given out"))
		}
	}
	err = c.ended(ctx, "", back)
	c.unsure.Store(err != nil)
	return err
}

// roomAt is how many files for a destination could be begun now, at most.
func (c *Coordinator) roomAt(dest string) (n int) {
	c.registry.mu.Lock()
	defer c.registry.mu.Unlock()
	site, ok := c.registry.sites[dest]
	if !ok || c.registry.full || !site.Up {
		return 0
	}
	if c.now().Before(c.registry.calm[dest]) {
		return 0
	}
	if site.Kind == httpKind {
		n = max(0, thirds-c.registry.net.Active(dest))
	}
	others := 0
	for _, a := range c.registry.agents {
		switch room := a.room(c.registry.net.Rules().Ahead); {
		case a.Site == dest:
			n += room
		case site.URL != "": // these may push
			others += room
		}
	}
	if c.registry.agents[dest] != nil && !c.registry.pushed[dest] {
		others = min(others, probed) // where nobody does, most of what is read for them is read in vain
	}
	return min(n+others, batch)
}

// calm is how long a destination is left alone for which nothing could be begun.
const calm = 30 * time.Millisecond

// room is how many leases an agent can take now: as many as it has slots, and of
// small files so many that it has enough for a while.
func (a *agent) room(ahead time.Duration) int {
	if !a.waiting || a.slots < 0 {
		return 0
	}
	n := a.Slots - a.count
	if a.count > 0 && a.seconds > 0 {
		each := a.seconds / float64(a.count)
		n = max(n, min(int(ahead.Seconds()*float64(a.Slots)/each), batch)-a.count)
		if a.count > a.Slots && n < a.count/2 {
			return 0 // it has enough: later, and many at a time
		}
	}
	return max(0, n)
}

// A plan is what was chosen for a file.
type plan struct {
	source, dest string
	size         int64
	mover        string
	want         transfer.Mode
	seconds      float64
	limit        int
}

// choose decides for each candidate where it comes from and who moves it. full are
// the sources whose links are full, or from whom nobody can move anything now.
func (c *Coordinator) choose(dest string, candidates []queue.Candidate) (choices []queue.Choice, plans map[int64]plan, full []string) {
	now := c.now()
	plans = map[int64]plan{}
	c.registry.mu.Lock()
	defer c.registry.mu.Unlock()
	most := map[string]int{}
	for _, s := range c.registry.sites {
		most[s.Name] = s.Max
	}
	for _, cand := range candidates {
		if cand.Replicas[0].Site == dest {
			if mover, ok := c.looker(dest); ok && c.refusing(mover, dest) == "" {
				c.attempted(cand.ID, mover, dest)
				choices = append(choices, queue.Choice{Item: cand.ID, Source: dest, Mode: transfer.Check})
				plans[cand.ID] = plan{source: dest, dest: dest, size: cand.Size, mover: mover, seconds: float64(cand.Size) / checkRate, limit: checks}
				c.reserve(plans[cand.ID], now)
			} else {
				full = append(full, dest)
			}
			continue
		}
		ways := c.ways(dest, cand)
		ways.sources = slices.DeleteFunc(ways.sources, func(s string) bool { return c.passes(cand.ID, ways.by[s].mover, s, dest) })
		full = append(full, ways.none...)
		ch := c.registry.net.Choose(schedule.File{Bytes: cand.Size, Dest: dest, Sources: ways.sources, Failures: cand.Failures, Max: most}, now)
		if ch.Source == "" {
			if ch.Wait != "" {
				full = append(full, ch.Wait)
			}
			continue
		}
		w, rank := ways.by[ch.Source], ch.Rank()
		choices = append(choices, queue.Choice{Item: cand.ID, Source: ch.Source, Mode: w.mode})
		p := plan{source: ch.Source, dest: dest, size: cand.Size, mover: w.mover, want: cand.Want, seconds: rank.Copy, limit: rank.Limit}
		plans[cand.ID] = p
		c.attempted(cand.ID, p.mover, p.source, p.dest)
		c.reserve(p, now)
	}
	c.registry.pushed[dest] = false
	for _, p := range plans {
		if p.mover != "" && p.mover != dest {
			c.registry.pushed[dest] = true
		}
	}
	slices.Sort(full)
	return choices, plans, slices.Compact(full)
}

const (
	checkRate = 1e9 // bytes/s at which a site reads what it has
	checks    = 4   // files that a site looks at, at once
)

// looker tells who can look at a site whether a file is there: its agent, or, of
// a site without one, the coordinator (""). The registry is locked.
func (c *Coordinator) looker(site string) (mover string, ok bool) {
	if c.registry.sites[site].Kind == httpKind {
		return "", true
	}
	a := c.registry.agents[site]
	return site, a != nil && a.room(c.registry.net.Rules().Ahead) > 0
}

// reserve counts a plan as if it was under way already. The registry is locked.
func (c *Coordinator) reserve(p plan, now time.Time) {
	c.registry.net.Began(p.source, p.dest, p.size, now)
	if a := c.registry.agents[p.mover]; a != nil && p.mover != "" {
		a.count++
		a.seconds += p.seconds
	}
}

// release takes that back. The registry is locked.
func (c *Coordinator) release(p plan, now time.Time) {
	c.registry.net.Left(p.source, p.dest, p.size, now)
	if a := c.registry.agents[p.mover]; a != nil && p.mover != "" {
		a.count--
		a.seconds = max(0, a.seconds-p.seconds)
	}
}

// give hands leases to who moves them, and forgets the plans. gone are the ends of
// those whose movers have gone meanwhile.
func (c *Coordinator) give(ctx context.Context, leases []transfer.Lease, plans map[int64]plan) (gone []transfer.Outcome) {
	now := c.now()
	c.registry.mu.Lock()
	defer c.registry.mu.Unlock()
	for _, p := range plans {
		c.release(p, now)
	}
	for _, l := range leases {
		p := plans[l.Item]
		l.AtOnce = p.limit
		h := &activeLease{Lease: l, mover: p.mover, want: p.want, seconds: p.seconds, given: now, heard: now, renewed: now}
		c.hold(h)
		if h.mover == "" {
			c.beginThird(ctx, h)
		} else if a := c.registry.agents[h.mover]; a != nil {
			a.ready = append(a.ready, h)
			a.ring()
		} else {
			gone = append(gone, c.without(h, transfer.MoverStopped, "the agent of site "+h.mover+" has gone"))
		}
	}
	return gone
}
