package coordinator

import (
	"cmp"
	"context"
	"errors"
	"net/http"
	"slices"
	"time"

	"weir/internal/wire"
	"weir/transfer"
	"weir/transfer/catalog"
	"weir/transfer/catalog/store"
)

const (
	patience    = 20 * time.Second // for which a question for work waits
	reportEvery = time.Second
	agentSlots  = 16      // copies of an agent that does not say how many
	mostSlots   = 4096    // that an agent may say
	mostHeld    = 1 << 16 // leases that an agent may say it holds
	mostOusted  = 16      // sessions that are remembered as replaced
)

var errOver = errors.New("the copy is over")

// mine refuses who is not the agent of a site.
func mine(r *http.Request, site string) error {
	if err := catalog.CheckSite(site); err != nil {
		return wire.Refuse(http.StatusBadRequest, "%s", err.Error())
	}
	_, err := need(r, agentOf+site)
	return err
}

// register lets an agent in.
func (c *Coordinator) register(r *http.Request, in *transfer.Register) (transfer.Registration, error) {
	if err := mine(r, in.Site); err != nil {
		return transfer.Registration{}, err
	}
	if err := checkRegister(in); err != nil {
		return transfer.Registration{}, err
	}
	if err := c.ousted(in); err != nil {
		return transfer.Registration{}, err
	}
	if err := c.rooted(r.Context(), in); err != nil {
		return transfer.Registration{}, c.refusal(err)
	}
	if err := c.siteCame(r.Context(), in); err != nil {
		return transfer.Registration{}, c.refusal(err)
	}
	if err := c.rooted(r.Context(), in); err != nil { // of a site that was new
		return transfer.Registration{}, c.refusal(err)
	}
	c.registry.mu.Lock()
	old := c.registry.agents[in.Site]
	if old != nil && old.Session != in.Session {
		c.registry.ousted[in.Site] = append(c.registry.ousted[in.Site], old.Session)
		if n := len(c.registry.ousted[in.Site]); n > mostOusted {
			c.registry.ousted[in.Site] = c.registry.ousted[in.Site][n-mostOusted:]
		}
	}
	a := &agent{Register: *in, area: cameFrom(r), heard: c.now(), free: in.Free, bell: make(chan struct{}, 1)}
	c.registry.agents[in.Site] = a
	c.renewed(in.Site)
	if old != nil {
		old.ring() // its question is answered: it is not known any more
	}
	lost := c.takeOver(a, old != nil && old.Session == in.Session)
	c.registry.mu.Unlock()
	c.log.Info("an agent has come in", "site", in.Site, "host", in.Host, "version", in.Version, "holds", len(in.Holding), "lost", len(lost))
	c.ask(lost)
	c.wake.give()
	return c.welcome(in.Site), nil
}

// rooted refuses an agent whose root is not the one that its site had: its storage is
// not mounted, or it was started with another folder while the right one runs.
func (c *Coordinator) rooted(ctx context.Context, in *transfer.Register) error {
	if in.Root == "" {
		return nil
	}
	c.registry.mu.Lock()
	a := c.registry.agents[in.Site]
	runs := a != nil && a.Root != "" && a.Root != in.Root && (a.waiting || c.now().Sub(a.heard) < silence)
	c.registry.mu.Unlock()
	if runs {
		return wire.Refuse(http.StatusConflict, "another agent runs for site %s, with another root: there can be only one", in.Site)
	}
	err := c.catalog.Rooted(ctx, in.Site, in.Root, in.NewRoot)
	switch {
	case errors.Is(err, store.ErrNotFound): // it is new
		return nil
	case errors.Is(err, store.ErrOtherRoot):
		return wire.Refuse(http.StatusConflict, "the root of site %s is another one than before: is its storage mounted, is it the right folder? (if it is to begin anew: weir agent --new-root)", in.Site)
	}
	return err
}

