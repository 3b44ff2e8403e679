package dispatch

import (
	"cmp"
	"net/http"
	"slices"
	"time"

	"weir/internal/tpc"
	"weir/internal/wire"
	"weir/transfer"
	"weir/transfer/queue"
)

const (
	renewEvery    = 3 * time.Second // leases in the database, at least
	mostReplaced  = 16              // sessions that are remembered as replaced
	mostPerReport = 20000           // progresses
)

// Register adds the agent of a site and replaces an earlier agent. lost are leases that another
// process may have.
func (f *Agents) Register(in *transfer.Register, area tpc.Area) (lost []*ActiveLease) {
	r := f.r
	r.mu.Lock()
	defer r.mu.Unlock()
	old := r.agents[in.Site]
	same := old != nil && old.Session == in.Session
	if old != nil && !same {
		list := append(r.replaced[in.Site], old.Session)
		r.replaced[in.Site] = list[max(0, len(list)-mostReplaced):]
	}
	a := &Agent{Register: *in, area: area, heard: r.now(), free: in.Free, bell: make(chan struct{}, 1)}
	r.agents[in.Site] = a
	r.resetBreakersLocked(in.Site)
	if old != nil {
		old.wake() // its poll returns
	}
	return r.takeOverLocked(a, same)
}

// RunsElsewhere reports whether an agent with another root runs for the site.
func (f *Agents) RunsElsewhere(in *transfer.Register) bool {
	r := f.r
	r.mu.Lock()
	defer r.mu.Unlock()
	a := r.agents[in.Site]
	return a != nil && a.Root != "" && a.Root != in.Root && (a.waiting || r.now().Sub(a.heard) < agentTimeout)
}

// CheckReplaced returns an error if another agent has replaced an agent: two agents of one site
// would replace each other for ever. When the other agent has left, the agent may register again.
func (f *Agents) CheckReplaced(in *transfer.Register) error {
	r := f.r
	r.mu.Lock()
	defer r.mu.Unlock()
	i := slices.Index(r.replaced[in.Site], in.Session)
	if i < 0 {
		return nil
	}
	a := r.agents[in.Site]
	if a == nil || !a.waiting && r.now().Sub(a.heard) >= agentTimeout {
		r.replaced[in.Site] = slices.Delete(r.replaced[in.Site], i, i+1)
		return nil
	}
	return wire.Refuse(http.StatusConflict, "another agent has registered for site %s, from %.100s: there can be only one", in.Site,
		cmp.Or(a.Host, "another machine"))
}

// takeOverLocked compares the leases that an agent holds with the leases that it was given. Leases
// that no process ever had, or that this agent did not receive, are given to it. Leases that
// another process may have are returned.
func (r *registry) takeOverLocked(a *Agent, same bool) (lost []*ActiveLease) {
	holds := epochs(a.Holding)
	for _, l := range r.leases {
		if l.mover != a.Site {
			continue
		}
		a.count++
		a.seconds += l.seconds
		switch epoch, ok := holds[l.Item]; {
		case ok && epoch == l.Epoch:
			l.dispatched, l.heard = true, r.now()
			delete(holds, l.Item)
		case !l.lost && (same || !l.dispatched):
			l.dispatched = false
			a.ready = append(a.ready, l)
		default:
			l.lost = true
			lost = append(lost, l)
		}
	}
	for item, epoch := range holds {
		a.lost = append(a.lost, transfer.LeaseID{Item: item, Epoch: epoch})
	}
	return lost
}

// epochs returns the latest epoch of each item.
func epochs(list []transfer.LeaseID) map[int64]int64 {
	m := make(map[int64]int64, len(list))
	for _, h := range list {
		m[h.Item] = max(m[h.Item], h.Epoch)
	}
	return m
}

// knownLocked returns the agent of a session.
func (r *registry) knownLocked(site, session string) (*Agent, error) {
	a := r.agents[site]
	if a == nil || a.Session != session {
		return nil, wire.Refuse(http.StatusGone, "the agent of site %s is not registered", site)
	}
	a.heard = r.now()
	return a, nil
}

