package v1

import (
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
func (h *Handlers) register(q *api.Call, in *transfer.Register) (none transfer.Registration, err error) {
	if err := q.NeedAgent(in.Site); err != nil {
		return none, err
	}
	if err := checkRegister(in); err != nil {
		return none, err
	}
	if err := h.State.Agents.CheckReplaced(in); err != nil {
		return none, err
	}
	if err := h.checkRoot(q.Context(), in); err != nil {
		return none, err
	}
	if err := h.Registry.Registered(q.Context(), in); err != nil {
		return none, err
	}
	if err := h.checkRoot(q.Context(), in); err != nil { // again, for a new site
		return none, err
	}
	lost := h.State.Agents.Register(in, areaOf(q.Request))
	h.Log.Info("agent registered", "site", in.Site, "host", in.Host, "version", in.Version, "holds", len(in.Holding), "lost", len(lost))
	h.Copier.AddOrphans(lost)
	h.Wake()
	return transfer.Registration{
		Now: h.Now(), Issuer: h.Access.Issuer().URL(), Audience: []string{access.Audience(in.Site)}, Keys: h.Access.Issuer().Keys(),
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

// checkRoot returns an error if the root of an agent is not the former root of its site. Then its
// storage is not mounted, or the agent was started with another folder while the right agent runs.
func (h *Handlers) checkRoot(ctx context.Context, in *transfer.Register) error {
	if in.Root == "" {
		return nil
	}
	if h.State.Agents.RunsElsewhere(in) {
		return wire.Refuse(http.StatusConflict, "another agent runs for site %s, with another root: there can be only one", in.Site)
	}
	err := h.Catalog.Rooted(ctx, in.Site, in.Root, in.NewRoot)
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

// deregister records that an agent stops: its site is down at once, and leases that it has not
// begun are given out again.
func (h *Handlers) deregister(q *api.Call, in *transfer.Deregister) (none struct{}, err error) {
	if err := q.NeedAgent(in.Site); err != nil {
		return none, err
	}
	if len(in.Holding) > mostHeld {
		return none, errTooManyLeases()
	}
	left, err := h.State.Agents.Deregister(in)
	if err != nil {
		return none, err
	}
	h.Log.Info("agent deregistered", "site", in.Site, "leases", len(left))
	_, known, err := h.Registry.SetUp(q.Context(), in.Site, time.Time{}, false, "its agent was stopped at "+say.UTC(h.Now()))
	if err == nil && known {
		err = h.Apply(q.Context(), "", left)
		h.WakeAll()
	}
	return none, err
}

// poll returns leases as soon as leases are available.
func (h *Handlers) poll(q *api.Call, in *transfer.PollRequest) (none transfer.Work, err error) {
	if err := q.NeedAgent(in.Site); err != nil {
		return none, err
	}
	a, poll, never, err := h.State.Agents.BeginPoll(in)
	if err != nil {
		return none, err
	}
	defer func() { h.State.Agents.EndPoll(a, poll, q.Context().Err() != nil) }()
	if err := h.Apply(q.Context(), "", never); err != nil {
		return none, err
	}
	if err := h.Registry.SetFree(q.Context(), in.Site, max(in.Free, -1)); err != nil {
		return none, err
	}
	h.Wake()
	timeout := time.NewTimer(pollTimeout)
	defer timeout.Stop()
	for {
		if w, over := h.State.Agents.TakeWork(a, poll); over || len(w.Leases)+len(w.Cancel)+len(w.Lost)+len(w.Scans)+len(w.Drop) > 0 {
			return w, nil
		}
		select {
		case <-a.Woken():
			if h.Access.Revoked(q.Token) {
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
func (h *Handlers) report(q *api.Call, in *transfer.Report) (ack transfer.Ack, err error) {
	if err := q.NeedAgent(in.Site); err != nil {
		return ack, err
	}
	a, err := h.State.Agents.Of(in.Site, in.Session)
	if err != nil {
		return ack, err
	}
	ctx := q.Context()
	outcomes := slices.Clone(in.Outcomes[:min(len(in.Outcomes), mostPerReport)])
	for i := range outcomes {
		h.sanitize(&outcomes[i])
	}
	h.Copier.ForgetTemporaries(ctx, in.Site, outcomes)
	if err := h.Apply(ctx, in.Site, outcomes); err != nil {
		return ack, err
	}
	ack = h.State.Agents.Progress(a, in.Progress)
	if err := h.Samples.Keep(ctx, in.Site, in.Samples); err != nil {
		return ack, err
	}
	if ack.Drop, err = h.Scans.Found(ctx, in.Site, in.Found); err != nil {
		return ack, err
	}
	ack.Over, err = h.Queue.Over(ctx, in.Parts[:min(len(in.Parts), transfer.MaxParts)])
	return ack, err
}

// sanitize replaces impossible values of an outcome.
func (h *Handlers) sanitize(o *transfer.Outcome) {
	now := h.Now()
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

// areaOf returns the area from which a request comes.
func areaOf(r *http.Request) tpc.Area {
	from, err := netip.ParseAddrPort(r.RemoteAddr)
	if err != nil {
		return tpc.Public
	}
	if to, ok := r.Context().Value(http.LocalAddrContextKey).(*net.TCPAddr); ok && to.AddrPort().Addr().Unmap() == from.Addr().Unmap() {
		return tpc.Loopback // by any address of this machine
	}
	if area := tpc.AreaOf(from.Addr()); area != tpc.Special {
		return area
	}
	return tpc.Network // link-local: a neighbor
}
