// Package direct injects copies by third-party requests to the sites themselves: COPY of HTTP, or
// the two opens of XRootD. The bytes never pass this machine.
//
// Each link has a service of its own, as storage.Target.Origin describes it, and each copy in flight
// has a client of it. The end of a client's operation ends the copy: a copy does not outlive the
// process that requested it.
package direct

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"slices"
	"sync"

	"weir/loadtest/challenge"
	"weir/loadtest/challenge/inject"
	"weir/storage"
)

// Causes of the end of copies by Cancel and by Close.
var (
	errCancelled = errors.New("the copy was cancelled")
	errClosed    = errors.New("the challenge has ended")
)

// An injector implements inject.Injector.
type injector struct {
	config inject.Config
	base   context.Context // of all copies
	end    context.CancelCauseFunc
	sites  map[string]*site
	links  []*link
	copies sync.WaitGroup
	health health

	reports sync.Mutex // of calls of config.Report

	mu      sync.Mutex
	flights map[int64]context.CancelCauseFunc // copies that have not ended
	closed  bool
}

// A site is a site of the challenge.
type site struct {
	name     string
	cred     storage.Credentials
	accepted acceptance
}

// A link makes the copies of one link.
type link struct {
	*challenge.Link
	from, to *site
	service  storage.Service

	mu       sync.Mutex
	idle     []storage.Client
	mostIdle int
}

// mostIdle is the number of clients of all links together that stay connected between copies. Each has
// up to three connections.
const mostIdle = 1000

// New opens the services of all links, without network access. The copies end with ctx.
func New(ctx context.Context, c inject.Config) (inject.Injector, error) {
	in := &injector{config: c, sites: map[string]*site{}, flights: map[int64]context.CancelCauseFunc{}}
	for i := range c.Challenge.Sites {
		s := &c.Challenge.Sites[i]
		cred, err := c.Credentials(s.Name)
		if err != nil {
			return nil, fmt.Errorf("site %s: %w", s.Name, err)
		}
		in.sites[s.Name] = &site{name: s.Name, cred: cred}
	}
	for i := range c.Challenge.Links {
		l, err := in.open(ctx, &c.Challenge.Links[i])
		if err != nil {
			return nil, errors.Join(fmt.Errorf("link %s: %w", c.Challenge.Links[i].Name(), err), in.closeLinks())
		}
		in.links = append(in.links, l)
	}
	in.base, in.end = context.WithCancelCause(ctx)
	return in, nil
}

// open opens the service of a link.
func (in *injector) open(ctx context.Context, c *challenge.Link) (*link, error) {
	from, err := address(in.config.Challenge, c.From, c.Protocol)
	if err != nil {
		return nil, err
	}
	to, err := address(in.config.Challenge, c.To, c.Protocol)
	if err != nil {
		return nil, err
	}
	d, err := driver(in.config.Drivers, to.Scheme)
	if err != nil {
		return nil, err
	}
	l := &link{Link: c, from: in.sites[c.From], to: in.sites[c.To], mostIdle: max(1, mostIdle/len(in.config.Challenge.Links))}
	l.service, err = d.Open(ctx, storage.Target{URL: to, Cred: l.to.cred, Resume: storage.ResumeShared, Origin: &storage.Origin{
		URL: from, Cred: l.from.cred, Push: c.Mode == challenge.Push, Streams: c.Streams, SciTag: c.SciTag}})
	return l, err
}

// address returns the URL of a site for a protocol.
func address(c *challenge.Challenge, name string, protocol challenge.Protocol) (*url.URL, error) {
	i := slices.IndexFunc(c.Sites, func(s challenge.Site) bool { return s.Name == name })
	if i < 0 {
		return nil, fmt.Errorf("the challenge has no site %q", name)
	}
	u, err := url.Parse(c.Sites[i].FolderURL(protocol))
	byRoot := protocol == challenge.XRootD
	switch {
	case err != nil:
		return nil, fmt.Errorf("site %s: the URL cannot be read", name)
	case byRoot == (u.Scheme == "root" || u.Scheme == "roots"):
		return u, nil
	case byRoot:
		return nil, fmt.Errorf("site %s has no URL for the protocol root: add root: root://HOST//FOLDER to the site", name)
	}
	return nil, fmt.Errorf("site %s has no URL for the protocol davs: use a davs URL as its url, and root for the other", name)
}

func driver(drivers []storage.Driver, scheme string) (storage.Driver, error) {
	i := slices.IndexFunc(drivers, func(d storage.Driver) bool { return slices.Contains(d.Schemes, scheme) })
	if i < 0 {
		return storage.Driver{}, fmt.Errorf("no driver supports %.20s: use davs, https, http, root or roots", scheme)
	}
	if !slices.Contains(drivers[i].Kinds, storage.Copy) {
		return storage.Driver{}, fmt.Errorf("%s has no third-party copies: use davs, https, http, root or roots: %w", scheme,
			errors.ErrUnsupported)
	}
	return drivers[i], nil
}

// Health returns the state of the sites' answers to requests for copies since the last call.
func (in *injector) Health() inject.Health { return in.health.take() }

// Close cancels all copies, waits for their ends and closes the services.
func (in *injector) Close() error {
	in.mu.Lock()
	in.closed = true
	in.mu.Unlock()
	in.end(errClosed)
	in.copies.Wait()
	return in.closeLinks()
}

func (in *injector) closeLinks() error {
	var errs []error
	for _, l := range in.links {
		for _, c := range l.idle {
			errs = append(errs, c.Close())
		}
		errs = append(errs, l.service.Close())
	}
	return errors.Join(errs...)
}

// client returns an idle or a new client.
func (l *link) client() storage.Client {
	l.mu.Lock()
	defer l.mu.Unlock()
	n := len(l.idle)
	if n == 0 {
		return l.service.Client()
	}
	c := l.idle[n-1]
	l.idle = l.idle[:n-1]
	return c
}

// put keeps a client for the next copy, or closes it.
func (l *link) put(c storage.Client) {
	l.mu.Lock()
	keep := len(l.idle) < l.mostIdle
	if keep {
		l.idle = append(l.idle, c)
	}
	l.mu.Unlock()
	if !keep {
		_ = c.Close() // its copy has ended
	}
}