// ousted refuses an agent in whose place another one has come: two for one site
// would take turns in throwing each other out. When that one has gone it may come
// back: somebody has ended the one that was started by mistake.
func (c *Coordinator) ousted(in *transfer.Register) error {
	c.registry.mu.Lock()
	defer c.registry.mu.Unlock()
	i := slices.Index(c.registry.ousted[in.Site], in.Session)
	if i < 0 {
		return nil
	}
	a := c.registry.agents[in.Site]
	if a == nil || !a.waiting && c.now().Sub(a.heard) >= silence {
		c.registry.ousted[in.Site] = slices.Delete(c.registry.ousted[in.Site], i, i+1)
		return nil
	}
	other := "another machine"
	if a.Host != "" {
		other = a.Host
	}
	return wire.Refuse(http.StatusConflict, "another agent has come in for site %s, from %.100s: there can be only one", in.Site, other)
}

func (c *Coordinator) welcome(site string) transfer.Registration {
	return transfer.Registration{
		Now: c.now(), Issuer: c.issuer.URL(), Audience: []string{audience(site)}, Keys: c.issuer.Keys(),
		Report: reportEvery,
	}
}

// audience is what the door of a site is called in tokens.
func audience(site string) string { return "weir://" + site }

func checkRegister(in *transfer.Register) error {
	switch {
	case in.Session == "" || len(in.Session) > 100:
		return wire.Refuse(http.StatusBadRequest, "an agent names its session, in at most 100 letters")
	case len(in.Holding) > mostHeld:
		return wire.Refuse(http.StatusBadRequest, "an agent holds at most %d leases", mostHeld)
	case len(in.URL) > 1000 || len(in.Host) > 300 || len(in.Version) > 100 || len(in.Pin) > 64 || len(in.Root) > 100:
		return wire.Refuse(http.StatusBadRequest, "the agent's URL, host, version, pin or root is too long")
	}
	if in.URL != "" {
		if err := checkEndpointURL(in.URL); err != nil {
			return wire.Refuse(http.StatusBadRequest, "the door of site %s: %s", in.Site, err.Error())
		}
	}
	if in.Slots <= 0 {
		in.Slots = agentSlots
	}
	in.Slots = min(in.Slots, mostSlots)
	return nil
}

// takeOver compares what an agent that comes in holds with what it was given. What
// no process ever had, or this same one did not get, is given to it; what another
// one may have is returned. The registry is locked.
func (c *Coordinator) takeOver(a *agent, same bool) (lost []*activeLease) {
	holds := holdings(a.Holding)
	for _, l := range c.registry.leases {
		if l.mover != a.Site {
			continue
		}
		a.count++
		a.seconds += l.seconds
		if epoch, ok := holds[l.Item]; ok && epoch == l.Epoch {
			l.dispatched, l.heard = true, c.now()
			delete(holds, l.Item)
			continue
		}
		if !l.lost && (same || !l.dispatched) {
			l.dispatched = false
			a.ready = append(a.ready, l)
			continue
		}
		l.lost = true
		lost = append(lost, l)
	}
	for item, epoch := range holds {
		a.lost = append(a.lost, transfer.LeaseID{Item: item, Epoch: epoch})
	}
	return lost
}

func holdings(list []transfer.LeaseID) map[int64]int64 {
	m := make(map[int64]int64, len(list))
	for _, h := range list {
		m[h.Item] = max(m[h.Item], h.Epoch)
	}
	return m
}

// known returns the agent of a session. The registry is locked.
func (c *Coordinator) known(site, session string) (*agent, error) {
	a := c.registry.agents[site]
	if a == nil || a.Session != session {
		return nil, wire.Refuse(http.StatusGone, "the agent of %s is not known: it is to say hello", site)
	}
	a.heard = c.now()
	return a, nil
}

// poll answers with leases, as soon as there are any.
func (c *Coordinator) poll(r *http.Request, in *transfer.PollRequest) (transfer.Work, error) {
	if err := mine(r, in.Site); err != nil {
		return transfer.Work{}, err
	}
	a, ask, never, err := c.beginAsk(in)
	if err != nil {
		return transfer.Work{}, err
	}
	defer func() { c.endAsk(a, ask, r.Context().Err() != nil) }()
	if err := c.ended(r.Context(), "", never); err != nil {
		return transfer.Work{}, c.refusal(err)
	}
	if err := c.siteFree(r.Context(), in.Site, max(in.Free, -1)); err != nil {
		return transfer.Work{}, c.refusal(err)
	}
	c.wake.give()
	late := time.NewTimer(patience)
	defer late.Stop()
	for {
		if w, over := c.answerAsk(a, ask); over || len(w.Leases)+len(w.Cancel)+len(w.Lost)+len(w.Scans)+len(w.Drop) > 0 {
			return w, nil
		}
		select {
		case <-a.bell:
			if id := callerOf(r).token; c.revoked.has(id) {
				return transfer.Work{}, errRevoked(id)
			}
		case <-late.C:
			return transfer.Work{}, nil
		case <-r.Context().Done():
			return transfer.Work{}, r.Context().Err()
		}
	}
}

