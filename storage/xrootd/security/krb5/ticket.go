package krb5

import (
	"context"
	"fmt"
	"io/fs"
	"time"

	"github.com/jcmturner/gokrb5/v8/messages"
	"github.com/jcmturner/gokrb5/v8/types"
)

// maxTickets limits the number of tickets that servers can make us store.
const maxTickets = 10_000

// A ticket proves client to service. It does not change once other goroutines can access it, except
// for refresh, which Client.mu guards.
type ticket struct {
	client, service principal
	ticket          messages.Ticket
	key             types.EncryptionKey
	start, end      time.Time
	refresh         time.Time // time from which a renewed ticket is requested
	form            *form     // form of the requests; nil in ticket-granting tickets
}

// A failure is the result for all callers that waited for a request that failed.
type failure struct {
	service string
	at      time.Time
	err     error
}

// valid reports whether a server would accept t now.
func (t *ticket) valid(now time.Time) bool { return t != nil && now.Before(t.end) }

// prepare makes the form and tries it: a cache may hold invalid keys.
func (t *ticket) prepare() error {
	return guard("ticket", func() error {
		f, err := newForm(t)
		if err != nil {
			return err
		}
		_, err = f.request(time.Unix(0, 0))
		t.form = f
		return err
	})
}

// ticket returns a ticket for a service: the known ticket, or a new ticket.
func (k *Client) ticket(ctx context.Context, service string) (*ticket, error) {
	began := time.Now()
	t, due := k.known(service, began)
	if t != nil && !due {
		return t, nil
	}
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	if t != nil { // valid for a while: only one goroutine requests a new ticket
		select {
		case k.gate <- struct{}{}:
		default:
			return t, nil
		}
	} else {
		select {
		case k.gate <- struct{}{}:
		case <-ctx.Done():
			return nil, fmt.Errorf("waiting for a ticket for %s: %w", clip(service), ctx.Err())
		}
	}
	defer func() { <-k.gate }()
	return k.renew(ctx, service, began)
}

// known returns the valid ticket for a service, or nil, and whether it is time to request a new
// ticket.
func (k *Client) known(service string, now time.Time) (*ticket, bool) {
	k.mu.RLock()
	defer k.mu.RUnlock()
	t := k.tickets[service]
	if !t.valid(now) {
		return nil, true
	}
	return t, now.After(t.refresh)
}

// renew obtains a ticket. One goroutine at a time runs it. Goroutines that have been waiting since
// began use the result of the previous goroutine.
func (k *Client) renew(ctx context.Context, service string, began time.Time) (*ticket, error) {
	old, due := k.known(service, time.Now())
	if old != nil && !due {
		return old, nil
	}
	if f := k.failure; f.service == service && f.at.After(began) {
		return nil, f.err
	}
	t, err := k.obtain(ctx, service)
	if err == nil {
		err = t.prepare()
	}
	now := time.Now()
	if err != nil && old.valid(now) {
		k.mu.Lock()
		old.refresh = later(now, old.end)
		k.mu.Unlock()
		return old, nil
	}
	if err != nil {
		if ctx.Err() == nil { // the service's failure, not that of the caller's context
			k.failure = failure{service, now, err}
		}
		return nil, err
	}
	t.refresh = later(now, t.end)
	k.mu.Lock()
	if len(k.tickets) >= maxTickets {
		clear(k.tickets)
	}
	k.tickets[service] = t
	k.mu.Unlock()
	return t, nil
}

// later returns the time at which three quarters of the remaining time have passed, at least a
// second from now: if a ticket cannot be renewed, a new ticket is not requested at every login of
// its last minutes.
func later(now, end time.Time) time.Time {
	return now.Add(max(end.Sub(now)*3/4, time.Second))
}

// obtain gets a ticket for a service from the cache or a KDC.
func (k *Client) obtain(ctx context.Context, service string) (*ticket, error) {
	s, err := k.parseService(service)
	if err != nil {
		return nil, denied("as which the server presents itself: %w", err)
	}
	if k.cache != "" {
		return k.fromCache(ctx, s)
	}
	now := time.Now()
	if !k.granter.valid(now) || now.After(k.granter.refresh) {
		t, err := k.logIn(ctx)
		switch {
		case err == nil:
			t.refresh = later(now, t.end)
			k.granter = t
		case !k.granter.valid(now):
			return nil, k.explain(err, s)
		}
	}
	t, err := k.grant(ctx, k.granter, s)
	return t, k.explain(err, s)
}

// fromCache reads the cache file again, so that kinit during a long run takes effect.
func (k *Client) fromCache(ctx context.Context, s principal) (*ticket, error) {
	owner, all, err := readCache(k.cache)
	if err != nil {
		return nil, denied("the %s: %w: run kinit", k.where, err)
	}
	if !owner.is(k.user) {
		return nil, denied("the %s is now of %s, no longer of %s", k.where, owner, k.user)
	}
	granter := principal{types.PrincipalName{NameString: []string{"krbtgt", owner.realm}}, owner.realm}
	now := time.Now()
	var expired, best *ticket
	for _, t := range all {
		if !t.client.is(owner) {
			continue
		}
		if t.service.is(s) && t.valid(now) {
			return t, nil
		}
		if t.service.is(granter) && t.valid(now) {
			best = t
		} else if t.service.is(granter) {
			expired = t
		}
	}
	if best == nil && expired != nil {
		return nil, denied("the ticket of %s in %s expired at %s: run kinit", owner, k.cache, expired.end.UTC().Format(time.RFC3339))
	}
	if best == nil {
		return nil, denied("the %s holds neither a ticket for %s nor one to get it with: run kinit", k.where, s)
	}
	t, err := k.grant(ctx, best, s)
	return t, k.explain(err, s)
}

// denied returns an error that wraps fs.ErrPermission.
func denied(format string, args ...any) error {
	return &refused{fmt.Errorf(format, args...)}
}

// refused is a reason that is also an fs.ErrPermission, without the text of fs.ErrPermission, which
// would only lengthen it.
type refused struct{ reason error }

func (r *refused) Error() string        { return r.reason.Error() }
func (r *refused) Unwrap() error        { return r.reason }
func (r *refused) Is(target error) bool { return target == fs.ErrPermission }
