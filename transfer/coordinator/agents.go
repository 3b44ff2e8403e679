package coordinator

import (
	"cmp"
	"context"
	"errors"
	"math"
	"net/http"
	"slices"
	"time"

	"weir/internal/say"
	"weir/internal/wire"
	"weir/transfer"
	"weir/transfer/catalog/store"
	"weir/transfer/queue"
)

const (
	pollTimeout   = 20 * time.Second // of a long poll
	reportEvery   = time.Second
	renewEvery    = 3 * time.Second // leases in the database, at least
	agentSlots    = 16              // concurrent transfers of an agent that does not say how many
	mostSlots     = 4096            // of an agent
	mostHeld      = 1 << 16         // leases of an agent
	mostReplaced  = 16              // sessions that are remembered as replaced
	longestReason = 1000            // bytes of a sentence from outside
	mostPerReport = 20000           // outcomes or progresses
)

var errEnded = errors.New("the lease has ended")

// register registers an agent.
func (c *Coordinator) register(q *call, in *transfer.Register) (none transfer.Registration, err error) {
	if err := q.needAgent(in.Site); err != nil {
		return none, err
	}
	if err := checkRegister(in); err != nil {
		return none, err
	}
	if err := c.checkReplaced(in); err != nil {
		return none, err
	}
	if err := c.checkRoot(q.Context(), in); err != nil {
		return none, err
	}
	if err := c.siteRegistered(q.Context(), in); err != nil {
		return none, err
	}
	if err := c.checkRoot(q.Context(), in); err != nil { // of a new site
		return none, err
	}
	r := &c.registry
	r.mu.Lock()
	old := r.agents[in.Site]
	same := old != nil && old.Session == in.Session
	if old != nil && !same {
		list := append(r.replaced[in.Site], old.Session)
		r.replaced[in.Site] = list[max(0, len(list)-mostReplaced):]
	}
	a := &agent{Register: *in, area: areaOf(q.Request), heard: c.now(), free: in.Free, bell: make(chan struct{}, 1)}
	r.agents[in.Site] = a
	c.resetBreakersLocked(in.Site)
	if old != nil {
		old.wake() // its poll is answered
	}
	lost := c.takeOverLocked(a, same)
	r.mu.Unlock()
	c.log.Info("agent registered", "site", in.Site, "host", in.Host, "version", in.Version, "holds", len(in.Holding), "lost", len(lost))
	c.addOrphans(lost)
	c.wake.broadcast()
	return transfer.Registration{
		Now: c.now(), Issuer: c.issuer.URL(), Audience: []string{audience(in.Site)}, Keys: c.issuer.Keys(), Report: reportEvery,
	}, nil
}

// audience returns the name of a site's endpoint in tokens.
func audience(site string) string { return "weir://" + site }

func checkRegister(in *transfer.Register) error {
	problem := ""
	switch {
	case in.Session == "" || len(in.Session) > 100:
		return wire.Refuse(http.StatusBadRequest, "session is required, at most 100 bytes")
	case len(in.Holding) > mostHeld:
		return errTooManyLeases()
	case len(in.URL) > 1000 || len(in.Host) > 300 || len(in.Version) > 100 || len(in.Pin) > 64 || len(in.Root) > 100:
		return wire.Refuse(http.StatusBadRequest, "the agent's URL, host, version, pin or root is too long")
	case in.URL != "":
		if err := checkEndpointURL(in.URL); err != nil {
			problem = err.Error()
		}
	}
	if problem != "" {
		return wire.Refuse(http.StatusBadRequest, "the endpoint of site %s: %s", in.Site, problem)
	}
	if in.Slots <= 0 {
		in.Slots = agentSlots
	}
	in.Slots = min(in.Slots, mostSlots)
	return nil
}

func errTooManyLeases() error {
	return wire.Refuse(http.StatusBadRequest, "an agent may hold at most %d leases", mostHeld)
}

