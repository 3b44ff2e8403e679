// Package requests submits, changes and cancels requests for a coordinator's users, within their rights and quotas.
package requests

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"net/http"
	"slices"
	"time"

	"weir/internal/tpc"
	"weir/internal/unit"
	"weir/internal/wire"
	"weir/transfer"
	"weir/transfer/access"
	"weir/transfer/catalog"
	"weir/transfer/dispatch"
	"weir/transfer/fts"
	"weir/transfer/health"
	"weir/transfer/queue"
	"weir/transfer/sites"
)

const longestReason = 1000 // bytes of a user's reason

// A Config configures a Service.
type Config struct {
	Approve   int64 // requests of up to this many bytes need no approval; negative: no request does
	UserQuota Quota // of each user
	VOQuota   Quota // of the users of each virtual organization together
	State     dispatch.State
	Registry  *sites.Registry
	Access    *access.Control
	Queue     *queue.Queue
	Health    *health.Health
	Log       *slog.Logger
	Now       func() time.Time
	Apply     func(ctx context.Context, all []transfer.Outcome) error // writes outcomes to the queue
	Wake      func()                                                  // called when requests have changed
}

// A Service changes requests. It can be used concurrently.
type Service struct {
	conf     Config
	leases   *dispatch.Leases
	sites    *dispatch.Sites
	registry *sites.Registry
	access   *access.Control
	queue    *queue.Queue
	health   *health.Health
	log      *slog.Logger
	now      func() time.Time
	apply    func(ctx context.Context, all []transfer.Outcome) error
	wake     func()
	quotas   quotas
}

// New returns a Service.
func New(c Config) *Service {
	return &Service{conf: c, leases: c.State.Leases, sites: c.State.Sites, registry: c.Registry, access: c.Access, queue: c.Queue,
		health: c.Health, log: c.Log, now: c.Now, apply: c.Apply, wake: c.Wake}
}

// Submit adds a request.
func (c *Service) Submit(ctx context.Context, w access.Caller, in *transfer.Submission) (transfer.Request, error) {
	if in.Approve && !w.Has(access.MayApprove) {
		return transfer.Request{}, wire.Refuse(http.StatusForbidden,
			"to approve it at once requires the role %s: submit it without approval, and somebody else approves it",
			transfer.RoleNames(access.MayApprove))
	}
	if err := cmp.Or(c.refuseBanned(w, in.To), c.checkMode(in)); err != nil {
		return transfer.Request{}, err
	}
	done, err := c.Admit(ctx, w, max(len(in.Files), 1))
	if err != nil {
		return transfer.Request{}, err
	}
	defer done()
	in.Approve = in.Approve || c.conf.Approve < 0
	r, err := c.queue.Submit(ctx, w.Name, *in)
	if err == nil && r.Status == transfer.Awaiting && r.Asked.Bytes <= c.conf.Approve {
		why := fmt.Sprintf("%s are no more than %s", unit.Bytes(float64(r.Asked.Bytes)), unit.Bytes(float64(c.conf.Approve)))
		r, err = c.queue.Approve(ctx, r.ID, "rule", why)
	}
	if err != nil {
		return r, err
	}
	c.log.Info("request submitted", "request", r.ID, "by", w.Name, "dataset", in.Dataset, "to", in.To, "status", string(r.Status),
		"rule", r.Reason)
	c.wake()
	return r, nil
}

// refuseBanned returns an error for banned users, and for requests to a banned site.
func (c *Service) refuseBanned(w access.Caller, to string) error {
	err := c.RefuseBanned(w)
	if b, banned := c.sites.Ban(to); err == nil && banned && b.Status != dispatch.BanAccepts {
		err = errors.New(b.Why())
	}
	if err == nil {
		return nil
	}
	return wire.Refuse(http.StatusForbidden, "%s", err)
}

// checkMode returns an error for modes that the destination does not support.
func (c *Service) checkMode(in *transfer.Submission) error {
	to, known := c.sites.Get(in.To)
	if in.Mode == transfer.Third && known && to.Kind == catalog.AgentSite && to.URL == "" {
		return wire.Refuse(http.StatusConflict,
			"mode third: site %s has no endpoint that others can reach (its agent runs with --no-endpoint): use pull, or omit the mode", in.To)
	}
	return nil
}