// Deregister removes the agent of a site. left are the outcomes of leases that it has not begun.
func (f *Agents) Deregister(in *transfer.Deregister) (left []transfer.Outcome, err error) {
	r := f.r
	holds := epochs(in.Holding)
	r.mu.Lock()
	defer r.mu.Unlock()
	a, err := r.knownLocked(in.Site, in.Session)
	if err != nil {
		return nil, err
	}
	delete(r.agents, in.Site)
	a.wake() // its poll returns
	for _, l := range r.leases {
		if l.mover == in.Site && !l.lost && holds[l.Item] != l.Epoch {
			left = append(left, r.failedLocked(l, transfer.MoverStopped, "the agent of site "+in.Site+" was stopped"))
		}
	}
	return left, nil
}

// BeginPoll records that an agent waits for work. Dispatched leases that it does not hold did not
// reach it: they are sent again with this response or, if they were cancelled, have never begun.
func (f *Agents) BeginPoll(in *transfer.PollRequest) (_ *Agent, poll int, never []transfer.Outcome, err error) {
	r := f.r
	r.mu.Lock()
	defer r.mu.Unlock()
	a, err := r.knownLocked(in.Site, in.Session)
	if err != nil {
		return nil, 0, nil, err
	}
	a.polls++
	a.waiting, a.broken, a.slots = true, false, in.Slots
	a.wake() // an earlier poll returns
	holds := epochs(in.Holding)
	for _, l := range r.leases {
		switch {
		case l.mover != in.Site || !l.dispatched || l.lost || holds[l.Item] == l.Epoch:
		case l.cancelled:
			never = append(never, r.failedLocked(l, transfer.RequestCancelled, ErrCancelled.Error()))
		default:
			l.dispatched = false
			a.ready = append(a.ready, l)
		}
	}
	slices.SortStableFunc(a.ready, func(x, y *ActiveLease) int { return cmp.Compare(x.Item, y.Item) })
	a.scans = in.Scans
	return a, a.polls, never, nil
}

// EndPoll records that an agent no longer waits. broken means that it has disconnected.
func (f *Agents) EndPoll(a *Agent, poll int, broken bool) {
	r := f.r
	r.mu.Lock()
	defer r.mu.Unlock()
	a.heard = r.now()
	if a.polls == poll {
		a.waiting, a.broken = false, broken
	}
}

// TakeWork returns the work for an agent. over means that this poll is superseded.
func (f *Agents) TakeWork(a *Agent, poll int) (w transfer.Work, over bool) {
	r := f.r
	r.mu.Lock()
	defer r.mu.Unlock()
	if a.polls != poll || r.agents[a.Site] != a || r.closed {
		a.wake() // for the other poll
		return w, true
	}
	w.Cancel, w.Lost = a.takeAbortsLocked()
	for _, l := range a.ready {
		if r.leases[l.Item] == l && !l.cancelled {
			l.dispatched, l.heard = true, r.now()
			w.Leases = append(w.Leases, l.Lease)
		}
	}
	a.ready = nil
	w.Scans, w.Drop = r.scansOfLocked(a)
	return w, false
}

// takeAbortsLocked returns the leases that the agent has to abort, once.
func (a *Agent) takeAbortsLocked() (cancel, lost []transfer.LeaseID) {
	cancel, lost = a.cancel, a.lost
	a.cancel, a.lost = nil, nil
	return cancel, lost
}

// Of returns the agent of a session.
func (f *Agents) Of(site, session string) (*Agent, error) {
	r := f.r
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.knownLocked(site, session)
}