// beginAsk notes that an agent waits for work. Leases that it was told of, and
// does not name, did not reach it: they are for this answer again, or, if they were
// cancelled, have never begun.
func (c *Coordinator) beginAsk(in *transfer.PollRequest) (_ *agent, ask int, never []transfer.Outcome, err error) {
	c.registry.mu.Lock()
	defer c.registry.mu.Unlock()
	a, err := c.known(in.Site, in.Session)
	if err != nil {
		return nil, 0, nil, err
	}
	a.asks++
	a.waiting, a.broken, a.slots = true, false, in.Slots
	a.ring() // a question before this one is answered
	holds := holdings(in.Holding)
	for _, l := range c.registry.leases {
		if l.mover != in.Site || !l.dispatched || l.lost {
			continue
		}
		switch {
		case holds[l.Item] == l.Epoch:
		case l.cancelled:
			never = append(never, c.without(l, transfer.RequestCancelled, errCancelled.Error()))
		default:
			l.dispatched = false
			a.ready = append(a.ready, l)
		}
	}
	slices.SortStableFunc(a.ready, func(x, y *activeLease) int { return cmp.Compare(x.Item, y.Item) })
	a.scans = in.Scans
	return a, a.asks, never, nil
}

// endAsk notes that an agent waits no longer. broken: nobody is there any more to
// take the answer.
func (c *Coordinator) endAsk(a *agent, ask int, broken bool) {
	c.registry.mu.Lock()
	defer c.registry.mu.Unlock()
	a.heard = c.now()
	if a.asks == ask {
		a.waiting, a.broken = false, broken
	}
}

// quiet is how long the agent may say nothing until its site counts as down.
func (a *agent) quiet() time.Duration {
	if a.broken {
		return hangUp
	}
	return silence
}

// answerAsk takes what there is for an agent. over: there is another question, or
// another agent, to answer.
func (c *Coordinator) answerAsk(a *agent, ask int) (w transfer.Work, over bool) {
	c.registry.mu.Lock()
	defer c.registry.mu.Unlock()
	if a.asks != ask || c.registry.agents[a.Site] != a || c.registry.full {
		a.ring() // for the other question
		return w, true
	}
	w.Cancel, w.Lost = a.cancel, a.lost
	a.cancel, a.lost = nil, nil
	for _, l := range a.ready {
		if c.registry.leases[l.Item] == l && !l.cancelled {
			l.dispatched, l.heard = true, c.now()
			w.Leases = append(w.Leases, l.Lease)
		}
	}
	a.ready = nil
	w.Scans, w.Drop = c.scansOf(a)
	return w, false
}

// report takes over what an agent has to tell.
func (c *Coordinator) report(r *http.Request, in *transfer.Report) (transfer.Ack, error) {
	if err := mine(r, in.Site); err != nil {
		return transfer.Ack{}, err
	}
	c.registry.mu.Lock()
	a, err := c.known(in.Site, in.Session)
	c.registry.mu.Unlock()
	if err != nil {
		return transfer.Ack{}, err
	}
	ctx := r.Context()
	if err := c.outcomes(ctx, in.Site, in.Outcomes); err != nil {
		return transfer.Ack{}, c.refusal(err)
	}
	ack := c.progress(a, in.Progress)
	if err := c.samples(ctx, a, in.Samples); err != nil {
		return transfer.Ack{}, c.refusal(err)
	}
	if ack.Drop, err = c.found(ctx, in.Site, in.Found); err != nil {
		return transfer.Ack{}, c.refusal(err)
	}
	if ack.Over, err = c.queue.Over(ctx, in.Parts[:min(len(in.Parts), transfer.MaxParts)]); err != nil {
		return transfer.Ack{}, c.refusal(err)
	}
	return ack, nil
}

func (c *Coordinator) clock(*http.Request, *struct{}) (transfer.Clock, error) {
	return transfer.Clock{Now: c.now()}, nil
}