// A Decision changes a request.
type Decision func(ctx context.Context, id int64, by, reason string) (transfer.Request, error)

// Decide changes a request, if the caller may. "what" is the name of the decision.
func (c *Service) Decide(ctx context.Context, w access.Caller, number int64, what, reason string,
	decide Decision) (transfer.Request, error) {
	if err := c.mayDecide(ctx, w, number, what); err != nil {
		return transfer.Request{}, err
	}
	if len(reason) > longestReason {
		return transfer.Request{}, wire.Refuse(http.StatusBadRequest, "the reason has more than %d bytes", longestReason)
	}
	r, err := decide(ctx, number, w.Name, reason)
	if err == nil {
		c.log.Info("request decided", "request", number, "decision", what, "by", w.Name)
		c.wake()
	}
	return r, err
}

// mayDecide returns an error for callers who may not decide. Users may cancel and retry their own
// requests.
func (c *Service) mayDecide(ctx context.Context, w access.Caller, number int64, what string) error {
	if w.Has(access.MayApprove) {
		return nil
	}
	if err := w.Need(access.MaySubmit); err != nil {
		return err
	}
	r, err := c.queue.Read.Get(ctx, number)
	if err == nil && r.By != w.Name {
		err = wire.Refuse(http.StatusForbidden, "request %d was submitted by %s: to %s it requires the role %s", number, r.By, what,
			transfer.RoleNames(access.MayApprove))
	}
	return err
}

// Cancel cancels a request and aborts its transfers.
func (c *Service) Cancel(ctx context.Context, id int64, by, reason string) (transfer.Request, error) {
	r, err := c.queue.Cancel(ctx, id, by, reason)
	if err != nil {
		return r, err
	}
	c.Abort(ctx, func(l *dispatch.ActiveLease) bool { return l.Request == id })
	return c.queue.Read.Get(ctx, id)
}

// Retry retries the failed and cancelled files of a request. Endpoints of a job that have been removed meanwhile become sites again.
func (c *Service) Retry(ctx context.Context, id int64, by, reason string) (transfer.Request, error) {
	urls, err := c.queue.Read.SiteURLs(ctx, id)
	if err != nil {
		return transfer.Request{}, err
	}
	added := c.registry.URLs()
	for _, name := range slices.Sorted(maps.Keys(urls)) {
		if c.sites.Name(name) {
			continue
		}
		u := urls[name]
		err := added.AddAs(ctx, name, u, u.Scheme+"://"+fts.Server(u))
		if errors.Is(err, tpc.ErrRefused) {
			err = wire.Refuse(http.StatusConflict, "%s", err)
		}
		if err != nil {
			return transfer.Request{}, err
		}
	}
	return c.queue.Retry(ctx, id, by, reason)
}

// Abort aborts the chosen leases. Leases that are being taken get no mover.
func (c *Service) Abort(ctx context.Context, chosen func(*dispatch.ActiveLease) bool) {
	if err := c.apply(ctx, c.leases.Abort(chosen)); err != nil {
		c.health.Database(err) // the leases expire
	}
}

// RefuseBanned returns an error if the caller is banned.
func (c *Service) RefuseBanned(w access.Caller) error {
	for _, b := range c.sites.Bans() {
		if b.Kind == dispatch.BanDN && (b.Name == w.Name || b.Name == w.User()) {
			return fts.Refuse(http.StatusForbidden, "The user has been banned: %s", b.Why())
		}
	}
	return nil
}

// CancelFiles cancels files and aborts their copies.
func (c *Service) CancelFiles(ctx context.Context, items []int64, why string) error {
	if len(items) == 0 {
		return nil
	}
	if err := c.queue.CancelFiles(ctx, items, why); err != nil {
		return err
	}
	chosen := map[int64]bool{}
	for _, item := range items {
		chosen[item] = true
	}
	c.Abort(ctx, func(l *dispatch.ActiveLease) bool { return chosen[l.Item] })
	c.wake()
	return nil
}
