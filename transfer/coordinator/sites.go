package coordinator

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"slices"
	"strings"
	"sync"
	"time"

	"weir/internal/pause"
	"weir/internal/redact"
	"weir/internal/tpc"
	"weir/internal/wire"
	"weir/transfer"
	"weir/transfer/catalog"
	"weir/transfer/catalog/store"
)

// The kinds of sites.
const (
	agentKind = catalog.AgentSite
	httpKind  = catalog.HTTPSite
	urlKind   = catalog.URLSite
)

// readSites reads the sites and their secrets from the database.
func (c *Coordinator) readSites(ctx context.Context) error {
	list, err := c.catalog.Sites(ctx)
	if err != nil {
		return err
	}
	sites, all := make(map[string]catalog.Site, len(list)), map[string]secrets{}
	for _, s := range list {
		sites[s.Name] = s
		if s.Kind != httpKind {
			continue
		}
		sealed, err := c.catalog.Secret(ctx, s.Name)
		if err != nil && !errors.Is(err, store.ErrNotFound) {
			return err
		}
		var d secrets
		text, err := c.box.open(sealed, s.Name)
		if err == nil && text != "" {
			err = json.Unmarshal([]byte(text), &d)
		}
		if err != nil {
			c.health.set("secrets", err)
		}
		all[s.Name] = d
	}
	c.registry.mu.Lock()
	c.registry.sites, c.registry.secrets = sites, all
	c.applyLimitsLocked()
	c.registry.mu.Unlock()
	return nil
}

// siteRegistered records in the catalog that the agent of a site is up.
func (c *Coordinator) siteRegistered(ctx context.Context, in *transfer.Register) error {
	s, err := c.catalog.Site(ctx, in.Site)
	switch {
	case errors.Is(err, store.ErrNotFound):
		s = catalog.Site{Name: in.Site, Kind: agentKind, URL: in.URL}
		if err = c.catalog.AddSite(ctx, s); errors.Is(err, store.ErrExists) {
			err = nil // it has registered twice at once
		}
	case err == nil && s.Kind != agentKind:
		return wire.Refuse(http.StatusConflict, "site %s is an endpoint without an agent: remove it first, or use another name for the agent",
			in.Site)
	case err == nil && s.URL != in.URL:
		s.URL = in.URL
		err = c.catalog.SetSite(ctx, s)
	}
	if err != nil {
		return err
	}
	if err := c.catalog.Saw(ctx, in.Site, c.now(), true, in.Free, ""); err != nil {
		return err
	}
	return c.readSites(ctx)
}

// setSite records, in memory and in the catalog, whether a site is up. seen is zero if it was not
// seen now.
func (c *Coordinator) setSite(ctx context.Context, name string, seen time.Time, up bool, problem string) (changed, known bool, err error) {
	c.registry.mu.Lock()
	s, known := c.registry.sites[name]
	if changed = s.Up != up; known {
		s.Up, s.Problem = up, problem
		c.registry.sites[name] = s
	}
	c.registry.mu.Unlock()
	if !known {
		return false, false, nil
	}
	err = c.catalog.Saw(ctx, name, seen, up, s.Free, problem)
	if errors.Is(err, store.ErrNotFound) { // it was removed meanwhile
		return false, false, nil
	}
	return changed, true, err
}

// siteFree records, from time to time, that an agent is up and how much space it has, -1 if it is not
// known.
func (c *Coordinator) siteFree(ctx context.Context, site string, free int64) error {
	c.registry.mu.Lock()
	s, known := c.registry.sites[site]
	now, a := c.now(), c.registry.agents[site]
	if a != nil {
		a.free = free
	}
	difference := max(free-s.Free, s.Free-free)
	similar := difference < max(s.Free/100, 1<<20) && (free < 0) == (s.Free < 0)
	if a == nil || !known || s.Up && similar && now.Sub(s.Seen) < agentTimeout/2 {
		c.registry.mu.Unlock()
		return nil
	}
	s.Up, s.Free, s.Seen, s.Problem = true, free, now, ""
	c.registry.sites[site] = s
	c.registry.mu.Unlock()
	return c.catalog.Saw(ctx, site, now, true, free, "")
}

