package coordinator

import (
	"cmp"
	"context"
	"errors"
	"math"
	"net"
	"net/http"
	"net/netip"
	"slices"
	"time"

	"weir/internal/say"
	"weir/internal/tpc"
	"weir/internal/wire"
	"weir/transfer"
	"weir/transfer/access"
	"weir/transfer/api"
	"weir/transfer/catalog/store"
	"weir/transfer/queue"
	"weir/transfer/sites"
)

const (
	pollTimeout   = 20 * time.Second // of a long poll
	reportEvery   = time.Second
	agentSlots    = 16      // concurrent transfers of an agent without a limit of its own
	mostSlots     = 4096    // of an agent
	mostHeld      = 1 << 16 // leases of an agent
	mostPerReport = 20000   // outcomes or progresses
)

// register registers an agent.
func (c *Coordinator) register(q *api.Call, in *transfer.Register) (none transfer.Registration, err error) {
	if err := q.NeedAgent(in.Site); err != nil {
		return none, err
	}
	if err := checkRegister(in); err != nil {
		return none, err
	}
	if err := c.agents.CheckReplaced(in); err != nil {
		return none, err
	}
	if err := c.checkRoot(q.Context(), in); err != nil {
		return none, err
	}
	if err := c.registry.Registered(q.Context(), in); err != nil {
		return none, err
	}
	if err := c.checkRoot(q.Context(), in); err != nil { // of a new site
		return none, err
	}
	lost := c.agents.Register(in, areaOf(q.Request))
	c.log.Info("agent registered", "site", in.Site, "host", in.Host, "version", in.Version, "holds", len(in.Holding), "lost", len(lost))
	c.copier.AddOrphans(lost)
	c.wake.Broadcast()
	return transfer.Registration{
		Now: c.now(), Issuer: c.access.Issuer().URL(), Audience: []string{access.Audience(in.Site)}, Keys: c.access.Issuer().Keys(),
		Report: reportEvery,
	}, nil
}

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
		if err := sites.CheckURL(in.URL); err != nil {
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
	if c.agents.RunsElsewhere(in) {
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

// deregister notes that an agent stops: its site is down at once, and leases that it has not begun
// are given out again.
func (c *Coordinator) deregister(q *api.Call, in *transfer.Deregister) (none struct{}, err error) {
	if err := q.NeedAgent(in.Site); err != nil {
		return none, err
	}
	if len(in.Holding) > mostHeld {
		return none, errTooManyLeases()
	}
	left, err := c.agents.Deregister(in)
	if err != nil {
		return none, err
	}
	c.log.Info("agent deregistered", "site", in.Site, "leases", len(left))
	_, known, err := c.registry.SetUp(q.Context(), in.Site, time.Time{}, false, "its agent was stopped at "+say.UTC(c.now()))
	if err == nil && known {
		err = c.applyOutcomes(q.Context(), "", left)
		c.wakeAll()
	}
	return none, err
}

// poll answers with leases as soon as there are any.
func (c *Coordinator) poll(q *api.Call, in *transfer.PollRequest) (none transfer.Work, err error) {
	if err := q.NeedAgent(in.Site); err != nil {
		return none, err
	}
	a, poll, never, err := c.agents.BeginPoll(in)
	if err != nil {
		return none, err
	}
	defer func() { c.agents.EndPoll(a, poll, q.Context().Err() != nil) }()
	if err := c.applyOutcomes(q.Context(), "", never); err != nil {
		return none, err
	}
	if err := c.registry.SetFree(q.Context(), in.Site, max(in.Free, -1)); err != nil {
		return none, err
	}
	c.wake.Broadcast()
	timeout := time.NewTimer(pollTimeout)
	defer timeout.Stop()
	for {
		if w, over := c.agents.TakeWork(a, poll); over || len(w.Leases)+len(w.Cancel)+len(w.Lost)+len(w.Scans)+len(w.Drop) > 0 {
			return w, nil
		}
		select {
		case <-a.Woken():
			if c.access.Revoked(q.Token) {
				return none, access.ErrRevoked(q.Token)
			}
		case <-timeout.C:
			return none, nil
		case <-q.Context().Done():
			return none, q.Context().Err()
		}
	}
}

// report applies the report of an agent.
func (c *Coordinator) report(q *api.Call, in *transfer.Report) (ack transfer.Ack, err error) {
	if err := q.NeedAgent(in.Site); err != nil {
		return ack, err
	}
	a, err := c.agents.Of(in.Site, in.Session)
	if err != nil {
		return ack, err
	}
	ctx := q.Context()
	outcomes := slices.Clone(in.Outcomes[:min(len(in.Outcomes), mostPerReport)])
	for i := range outcomes {
		c.sanitize(&outcomes[i])
	}
	c.copier.ForgetTemporaries(ctx, in.Site, outcomes)
	if err := c.applyOutcomes(ctx, in.Site, outcomes); err != nil {
		return ack, err
	}
	ack = c.agents.Progress(a, in.Progress)
	if err := c.samples.Keep(ctx, in.Site, in.Samples); err != nil {
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
	o.Reason = say.Bounded(o.Reason)
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

// applyOutcomes writes outcomes to the queue, reported by the agent of a site or ("") by the
// coordinator, and updates the registry. Outcomes of others' leases change nothing; they are
// acknowledged, so that they are not repeated.
func (c *Coordinator) applyOutcomes(ctx context.Context, from string, all []transfer.Outcome) error {
	if len(all) == 0 {
		return nil
	}
	all = c.leases.Classify(from, all)
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
	c.leases.ApplyChanges(from, changes, outcomes)
	c.wake.Broadcast()
	c.eventsChanged.Broadcast()
	for _, ch := range changes {
		if ch.Ended != "" {
			c.log.Info("request ended", "request", ch.Request, "status", string(ch.Ended))
		}
	}
}

// renew renews the leases in the database whose movers have reported, and aborts those whose requests
// were stopped. It is called before leases expire, so that leases of live movers survive an
// unavailable database.
func (c *Coordinator) renew(ctx context.Context) error {
	now := c.now()
	all := c.leases.Unrenewed(now)
	if len(all) == 0 {
		return nil
	}
	slices.SortFunc(all, func(a, b transfer.Progress) int { return cmp.Compare(a.Item, b.Item) })
	_, gone, err := c.queue.Renew(ctx, all)
	if err != nil {
		return err
	}
	return c.applyOutcomes(ctx, "", c.leases.Renewed(now, all, gone))
}

// areaOf returns the area from which a request comes.
func areaOf(r *http.Request) tpc.Area {
	from, err := netip.ParseAddrPort(r.RemoteAddr)
	if err != nil {
		return tpc.Public
	}
	if to, ok := r.Context().Value(http.LocalAddrContextKey).(*net.TCPAddr); ok && to.AddrPort().Addr().Unmap() == from.Addr().Unmap() {
		return tpc.Loopback // by whatever address of this machine
	}
	if area := tpc.AreaOf(from.Addr()); area != tpc.Special {
		return area
	}
	return tpc.Network // link-local: a neighbor
}