// checkRoot refuses an agent whose root is not the one that its site had: its storage is not mounted,
// or it was started with another folder while the right agent runs.
func (c *Coordinator) checkRoot(ctx context.Context, in *transfer.Register) error {
	if in.Root == "" {
		return nil
	}
	c.registry.mu.Lock()
	a := c.registry.agents[in.Site]
	runs := a != nil && a.Root != "" && a.Root != in.Root && (a.waiting || c.now().Sub(a.heard) < agentTimeout)
	c.registry.mu.Unlock()
	if runs {
		return wire.Refuse(http.StatusConflict, "another agent runs for site %s, with another root: there can be only one", in.Site)
	}
	err := c.catalog.Rooted(ctx, in.Site, in.Root, in.NewRoot)
	switch {
	case errors.Is(err, store.ErrNotFound): // it is new
		return nil
	case errors.Is(err, store.ErrOtherRoot):
		return wire.Refuse(http.StatusConflict,
			"the root of site %s is not the one it had: check that its storage is mounted and the folder is right (to start with a new one: "+
				"weir agent --new-root)", in.Site)
	}
	return err
}

// checkReplaced refuses an agent that another one has replaced: two agents of one site would replace
// each other for ever. When the other one has gone it may register again.
func (c *Coordinator) checkReplaced(in *transfer.Register) error {
	r := &c.registry
	r.mu.Lock()
	defer r.mu.Unlock()
	i := slices.Index(r.replaced[in.Site], in.Session)
	if i < 0 {
		return nil
	}
	a := r.agents[in.Site]
	if a == nil || !a.waiting && c.now().Sub(a.heard) >= agentTimeout {
		r.replaced[in.Site] = slices.Delete(r.replaced[in.Site], i, i+1)
		return nil
	}
	return wire.Refuse(http.StatusConflict, "another agent has registered for site %s, from %.100s: there can be only one", in.Site,
		cmp.Or(a.Host, "another machine"))
}

