package coordinator

import (
	"context"
	"errors"
	"maps"
	"slices"
	"time"

	"weir/internal/db"
	"weir/transfer"
	"weir/transfer/queue"
	"weir/transfer/schedule"
)

const (
	batch       = 512 // files that are dispatched at a time
	thirds      = 256 // concurrent third-party copies to one destination
	rounds      = 4   // of questions for candidates, each with fewer sources
	pushSample  = 16  // files that are looked at for agents that could push, where none did lately
	checkRate   = 1e9 // bytes/s at which a site reads what it has
	checks      = 4   // files that a site verifies at once
	deletes     = 16  // files that are removed from a site at once
	backoffTime = 30 * time.Millisecond
	fullBackoff = time.Second // of a destination all of whose links are full, until one of its copies ends
)

// dispatch dispatches waiting files until no more can be dispatched now.
func (c *Coordinator) dispatch(ctx context.Context) error {
	if c.uncertain.Load() {
		if err := c.recall(ctx); err != nil {
			return err
		}
	}
	dests, err := c.queue.Destinations(ctx)
	if err != nil {
		return err
	}
	banned := c.registry.bannedSites()
	for _, dest := range dests {
		if _, is := banned[dest]; is {
			continue
		}
		busy := slices.Collect(maps.Keys(banned))
		for range rounds {
			given, full, err := c.dispatchTo(ctx, dest, busy)
			if err != nil {
				return err
			}
			full = slices.DeleteFunc(full, func(s string) bool { return slices.Contains(busy, s) })
			if given == 0 && len(full) == 0 {
				break
			}
			busy = append(busy, full...)
		}
	}
	return nil
}

// dispatchTo dispatches files for one destination. full are sources that could not be used, so that
// others are looked for.
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
			c.uncertain.Store(true)
		}
	}
	leases, back := c.addCredentials(ctx, leases)
	if recordErr := c.recordTemporaries(ctx, leases); recordErr != nil { // nothing is created that is not recorded
		c.uncertain.Store(true) // so these leases are recalled
		leases, err = nil, errors.Join(err, recordErr)
	}
	gone := c.handOver(ctx, leases, plans)
	if len(leases) == 0 {
		c.backOff(dest, err == nil && len(choices) == 0 && len(full) > 0)
	}
	return len(leases), full, errors.Join(err, c.applyOutcomes(ctx, "", append(gone, back...)))
}

// backOff has a destination looked at again after a while. Each look reads as many files as it has room for, so that one whose links
// are full is not looked at again until a copy ends, a request changes, or the scheduler may have raised a limit.
func (c *Coordinator) backOff(dest string, full bool) {
	c.registry.mu.Lock()
	wait := backoffTime
	if full && c.registry.sites[dest].Kind != agentKind && len(c.registry.agents) == 0 {
		wait = fullBackoff
	}
	c.registry.backoff[dest] = c.now().Add(wait)
	c.registry.mu.Unlock()
	time.AfterFunc(wait, c.wake.broadcast)
}

// recall takes back leases that the database gave out when the connection to it was lost, so that no
// mover got them: those that are in the database now, and were not in the registry before. It is
// called between Takes.
func (c *Coordinator) recall(ctx context.Context) error {
	known := map[transfer.LeaseID]bool{}
	c.registry.mu.Lock()
	for _, l := range c.registry.leases {
		known[l.ID()] = true
	}
	c.registry.mu.Unlock()
	leases, err := c.queue.Leases(ctx)
	if err != nil {
		return err
	}
	var back []transfer.Outcome
	c.registry.mu.Lock()
	for _, l := range leases {
		if !known[l.ID()] {
			back = append(back, c.failedLocked(&activeLease{Lease: l, given: c.now()}, transfer.MoverStopped,
				"the connection to the database was lost while it was given out"))
		}
	}
	c.registry.mu.Unlock()
	err = c.applyOutcomes(ctx, "", back)
	c.uncertain.Store(err != nil)
	return err
}

// roomAt returns how many files for a destination could begin now, at most.
func (c *Coordinator) roomAt(dest string) (n int) {
	r := &c.registry
	r.mu.Lock()
	defer r.mu.Unlock()
	site, ok := r.sites[dest]
	if !ok || r.closed || !site.Up || c.now().Before(r.backoff[dest]) {
		return 0
	}
	if site.Kind != agentKind {
		n = max(0, thirds-r.net.Active(dest))
	}
	others := 0
	for _, a := range r.agents {
		switch room := a.roomLocked(r.net.Rules().Ahead); {
		case a.Site == dest:
			n += room
		case site.URL != "": // these may push
			others += room
		}
	}
	if r.agents[dest] != nil && !r.pushed[dest] {
		others = min(others, pushSample) // where no agent pushes, most rows that are read for them are useless
	}
	return min(n+others, batch)
}