// ApplyChanges removes the leases of changed files. If an agent has reported the changes, it removes that agent's leases only.
func (f *Leases) ApplyChanges(from string, changes []queue.Change, outcomes []transfer.Outcome) {
	r := f.r
	by := make(map[transfer.LeaseID]*transfer.Outcome, len(outcomes))
	for i := range outcomes {
		by[outcomes[i].ID()] = &outcomes[i]
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, ch := range changes {
		l := r.leaseLocked(transfer.LeaseID{Item: ch.Item, Epoch: ch.Epoch})
		if l == nil || from != "" && from != l.mover {
			continue
		}
		if o := by[l.ID()]; o != nil && !ch.Stale {
			r.countMovedLocked(l, o.Moved-l.moved, o.End)
			r.net.Learn(transfer.Attempt{Item: l.Item, Source: l.Source.Site, Dest: l.Dest.Site, Mode: l.Mode, Outcome: *o})
		}
		r.removeLeaseLocked(l)
	}
}

// Progress records the progress of transfers, and returns the transfers to abort.
func (f *Agents) Progress(a *Agent, all []transfer.Progress) transfer.Ack {
	r := f.r
	now := r.now()
	ack := transfer.Ack{Now: now, Until: now.Add(r.lease)}
	r.mu.Lock()
	defer r.mu.Unlock()
	ack.Cancel, ack.Lost = a.takeAbortsLocked()
	for _, p := range all[:min(len(all), mostPerReport)] {
		id := transfer.LeaseID{Item: p.Item, Epoch: p.Epoch}
		l := r.leaseLocked(id)
		switch {
		case l == nil || l.mover != a.Site:
			ack.Lost = append(ack.Lost, id)
		case l.cancelled:
			ack.Cancel = append(ack.Cancel, id)
		default:
			r.advanceLocked(l, p.Stage, p.Moved)
		}
	}
	ack.Cancel, ack.Lost = unique(ack.Cancel), unique(ack.Lost)
	return ack
}

// countMovedLocked counts payload that a transfer has moved since the last report.
func (r *registry) countMovedLocked(l *ActiveLease, bytes int64, at time.Time) {
	bytes = max(0, bytes)
	r.net.Moved(l.Source.Site, l.Dest.Site, bytes, at)
	r.counters.Moved(l.Source.Site, l.Dest.Site, bytes)
}

// advanceLocked records the progress of a transfer.
func (r *registry) advanceLocked(l *ActiveLease, stage transfer.Stage, moved int64) {
	now := r.now()
	moved = max(moved, l.moved)
	if l.Size >= 0 {
		moved = min(moved, max(2*l.Size, l.moved))
	}
	r.countMovedLocked(l, moved-l.moved, now)
	if l.began.IsZero() && moved > 0 {
		l.began = now
	}
	l.moved, l.stage, l.heard = moved, stage, now
}

// Unrenewed returns the progress of the leases that have to be renewed in the database.
func (f *Leases) Unrenewed(now time.Time) (all []transfer.Progress) {
	r := f.r
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, l := range r.leases {
		alive := l.stop != nil || l.heard.After(l.renewed)
		if alive && !l.cancelled && !l.lost && now.Sub(l.renewed) >= renewEvery {
			all = append(all, transfer.Progress{Item: l.Item, Epoch: l.Epoch, Stage: l.stage, Moved: l.moved})
		}
	}
	return all
}

// Renewed records that leases were renewed, and aborts leases that are no longer in the database.
// never are the outcomes of aborted leases whose movers will not report them.
func (f *Leases) Renewed(now time.Time, all []transfer.Progress, gone []transfer.LeaseID) (never []transfer.Outcome) {
	r := f.r
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, p := range all {
		if l := r.leaseLocked(transfer.LeaseID{Item: p.Item, Epoch: p.Epoch}); l != nil {
			l.renewed = now
		}
	}
	for _, id := range gone {
		if l := r.leaseLocked(id); l != nil && r.abortLocked(l) {
			never = append(never, r.failedLocked(l, transfer.RequestCancelled, ErrCancelled.Error()))
		}
	}
	return never
}

// failedLocked returns the outcome of a lease whose mover does not report it.
func (r *registry) failedLocked(l *ActiveLease, fault transfer.ErrorClass, why string) transfer.Outcome {
	return transfer.Outcome{Item: l.Item, Epoch: l.Epoch, Fault: fault, Reason: why, Moved: l.moved, Begin: l.given, End: r.now()}
}

// abortLocked aborts a lease whose request was cancelled. never means that its mover has not received it
// and will not report it.
func (r *registry) abortLocked(l *ActiveLease) (never bool) {
	l.cancelled = true
	a := r.moverAgentLocked(l.mover)
	switch {
	case l.stop != nil:
		l.stop(ErrCancelled)
	case !l.dispatched:
		return true
	case a != nil:
		a.cancel = append(a.cancel, l.ID())
		a.wake()
	}
	return false
}

func unique(list []transfer.LeaseID) []transfer.LeaseID {
	slices.SortFunc(list, func(a, b transfer.LeaseID) int {
		return cmp.Or(cmp.Compare(a.Item, b.Item), cmp.Compare(a.Epoch, b.Epoch))
	})
	return slices.Compact(list)
}
