package dispatch

import (
	"context"
	"slices"
	"time"

	"weir/transfer"
	"weir/transfer/catalog"
	"weir/transfer/queue"
	"weir/transfer/schedule"
)

const (
	batch       = 512 // files that are dispatched at a time
	thirds      = 256 // concurrent third-party copies to one destination
	pushSample  = 16  // files that are examined for agents that could push, if no agent pushed lately
	checkRate   = 1e9 // bytes/s at which a site reads its files
	checks      = 4   // files that a site verifies at once
	deletes     = 16  // files that are removed from a site at once
	backoffTime = 30 * time.Millisecond
	fullBackoff = time.Second // of a destination all of whose links are full, until one of its copies ends
)

// BackOff skips a destination for the time that it returns.
func (f *Leases) BackOff(dest string, full bool) time.Duration {
	r := f.r
	r.mu.Lock()
	defer r.mu.Unlock()
	wait := backoffTime
	if full && r.sites[dest].Kind != catalog.AgentSite && len(r.agents) == 0 {
		wait = fullBackoff
	}
	r.backoff[dest] = r.now().Add(wait)
	return wait
}

// IDs returns the ids of the leases.
func (f *Leases) IDs() map[transfer.LeaseID]bool {
	r := f.r
	r.mu.Lock()
	defer r.mu.Unlock()
	all := map[transfer.LeaseID]bool{}
	for _, l := range r.leases {
		all[l.ID()] = true
	}
	return all
}

// RoomAt returns the maximum number of files for a destination that could begin now.
func (f *Leases) RoomAt(dest string) (n int) {
	r := f.r
	r.mu.Lock()
	defer r.mu.Unlock()
	site, ok := r.sites[dest]
	if !ok || r.closed || !site.Up || r.now().Before(r.backoff[dest]) {
		return 0
	}
	if site.Kind != catalog.AgentSite {
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
		others = min(others, pushSample) // if no agent pushes, most rows that are read for these agents are useless
	}
	return min(n+others, batch)
}

// roomLocked returns the number of leases that an agent can take now: the number of its free slots
// or, if the files are small, so many that it is busy for a while.
func (a *Agent) roomLocked(ahead time.Duration) int {
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

// A plan is a chosen lease, and the limit of its link.
type plan struct {
	ActiveLease
	limit int
}

// Plans are leases that are being taken, by item.
type Plans map[int64]*plan

// Choose assigns a source and a mover to each candidate. full are the sources
// whose links are full, or that cannot be used now.
func (f *Leases) Choose(dest string, candidates []queue.Candidate) (choices []queue.Choice, plans Plans, full []string) {
	r := f.r
	now := r.now()
	plans = Plans{}
	addLocked := func(cand *queue.Candidate, source string, size int64, m method, p *plan) {
		p.Item, p.Request, p.Size, p.Mode, p.mover, p.Source.Site, p.Dest.Site = cand.ID, cand.Request, size, m.mode, m.mover, source, dest
		choices = append(choices, queue.Choice{Item: cand.ID, Source: source, Mode: m.mode})
		plans[cand.ID] = p
		r.beginTrialLocked(cand.ID, m.mover, source, dest)
		r.beginLocked(&p.ActiveLease, now)
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	most := r.siteLimitsLocked()
	for _, cand := range candidates {
		if cand.Check {
			if mover, ok := r.checkerOfLocked(dest); ok && r.blockedLocked(mover, dest) == "" {
				p := &plan{ActiveLease{seconds: float64(cand.Size) / checkRate}, checks}
				addLocked(&cand, dest, cand.Size, method{transfer.Check, mover}, p)
			} else {
				full = append(full, dest)
			}
			continue
		}
		if cand.Delete {
			if r.deleting[dest] < deletes && r.blockedLocked("", dest) == "" {
				addLocked(&cand, dest, 0, method{mode: transfer.Delete}, &plan{})
			} else {
				full = append(full, dest)
			}
			continue
		}
		ways := r.methodsLocked(dest, cand)
		ways.sources = slices.DeleteFunc(ways.sources, func(s string) bool { return r.skipLocked(cand.ID, ways.by[s].mover, s, dest) })
		full = append(full, ways.none...)
		ch := r.net.Choose(schedule.File{Bytes: max(cand.Size, 0), Dest: dest, Sources: ways.sources, Failures: cand.Failures, Max: most}, now)
		if ch.Source == "" {
			if ch.Wait != "" {
				full = append(full, ch.Wait)
			}
			continue
		}
		rank := ch.Rank()
		addLocked(&cand, ch.Source, cand.Size, ways.by[ch.Source], &plan{ActiveLease{want: cand.Want, seconds: rank.Copy}, rank.Limit})
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

// checkerOfLocked returns the agent that can verify a file at a site: the agent of the site or, if
// the site has no agent, the coordinator ("").
func (r *registry) checkerOfLocked(site string) (mover string, ok bool) {
	if r.sites[site].Kind != catalog.AgentSite {
		return "", true
	}
	a := r.agents[site]
	return site, a != nil && a.roomLocked(r.net.Rules().Ahead) > 0
}

// A Copy is a third-party copy that will be started. Its lease ends it through the context.
type Copy struct {
	Context context.Context
	*ActiveLease
}

// End releases the context after the copy.
func (c Copy) End() { c.stop(nil) }

// HandOver gives leases to their movers in place of the plans. copies are the leases without an
// agent. gone are the outcomes of leases that were cancelled meanwhile, or whose movers are no
// longer registered.
func (f *Leases) HandOver(ctx context.Context, leases []transfer.Lease, plans Plans) (copies []Copy, gone []transfer.Outcome) {
	r := f.r
	now := r.now()
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, p := range plans {
		r.endLocked(&p.ActiveLease, now)
	}
	r.plans = nil
	for _, l := range leases {
		p := plans[l.Item]
		l.AtOnce = p.limit
		h := &ActiveLease{Lease: l, mover: p.mover, want: p.want, seconds: p.seconds, given: now, heard: now, renewed: now}
		r.addLeaseLocked(h)
		a := r.agents[h.mover]
		switch {
		case p.cancelled:
			h.cancelled = true
			gone = append(gone, r.failedLocked(h, transfer.RequestCancelled, ErrCancelled.Error()))
		case h.mover == "":
			one := Copy{ActiveLease: h}
			one.Context, h.stop = context.WithCancelCause(ctx)
			h.dispatched = true
			copies = append(copies, one)
		case a != nil:
			a.ready = append(a.ready, h)
			a.wake()
		default:
			gone = append(gone, r.failedLocked(h, transfer.MoverStopped, "the agent of site "+h.mover+" has gone"))
		}
	}
	return copies, gone
}