// watchSites records which agents have been silent for too long.
func (c *Coordinator) watchSites(ctx context.Context) error {
	now := c.now()
	silent := map[string]time.Time{}
	c.registry.mu.Lock()
	for name, s := range c.registry.sites {
		heard, timeout, a := c.begun, agentTimeout, c.registry.agents[name]
		if a != nil {
			heard, timeout = a.heard, a.timeoutLocked()
		}
		if s.Kind == agentKind && s.Up && (a == nil || !a.waiting) && now.Sub(heard) >= timeout {
			silent[name] = heard
		}
	}
	c.registry.mu.Unlock()
	for name, heard := range silent {
		problem := fmt.Sprintf("its agent has not reported since %s", clockTime(heard))
		c.log.Warn("site is down", "site", name, "problem", problem)
		_, _, err := c.setSite(ctx, name, time.Time{}, false, problem)
		c.wake.broadcast()
		if err != nil {
			return err
		}
	}
	return nil
}

func clockTime(t time.Time) string { return t.UTC().Format("2006-01-02 15:04:05 UTC") }

// checkEndpointURL refuses URLs that are not those of a folder.
func checkEndpointURL(address string) error {
	u, err := url.Parse(address)
	switch {
	case err != nil:
		return errors.New("invalid URL") // it may hold a password: it is not repeated
	case u.User != nil:
		return fmt.Errorf("%.200q: a URL with a user or password is not accepted: use a token", redact.URL(u.String()))
	case !slices.Contains([]string{"https", "http", "roots", "root"}, u.Scheme):
		return fmt.Errorf("%.200q: the URL must begin with https:// or roots:// (or http://, root://)", address)
	case slices.Contains(strings.Split(u.Path, "/"), ".."):
		return fmt.Errorf("%.200q: the path must not contain a part \"..\"", address)
	case u.Host == "" || u.RawQuery != "" || u.Fragment != "":
		return fmt.Errorf("%.200q: expected a host and an optional path, and nothing else", address)
	}
	return nil
}

// addSite adds a site without an agent, or changes it.
func (c *Coordinator) addSite(q *call, in *transfer.NewSite) (none catalog.Site, err error) {
	if err := CheckSite(in); err != nil {
		return none, wire.Refuse(http.StatusBadRequest, "%s", err.Error())
	}
	if err := c.putSite(q.Context(), newSite(in), secretsIn(in)); err != nil {
		return none, err
	}
	c.log.Info("site added", "site", in.Name, "by", q.name)
	c.registry.mu.Lock()
	c.resetBreakersLocked(in.Name)
	delete(c.registry.endpoints, in.Name)
	c.registry.mu.Unlock()
	c.forgetDelegations(in.Name)
	c.wake.broadcast()
	c.probe(q.Context(), in.Name)
	return c.catalog.Site(q.Context(), in.Name)
}

func (c *Coordinator) putSite(ctx context.Context, site catalog.Site, s secrets) error {
	old, err := c.catalog.Site(ctx, site.Name)
	switch {
	case errors.Is(err, store.ErrNotFound):
		err = c.catalog.AddSite(ctx, site)
	case err == nil && old.Kind == agentKind:
		return wire.Refuse(http.StatusConflict, "site %s has an agent: remove it first, or use another name", site.Name)
	case err == nil:
		err = c.catalog.SetSite(ctx, site)
	}
	if err != nil {
		return err
	}
	text, err := json.Marshal(s)
	if err != nil {
		return err
	}
	if err := c.catalog.SetSecret(ctx, site.Name, c.box.close(string(text), site.Name)); err != nil {
		return err
	}
	return c.readSites(ctx)
}

func isLoopbackURL(address string) bool {
	u, err := url.Parse(address)
	if err != nil {
		return false
	}
	ip, err := netip.ParseAddr(u.Hostname())
	return err == nil && ip.IsLoopback() || u.Hostname() == "localhost"
}

