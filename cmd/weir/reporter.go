package main

import (
	"context"
	"net/url"
	"slices"

	"weir/monitor"
	"weir/storage"
)

// reporter returns what asks the servers of the target about themselves, nil
// if its protocol knows no such question, and a function that closes it. If
// external programs make the load, our own driver of the target's protocol
// asks, with the same credentials.
func (r *session) reporter(ctx context.Context) (monitor.Reporter, func()) {
	if own, ok := r.config.Service.(storage.Reporter); ok {
		return own, func() {}
	}
	u, err := url.Parse(r.plan.Target)
	if err != nil || r.plan.Driver != "command" {
		return nil, func() {}
	}
	i := slices.IndexFunc(r.drivers, func(d storage.Driver) bool {
		return d.Name != r.plan.Driver && slices.Contains(d.Schemes, u.Scheme)
	})
	if i < 0 {
		return nil, func() {}
	}
	service, err := open(ctx, r.drivers[i], u, r.plan.Auth)
	if err != nil {
		return silent{err}, func() {}
	}
	closing := func() { _ = service.Close() } // nothing was written with it
	if asks, ok := service.(storage.Reporter); ok {
		return asks, closing
	}
	closing()
	return nil, func() {}
}

func open(ctx context.Context, d storage.Driver, u *url.URL, a storage.Auth) (storage.Service, error) {
	cred, err := a.Read()
	if err != nil {
		return nil, err
	}
	return d.Open(ctx, storage.Target{URL: u, Cred: cred})
}

// silent stands for servers that cannot be asked, and says why.
type silent struct{ err error }

func (s silent) Servers(context.Context) ([]string, error)      { return nil, s.err }
func (s silent) Report(context.Context, string) ([]byte, error) { return nil, s.err }