// roomLocked returns how many leases an agent can take now: as many as it has free slots, and of small
// files so many that it is busy for a while.
func (a *agent) roomLocked(ahead time.Duration) int {
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

// A plan is a lease as it was chosen, and the limit of its link.
type plan struct {
	activeLease
	limit int
}

// choose decides for each candidate where it comes from and who transfers it. full are the sources
// whose links are full, or that cannot be used now.
func (c *Coordinator) choose(dest string, candidates []queue.Candidate) (choices []queue.Choice, plans map[int64]*plan, full []string) {
	now, r := c.now(), &c.registry
	plans = map[int64]*plan{}
	addLocked := func(cand *queue.Candidate, source string, size int64, m method, p *plan) {
		p.Item, p.Request, p.Size, p.Mode, p.mover, p.Source.Site, p.Dest.Site = cand.ID, cand.Request, size, m.mode, m.mover, source, dest
		choices = append(choices, queue.Choice{Item: cand.ID, Source: source, Mode: m.mode})
		plans[cand.ID] = p
		c.beginTrialLocked(cand.ID, m.mover, source, dest)
		r.beginLocked(&p.activeLease, now)
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	most := r.siteLimitsLocked()
	for _, cand := range candidates {
		if cand.Check {
			if mover, ok := c.checkerOfLocked(dest); ok && c.blockedLocked(mover, dest) == "" {
				p := &plan{activeLease{seconds: float64(cand.Size) / checkRate}, checks}
				addLocked(&cand, dest, cand.Size, method{transfer.Check, mover}, p)
			} else {
				full = append(full, dest)
			}
			continue
		}
		if cand.Delete {
			if r.deleting[dest] < deletes && c.blockedLocked("", dest) == "" {
				addLocked(&cand, dest, 0, method{mode: transfer.Delete}, &plan{})
			} else {
				full = append(full, dest)
			}
			continue
		}
		ways := c.methodsLocked(dest, cand)
		ways.sources = slices.DeleteFunc(ways.sources, func(s string) bool { return c.skipLocked(cand.ID, ways.by[s].mover, s, dest) })
		full = append(full, ways.none...)
		ch := r.net.Choose(schedule.File{Bytes: max(cand.Size, 0), Dest: dest, Sources: ways.sources, Failures: cand.Failures, Max: most}, now)
		if ch.Source == "" {
			if ch.Wait != "" {
				full = append(full, ch.Wait)
			}
			continue
		}
		rank := ch.Rank()
		addLocked(&cand, ch.Source, cand.Size, ways.by[ch.Source], &plan{activeLease{want: cand.Want, seconds: rank.Copy}, rank.Limit})
	}
	r.pushed[dest], r.plans = false, plans
	for _, p := range plans {
		if p.mover != "" && p.mover != dest {
			r.pushed[dest] = true
		}
	}
	slices.Sort(full)
	return choices, plans, slices.Compact(full)
}

// siteLimitsLocked returns the largest number of concurrent transfers of each site.
func (r *registry) siteLimitsLocked() map[string]int {
	most := map[string]int{}
	for _, s := range r.sites {
		most[s.Name] = s.Max
	}
	return most
}

// checkerOfLocked returns who can verify a file at a site: its agent or, for a site without one, the
// coordinator ("").
func (c *Coordinator) checkerOfLocked(site string) (mover string, ok bool) {
	if c.registry.sites[site].Kind != agentKind {
		return "", true
	}
	a := c.registry.agents[site]
	return site, a != nil && a.roomLocked(c.registry.net.Rules().Ahead) > 0
}

// handOver gives leases to their movers in place of the plans. gone are the outcomes of those that were cancelled or whose movers have
// gone meanwhile.
func (c *Coordinator) handOver(ctx context.Context, leases []transfer.Lease, plans map[int64]*plan) (gone []transfer.Outcome) {
	now := c.now()
	c.registry.mu.Lock()
	defer c.registry.mu.Unlock()
	for _, p := range plans {
		c.registry.endLocked(&p.activeLease, now)
	}
	c.registry.plans = nil
	for _, l := range leases {
		p := plans[l.Item]
		l.AtOnce = p.limit
		h := &activeLease{Lease: l, mover: p.mover, want: p.want, seconds: p.seconds, given: now, heard: now, renewed: now}
		c.addLeaseLocked(h)
		a := c.registry.agents[h.mover]
		switch {
		case p.cancelled:
			h.cancelled = true
			gone = append(gone, c.failedLocked(h, transfer.RequestCancelled, errCancelled.Error()))
		case h.mover == "":
			c.beginThirdLocked(ctx, h)
		case a != nil:
			a.ready = append(a.ready, h)
			a.wake()
		default:
			gone = append(gone, c.failedLocked(h, transfer.MoverStopped, "the agent of site "+h.mover+" has gone"))
		}
	}
	return gone
}