// takeOverLocked compares the leases that an agent holds with those that it was given. Leases that no
// process ever had, or that this one did not receive, are given to it; those that another process may
// have are returned.
func (c *Coordinator) takeOverLocked(a *agent, same bool) (lost []*activeLease) {
	holds := epochs(a.Holding)
	for _, l := range c.registry.leases {
		if l.mover != a.Site {
			continue
		}
		a.count++
		a.seconds += l.seconds
		switch epoch, ok := holds[l.Item]; {
		case ok && epoch == l.Epoch:
			l.dispatched, l.heard = true, c.now()
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
func (c *Coordinator) knownLocked(site, session string) (*agent, error) {
	a := c.registry.agents[site]
	if a == nil || a.Session != session {
		return nil, wire.Refuse(http.StatusGone, "the agent of site %s is not registered", site)
	}
	a.heard = c.now()
	return a, nil
}

// deregister notes that an agent stops: its site is down at once, and leases that it has not begun
// are given out again.
func (c *Coordinator) deregister(q *call, in *transfer.Deregister) (none struct{}, err error) {
	if err := q.needAgent(in.Site); err != nil {
		return none, err
	}
	if len(in.Holding) > mostHeld {
		return none, errTooManyLeases()
	}
	holds := epochs(in.Holding)
	c.registry.mu.Lock()
	a, err := c.knownLocked(in.Site, in.Session)
	if err != nil {
		c.registry.mu.Unlock()
		return none, err
	}
	delete(c.registry.agents, in.Site)
	a.wake() // its poll is answered
	var left []transfer.Outcome
	for _, l := range c.registry.leases {
		if l.mover == in.Site && !l.lost && holds[l.Item] != l.Epoch {
			left = append(left, c.failedLocked(l, transfer.MoverStopped, "the agent of site "+in.Site+" was stopped"))
		}
	}
	c.registry.mu.Unlock()
	c.log.Info("agent deregistered", "site", in.Site, "leases", len(left))
	_, known, err := c.setSite(q.Context(), in.Site, time.Time{}, false, "its agent was stopped at "+clockTime(c.now()))
	if err == nil && known {
		err = c.applyOutcomes(q.Context(), "", left)
		c.wakeAll()
	}
	return none, err
}

// poll answers with leases as soon as there are any.
func (c *Coordinator) poll(q *call, in *transfer.PollRequest) (none transfer.Work, err error) {
	if err := q.needAgent(in.Site); err != nil {
		return none, err
	}
	a, poll, never, err := c.beginPoll(in)
	if err != nil {
		return none, err
	}
	defer func() { c.endPoll(a, poll, q.Context().Err() != nil) }()
	if err := c.applyOutcomes(q.Context(), "", never); err != nil {
		return none, err
	}
	if err := c.siteFree(q.Context(), in.Site, max(in.Free, -1)); err != nil {
		return none, err
	}
	c.wake.broadcast()
	timeout := time.NewTimer(pollTimeout)
	defer timeout.Stop()
	for {
		if w, over := c.takeWork(a, poll); over || len(w.Leases)+len(w.Cancel)+len(w.Lost)+len(w.Scans)+len(w.Drop) > 0 {
			return w, nil
		}
		select {
		case <-a.bell:
			if c.revoked.has(q.token) {
				return none, errRevoked(q.token)
			}
		case <-timeout.C:
			return none, nil
		case <-q.Context().Done():
			return none, q.Context().Err()
		}
	}
}

// beginPoll notes that an agent waits for work. Dispatched leases that it does not hold did not reach
// it: they are for this answer again or, if they were cancelled, have never begun.
func (c *Coordinator) beginPoll(in *transfer.PollRequest) (_ *agent, poll int, never []transfer.Outcome, err error) {
	c.registry.mu.Lock()
	defer c.registry.mu.Unlock()
	a, err := c.knownLocked(in.Site, in.Session)
	if err != nil {
		return nil, 0, nil, err
	}
	a.polls++
	a.waiting, a.broken, a.slots = true, false, in.Slots
	a.wake() // an earlier poll is answered
	holds := epochs(in.Holding)
	for _, l := range c.registry.leases {
		switch {
		case l.mover != in.Site || !l.dispatched || l.lost || holds[l.Item] == l.Epoch:
		case l.cancelled:
			never = append(never, c.failedLocked(l, transfer.RequestCancelled, errCancelled.Error()))
		default:
			l.dispatched = false
			a.ready = append(a.ready, l)
		}
	}
	slices.SortStableFunc(a.ready, func(x, y *activeLease) int { return cmp.Compare(x.Item, y.Item) })
	a.scans = in.Scans
	return a, a.polls, never, nil
}

// endPoll notes that an agent does not wait any more. broken means that it has disconnected.
func (c *Coordinator) endPoll(a *agent, poll int, broken bool) {
	c.registry.mu.Lock()
	defer c.registry.mu.Unlock()
	a.heard = c.now()
	if a.polls == poll {
		a.waiting, a.broken = false, broken
	}
}

// takeWork returns the work for an agent. over means that this poll is superseded.
func (c *Coordinator) takeWork(a *agent, poll int) (w transfer.Work, over bool) {
	c.registry.mu.Lock()
	defer c.registry.mu.Unlock()
	if a.polls != poll || c.registry.agents[a.Site] != a || c.registry.closed {
		a.wake() // for the other poll
		return w, true
	}
	w.Cancel, w.Lost = a.takeAbortsLocked()
	for _, l := range a.ready {
		if c.registry.leases[l.Item] == l && !l.cancelled {
			l.dispatched, l.heard = true, c.now()
			w.Leases = append(w.Leases, l.Lease)
		}
	}
	a.ready = nil
	w.Scans, w.Drop = c.scansOfLocked(a)
	return w, false
}

// takeAbortsLocked returns the leases that the agent has to abort, once.
func (a *agent) takeAbortsLocked() (cancel, lost []transfer.LeaseID) {
	cancel, lost = a.cancel, a.lost
	a.cancel, a.lost = nil, nil
	return cancel, lost
}

// report applies the report of an agent.
func (c *Coordinator) report(q *call, in *transfer.Report) (ack transfer.Ack, err error) {
	if err := q.needAgent(in.Site); err != nil {
		return ack, err
	}
	c.registry.mu.Lock()
	a, err := c.knownLocked(in.Site, in.Session)
	c.registry.mu.Unlock()
	if err != nil {
		return ack, err
	}
	ctx := q.Context()
	outcomes := slices.Clone(in.Outcomes[:min(len(in.Outcomes), mostPerReport)])
	for i := range outcomes {
		c.sanitize(&outcomes[i])
	}
	c.forgetTemporaries(ctx, in.Site, outcomes)
	if err := c.applyOutcomes(ctx, in.Site, outcomes); err != nil {
		return ack, err
	}
	ack = c.progress(a, in.Progress)
	if err := c.saveSamples(ctx, a, in.Samples); err != nil {
		return ack, err
	}
	if ack.Drop, err = c.scanned(ctx, in.Site, in.Found); err != nil {
		return ack, err
	}
	ack.Over, err = c.queue.Over(ctx, in.Parts[:min(len(in.Parts), transfer.MaxParts)])
	return ack, err
}

// sanitize replaces impossible values of an outcome.
func (c *Coordinator) sanitize(o *transfer.Outcome) {
	now := c.now()
	o.Reason = sentence(o.Reason)
	o.Size, o.Moved, o.Resumed = max(0, o.Size), max(0, o.Moved), max(0, o.Resumed)
	if o.CPU < 0 || math.IsNaN(o.CPU) || o.CPU > 1e9 {
		o.CPU = 0
	}
	o.After = min(max(0, o.After), 24*time.Hour)
	if o.End.IsZero() || o.End.After(now) {
		o.End = now
	}
	if o.Begin.IsZero() || o.Begin.After(o.End) || o.End.Sub(o.Begin) > 365*24*time.Hour {
		o.Begin = o.End
	}
}

// sentence makes a text from outside fit to be shown.
func sentence(s string) string {
	s = say.Plain(s)
	if len(s) > longestReason {
		cut := longestReason
		for cut > 0 && s[cut]&0xC0 == 0x80 {
			cut--
		}
		s = s[:cut] + "..."
	}
	return s
}

// applyOutcomes writes outcomes to the queue, reported by the agent of a site or ("") by the
// coordinator, and updates the registry. Outcomes of others' leases change nothing; they are
// acknowledged, so that they are not repeated.
func (c *Coordinator) applyOutcomes(ctx context.Context, from string, all []transfer.Outcome) error {
	if len(all) == 0 {
		return nil
	}
	all = c.classify(from, all)
	changes, err := c.queue.Report(ctx, from, all)
	if err == nil {
		c.applyChanges(from, changes, all)
	}
	return err
}

// applyChanges removes the leases of changed files, of those that the agent of a site has reported its own only, and wakes whoever waits
// for changes.
func (c *Coordinator) applyChanges(from string, changes []queue.Change, outcomes []transfer.Outcome) {
	if len(changes) == 0 {
		return
	}
	by := make(map[transfer.LeaseID]*transfer.Outcome, len(outcomes))
	for i := range outcomes {
		by[outcomes[i].ID()] = &outcomes[i]
	}
	c.registry.mu.Lock()
	for _, ch := range changes {
		l := c.registry.leaseLocked(transfer.LeaseID{Item: ch.Item, Epoch: ch.Epoch})
		if l == nil || from != "" && from != l.mover {
			continue
		}
		if o := by[l.ID()]; o != nil && !ch.Stale {
			c.countMovedLocked(l, o.Moved-l.moved, o.End)
			c.registry.net.Learn(transfer.Attempt{Item: l.Item, Source: l.Source.Site, Dest: l.Dest.Site, Mode: l.Mode, Outcome: *o})
		}
		c.removeLeaseLocked(l)
	}
	c.registry.mu.Unlock()
	c.wake.broadcast()
	c.eventsChanged.broadcast()
	for _, ch := range changes {
		if ch.Ended != "" {
			c.log.Info("request ended", "request", ch.Request, "status", string(ch.Ended))
		}
	}
}

// progress records the progress of transfers, and answers which to abort.
func (c *Coordinator) progress(a *agent, all []transfer.Progress) transfer.Ack {
	now := c.now()
	ack := transfer.Ack{Now: now, Until: now.Add(c.conf.Lease)}
	c.registry.mu.Lock()
	defer c.registry.mu.Unlock()
	ack.Cancel, ack.Lost = a.takeAbortsLocked()
	for _, p := range all[:min(len(all), mostPerReport)] {
		id := transfer.LeaseID{Item: p.Item, Epoch: p.Epoch}
		l := c.registry.leaseLocked(id)
		switch {
		case l == nil || l.mover != a.Site:
			ack.Lost = append(ack.Lost, id)
		case l.cancelled:
			ack.Cancel = append(ack.Cancel, id)
		default:
			c.advanceLocked(l, p.Stage, p.Moved)
		}
	}
	ack.Cancel, ack.Lost = unique(ack.Cancel), unique(ack.Lost)
	return ack
}

// countMovedLocked counts payload that a transfer has moved since the last report.
func (c *Coordinator) countMovedLocked(l *activeLease, bytes int64, at time.Time) {
	bytes = max(0, bytes)
	c.registry.net.Moved(l.Source.Site, l.Dest.Site, bytes, at)
	c.counters.Moved(l.Source.Site, l.Dest.Site, bytes)
}

// advanceLocked records the progress of a transfer.
func (c *Coordinator) advanceLocked(l *activeLease, stage transfer.Stage, moved int64) {
	now := c.now()
	moved = max(moved, l.moved)
	if l.Size >= 0 {
		moved = min(moved, max(2*l.Size, l.moved))
	}
	c.countMovedLocked(l, moved-l.moved, now)
	if l.began.IsZero() && moved > 0 {
		l.began = now
	}
	l.moved, l.stage, l.heard = moved, stage, now
}

// renew renews the leases in the database whose movers have reported, and aborts those whose requests
// were stopped. It is called before leases expire, so that leases of live movers survive an
// unavailable database.
func (c *Coordinator) renew(ctx context.Context) error {
	now := c.now()
	var all []transfer.Progress
	c.registry.mu.Lock()
	for _, l := range c.registry.leases {
		alive := l.stop != nil || l.heard.After(l.renewed)
		if alive && !l.cancelled && !l.lost && now.Sub(l.renewed) >= renewEvery {
			all = append(all, transfer.Progress{Item: l.Item, Epoch: l.Epoch, Stage: l.stage, Moved: l.moved})
		}
	}
	c.registry.mu.Unlock()
	if len(all) == 0 {
		return nil
	}
	slices.SortFunc(all, func(a, b transfer.Progress) int { return cmp.Compare(a.Item, b.Item) })
	_, gone, err := c.queue.Renew(ctx, all)
	if err != nil {
		return err
	}
	var never []transfer.Outcome
	c.registry.mu.Lock()
	for _, p := range all {
		if l := c.registry.leaseLocked(transfer.LeaseID{Item: p.Item, Epoch: p.Epoch}); l != nil {
			l.renewed = now
		}
	}
	for _, id := range gone {
		if l := c.registry.leaseLocked(id); l != nil && c.abortLocked(l) {
			never = append(never, c.failedLocked(l, transfer.RequestCancelled, errCancelled.Error()))
		}
	}
	c.registry.mu.Unlock()
	return c.applyOutcomes(ctx, "", never)
}

// failedLocked returns the outcome of a lease whose mover does not report it.
func (c *Coordinator) failedLocked(l *activeLease, fault transfer.ErrorClass, why string) transfer.Outcome {
	return transfer.Outcome{Item: l.Item, Epoch: l.Epoch, Fault: fault, Reason: why, Moved: l.moved, Begin: l.given, End: c.now()}
}

// abortLocked aborts a lease whose request was cancelled. never means that its mover has not received it
// and will not report it.
func (c *Coordinator) abortLocked(l *activeLease) (never bool) {
	l.cancelled = true
	a := c.registry.moverAgentLocked(l.mover)
	switch {
	case l.stop != nil:
		l.stop(errCancelled)
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
