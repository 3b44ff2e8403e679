package coordinator

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"net/netip"
	"net/url"
	"slices"
	"strings"
	"time"

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
)

// learnSites takes over the sites as the database has them, and their secrets.
func (c *Coordinator) learnSites(ctx context.Context) error {
	sites, err := c.catalog.Sites(ctx)
	if err != nil {
		return err
	}
	known := make(map[string]catalog.Site, len(sites))
	doors := map[string]secrets{}
	for _, s := range sites {
		known[s.Name] = s
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
			c.health.say("secrets", err)
		}
		doors[s.Name] = d
	}
	c.registry.mu.Lock()
	c.registry.sites, c.registry.secrets = known, doors
	c.registry.mu.Unlock()
	return nil
}

// siteCame notes in the catalog that the agent of a site is there.
func (c *Coordinator) siteCame(ctx context.Context, in *transfer.Register) error {
	s, err := c.catalog.Site(ctx, in.Site)
	switch {
	case errors.Is(err, store.ErrNotFound):
		s = catalog.Site{Name: in.Site, Kind: agentKind, URL: in.URL}
		if err = c.catalog.AddSite(ctx, s); errors.Is(err, store.ErrExists) {
			err = nil // it has come in twice at once
		}
	case err == nil && s.Kind != agentKind:
		return wire.Refuse(http.StatusConflict, "site %s is an endpoint without an agent: remove it first, or give the agent another name", in.Site)
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
	return c.learnSites(ctx)
}

// siteFree notes that an agent is there and how much space it has, -1 if it cannot
// tell, now and then.
func (c *Coordinator) siteFree(ctx context.Context, site string, free int64) error {
	c.registry.mu.Lock()
	s, known := c.registry.sites[site]
	now := c.now()
	a := c.registry.agents[site]
	if a == nil { // it has gone meanwhile
		c.registry.mu.Unlock()
		return nil
	}
	a.free = free
	little := abs(free-s.Free) < max(s.Free/100, 1<<20) && (free < 0) == (s.Free < 0)
	if !known || s.Up && little && now.Sub(s.Seen) < silence/2 {
		c.registry.mu.Unlock()
		return nil
	}
	s.Up, s.Free, s.Seen, s.Problem = true, free, now, ""
	c.registry.sites[site] = s
	c.registry.mu.Unlock()
	return c.catalog.Saw(ctx, site, now, true, free, "")
}

func abs(n int64) int64 { return max(n, -n) }

// watchSites notes which agents are silent.
func (c *Coordinator) watchSites(ctx context.Context) error {
	now := c.now()
	c.registry.mu.Lock()
	var falls []catalog.Site
	for name, s := range c.registry.sites {
		if s.Kind != agentKind || !s.Up {
			continue
		}
		heard, quiet, a := c.begun, silence, c.registry.agents[name]
		if a != nil {
			heard, quiet = a.heard, a.quiet()
			if a.waiting {
				continue
			}
		}
		if now.Sub(heard) < quiet {
			continue
		}
		s.Up, s.Problem = false, fmt.Sprintf("its agent was not heard of since %s", clockTime(heard))
		c.registry.sites[name] = s
		falls = append(falls, s)
	}
	c.registry.mu.Unlock()
	for _, f := range falls {
		c.log.Warn("a site is down", "site", f.Name, "problem", f.Problem)
		if err := c.catalog.Saw(ctx, f.Name, time.Time{}, false, f.Free, f.Problem); err != nil {
			return err
		}
	}
	if len(falls) > 0 {
		c.wake.give()
	}
	return nil
}

func clockTime(t time.Time) string { return t.UTC().Format("2006-01-02 15:04:05 UTC") }

// checkEndpointURL tells what is wrong with the URL of a site.
func checkEndpointURL(address string) error {
	u, err := url.Parse(address)
	switch {
	case err != nil:
		return errors.New("this is no URL") // it may hold a password: it is not repeated
	case u.User != nil:
		return fmt.Errorf("%.200q: no user and no password: a site is shown a token", redact.URL(u.String()))
	case u.Scheme != "https" && u.Scheme != "http":
		return fmt.Errorf("%.200q: it begins with https:// (or http://)", address)
	case slices.Contains(strings.Split(u.Path, "/"), ".."):
		return fmt.Errorf("%.200q: a path with .. in it is none", address)
	case u.Host == "" || u.RawQuery != "" || u.Fragment != "":
		return fmt.Errorf("%.200q: it has a host and perhaps a path, and nothing else", address)
	}
	return nil
}

// addSite adds an endpoint without an agent, or changes it.
func (c *Coordinator) addSite(r *http.Request, in *transfer.NewSite) (catalog.Site, error) {
	who, err := need(r, mayAdmin)
	if err != nil {
		return catalog.Site{}, err
	}
	if err := errors.Join(catalog.CheckSite(in.Name), checkEndpointURL(in.URL)); err != nil {
		return catalog.Site{}, wire.Refuse(http.StatusBadRequest, "%s", err.Error())
	}
	if in.Max < 0 || in.Max > 10000 || len(in.Token) > 64<<10 || len(in.Pin) > 64 {
		return catalog.Site{}, wire.Refuse(http.StatusBadRequest, "site %s: between 0 and 10000 copies at once, and a token of at most 64 kB", in.Name)
	}
	if in.Token != "" && strings.HasPrefix(in.URL, "http:") && !onThisMachine(in.URL) {
		return catalog.Site{}, wire.Refuse(http.StatusBadRequest, "site %s: a token is not sent without TLS: use https://", in.Name)
	}
	if i := slices.IndexFunc(in.Servers, func(s string) bool { return !tpc.IsHosts(s) || s == "*" }); i >= 0 {
		return catalog.Site{}, wire.Refuse(http.StatusBadRequest, "site %s: %.100q is no data server: HOST, HOST:PORT or *.DOMAIN", in.Name, in.Servers[i])
	}
	site := catalog.Site{Name: in.Name, Kind: httpKind, URL: strings.TrimSuffix(in.URL, "/"), Max: in.Max}
	if err := c.putSite(r.Context(), site, secrets{Token: in.Token, Pin: in.Pin, Servers: in.Servers, Lend: in.Lend}); err != nil {
		return catalog.Site{}, c.refusal(err)
	}
	c.log.Info("a site was added", "site", in.Name, "by", who.name)
	c.registry.mu.Lock()
	c.renewed(in.Name)
	delete(c.registry.endpoints, in.Name)
	c.registry.mu.Unlock()
	c.forgetLoans(in.Name)
	c.wake.give()
	c.probe(r.Context(), in.Name)
	site, err = c.catalog.Site(r.Context(), in.Name)
	return site, c.refusal(err)
}

func (c *Coordinator) putSite(ctx context.Context, site catalog.Site, s secrets) error {
	old, err := c.catalog.Site(ctx, site.Name)
	switch {
	case errors.Is(err, store.ErrNotFound):
		err = c.catalog.AddSite(ctx, site)
	case err == nil && old.Kind != httpKind:
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
	return c.learnSites(ctx)
}

func onThisMachine(address string) bool {
	u, err := url.Parse(address)
	if err != nil {
		return false
	}
	ip, err := netip.ParseAddr(u.Hostname())
	return err == nil && ip.IsLoopback() || u.Hostname() == "localhost"
}

// removeSite forgets a site.
func (c *Coordinator) removeSite(r *http.Request, _ *struct{}) (struct{}, error) {
	who, err := need(r, mayAdmin)
	if err != nil {
		return struct{}{}, err
	}
	name := r.PathValue("name")
	c.registry.mu.Lock()
	busy := c.registry.net.Active(name)
	c.registry.mu.Unlock()
	if busy > 0 {
		return struct{}{}, wire.Refuse(http.StatusConflict, "site %s takes part in %d copies now: cancel their requests, or wait", name, busy)
	}
	if err := c.catalog.RemoveSite(r.Context(), name); err != nil {
		return struct{}{}, c.refusal(err)
	}
	c.log.Info("a site was removed", "site", name, "by", who.name)
	c.registry.mu.Lock()
	if a := c.registry.agents[name]; a != nil {
		delete(c.registry.agents, name)
		a.ring()
	}
	c.registry.mu.Unlock()
	return struct{}{}, c.refusal(c.learnSites(r.Context()))
}

func (c *Coordinator) listSites(r *http.Request, _ *struct{}) ([]catalog.Site, error) {
	if _, err := need(r, mayRead); err != nil {
		return nil, err
	}
	sites, err := c.catalog.Sites(r.Context())
	doubts := c.queue.BrokenSources()
	c.registry.mu.Lock()
	maps.Copy(doubts, c.refusals())
	c.registry.mu.Unlock()
	for i, s := range sites {
		if s.Problem == "" {
			sites[i].Problem = doubts[s.Name]
		}
	}
	return filled(sites), c.refusal(err)
}

// filled is a list that is shown as one also if it is empty.
func filled[T any](list []T) []T {
	if list == nil {
		return []T{}
	}
	return list
}