// removeSite removes a site from the catalog.
func (c *Coordinator) removeSite(q *call, _ *struct{}) (none struct{}, err error) {
	name := q.PathValue("name")
	c.registry.mu.Lock()
	busy := c.registry.net.Active(name)
	c.registry.mu.Unlock()
	if busy > 0 {
		return none, wire.Refuse(http.StatusConflict, "site %s takes part in %d transfers: cancel their requests, or wait", name, busy)
	}
	if err := c.catalog.RemoveSite(q.Context(), name); err != nil {
		return none, err
	}
	c.log.Info("site removed", "site", name, "by", q.name)
	c.registry.mu.Lock()
	if a := c.registry.agents[name]; a != nil {
		delete(c.registry.agents, name)
		a.wake()
	}
	c.registry.mu.Unlock()
	return none, c.siteRemoved(q.Context(), name)
}

func (c *Coordinator) listSites(q *call, _ *struct{}) ([]catalog.Site, error) {
	sites, err := c.catalog.Sites(q.Context())
	problems := c.queue.BrokenSources()
	c.registry.mu.Lock()
	maps.Copy(problems, c.refusalsLocked())
	c.registry.mu.Unlock()
	banned := c.registry.bannedSites()
	for i, s := range sites {
		if b, is := banned[s.Name]; is {
			sites[i].Problem = b.why()
		} else if s.Problem == "" {
			sites[i].Problem = problems[s.Name]
		}
	}
	return orEmpty(sites), err
}

// probeAll probes endpoints without agents until ctx ends.
func (c *Coordinator) probeAll(ctx context.Context) {
	for ; ctx.Err() == nil; pause.For(ctx, probeEvery) {
		var names []string
		c.registry.mu.Lock()
		for _, s := range c.registry.sites {
			if s.Kind != agentKind {
				names = append(names, s.Name)
			}
		}
		c.registry.mu.Unlock()
		var probes sync.WaitGroup
		room := make(chan struct{}, probesAtOnce)
		for _, n := range names {
			room <- struct{}{}
			probes.Go(func() {
				defer func() { <-room }()
				c.probe(ctx, n)
			})
		}
		probes.Wait()
	}
}

const (
	probeTime    = 10 * time.Second // timeout of a probe
	probesAtOnce = 32
)

// unknownHost reports whether the name of an endpoint does not exist, and DNS has said so.
func unknownHost(err error) bool {
	var name *net.DNSError
	return errors.As(err, &name) && name.IsNotFound && !name.IsTemporary
}

// probe asks an endpoint for its abilities, and records whether it is up.
func (c *Coordinator) probe(ctx context.Context, name string) {
	site, _ := c.registry.site(name)
	if site.URL == "" {
		return
	}
	d := c.secretsOf(name)
	ask, cancel := context.WithTimeout(ctx, probeTime)
	can, err := c.tpc.Ask(ask, c.siteTarget(site, d, "/"))
	cancel()
	if ctx.Err() != nil {
		return
	}
	if err == nil {
		c.learn(ctx, site, d, can)
	}
	now, up, problem := c.now(), true, ""
	switch kind := tpc.KindOf(err); {
	case errors.Is(err, tpc.ErrRefused):
		up, problem, now = false, sentence(err.Error()), time.Time{}
	case site.Kind == urlKind && unknownHost(err): // its files are tried, and fail
		problem, now = sentence(err.Error()), time.Time{}
	case kind == tpc.Unreachable, kind == tpc.Stalled, kind == tpc.Broken:
		up, problem = false, fmt.Sprintf("it could not be reached at %s: %s", clockTime(now), sentence(err.Error()))
		now = time.Time{}
	case kind == tpc.Busy:
		problem = "it is busy"
	}
	changed, _, err := c.setSite(ctx, name, now, up, problem)
	c.health.database(err)
	if changed {
		c.log.Info("site has changed", "site", name, "up", up, "problem", problem)
		c.wake.broadcast()
	}
}
