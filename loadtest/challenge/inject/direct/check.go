package direct

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"net/url"
	"sync"
	"time"

	"weir/loadtest/challenge"
	"weir/loadtest/challenge/inject/service"
	"weir/storage"
)

// checkTime limits the check of a site.
const checkTime = 30 * time.Second

// Check logs in at all sites of links, and requests a copy of a file that does not exist from each
// site that is to move bytes by HTTP: a site without third-party copies refuses that in another way
// than a site with them.
func (in *injector) Check(ctx context.Context) error {
	k := &check{in: in, done: map[string]bool{}}
	for _, l := range in.links {
		for _, s := range []*site{l.from, l.to} {
			if at, err := address(in.config.Challenge, s.name, l.Protocol); err == nil && k.first("login "+at.String()) {
				k.all.Go(func() { k.add(s, in.login(ctx, at, s)) })
			}
		}
		active, _ := l.ends()
		if l.Protocol != challenge.XRootD && k.first("copy "+active.name) {
			k.all.Go(func() { k.add(active, in.canCopy(ctx, l)) })
		}
	}
	k.all.Wait()
	return errors.Join(k.errs...)
}

// A check is a running Check.
type check struct {
	in   *injector
	done map[string]bool
	all  sync.WaitGroup

	mu   sync.Mutex
	errs []error
}

// first reports whether nothing was checked under a name before.
func (k *check) first(name string) bool {
	seen := k.done[name]
	k.done[name] = true
	return !seen
}

func (k *check) add(s *site, err error) {
	if err == nil {
		return
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	k.errs = append(k.errs, fmt.Errorf("site %s: %w", s.name, err))
}

func (in *injector) login(ctx context.Context, at *url.URL, s *site) error {
	return in.try(ctx, storage.Target{URL: at, Cred: s.cred}, storage.Op{Kind: storage.Login, Timeout: checkTime})
}

// canCopy returns an error if the active site of a link makes no third-party copies. It has the site
// send a file that does not exist, so that nothing can be made anywhere. Failures with another meaning
// are left to the copies.
func (in *injector) canCopy(ctx context.Context, l *link) error {
	active, passive := l.ends()
	at, err := address(in.config.Challenge, active.name, l.Protocol)
	if err != nil {
		return err
	}
	other, err := address(in.config.Challenge, passive.name, l.Protocol)
	if err != nil {
		return err
	}
	none := "weir-check-" + rand.Text()[:8]
	err = in.try(ctx, storage.Target{URL: other, Cred: passive.cred, Origin: &storage.Origin{URL: at, Cred: active.cred, Push: true}},
		storage.Op{Kind: storage.Copy, Source: none, Path: none, Size: -1, Timeout: checkTime})
	if errors.Is(err, errors.ErrUnsupported) {
		return errors.New(service.Line(l.reason(err, active.name)))
	}
	return nil
}

// try carries out one operation.
func (in *injector) try(ctx context.Context, t storage.Target, op storage.Op) error {
	d, err := driver(in.config.Drivers, t.URL.Scheme)
	if err != nil {
		return err
	}
	service, err := d.Open(ctx, t)
	if err != nil {
		return err
	}
	c := service.Client()
	_, err = c.Do(ctx, &op, storage.NoProgress{})
	return errors.Join(err, c.Close(), service.Close())
}
