package sites

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
	"sync"
	"time"

	"weir/internal/pause"
	"weir/internal/redact"
	"weir/internal/say"
	"weir/internal/tpc"
	"weir/internal/wire"
	"weir/transfer"
	"weir/transfer/catalog"
	"weir/transfer/catalog/store"
	"weir/transfer/dispatch"
)

// Check returns an error if a site without an agent is invalid.
func Check(in *transfer.NewSite) error {
	if err := errors.Join(catalog.CheckSite(in.Name), CheckURL(in.URL)); err != nil {
		return err
	}
	if in.Max < 0 || in.Max > 10000 || len(in.Token) > 64<<10 || len(in.Pin) > 64 {
		return fmt.Errorf("site %s: expected 0 to 10000 concurrent transfers and a token of at most 64 kB", in.Name)
	}
	if in.Token != "" && strings.HasPrefix(in.URL, "http:") && !IsLoopback(in.URL) {
		return fmt.Errorf("site %s: tokens are not sent without TLS: use https://", in.Name)
	}
	if i := slices.IndexFunc(in.Servers, func(s string) bool { return !tpc.IsHosts(s) || s == "*" }); i >= 0 {
		return fmt.Errorf("site %s: invalid data server %.100q: use HOST, HOST:PORT or *.DOMAIN", in.Name, in.Servers[i])
	}
	return nil
}

func newSite(in *transfer.NewSite) catalog.Site {
	return catalog.Site{Name: in.Name, Kind: catalog.HTTPSite, URL: strings.TrimSuffix(in.URL, "/"), Max: in.Max}
}

func secretsIn(in *transfer.NewSite) dispatch.Secrets {
	return dispatch.Secrets{Token: in.Token, Pin: in.Pin, Servers: in.Servers, Lend: in.Lend}
}

// Read reads the sites and their secrets from the database.
func (c *Registry) Read(ctx context.Context) error {
	list, err := c.catalog.Sites(ctx)
	if err != nil {
		return err
	}
	sites, all := make(map[string]catalog.Site, len(list)), map[string]dispatch.Secrets{}
	for _, s := range list {
		sites[s.Name] = s
		if s.Kind != catalog.HTTPSite {
			continue
		}
		sealed, err := c.catalog.Secret(ctx, s.Name)
		if err != nil && !errors.Is(err, store.ErrNotFound) {
			return err
		}
		var d dispatch.Secrets
		text, err := c.box.Open(sealed, s.Name)
		if err == nil && text != "" {
			err = json.Unmarshal([]byte(text), &d)
		}
		if err != nil {
			c.health.Set("secrets", err)
		}
		all[s.Name] = d
	}
	c.sites.Set(sites, all)
	return nil
}

// Registered records in the catalog that the agent of a site is up.
func (c *Registry) Registered(ctx context.Context, in *transfer.Register) error {
	s, err := c.catalog.Site(ctx, in.Site)
	switch {
	case errors.Is(err, store.ErrNotFound):
		s = catalog.Site{Name: in.Site, Kind: catalog.AgentSite, URL: in.URL}
		if err = c.catalog.AddSite(ctx, s); errors.Is(err, store.ErrExists) {
			err = nil // it has registered twice at the same time
		}
	case err == nil && s.Kind != catalog.AgentSite:
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
	return c.Read(ctx)
}

// SetUp records, in memory and in the catalog, whether a site is up. seen is the time of the
// contact, or zero without a contact.
func (c *Registry) SetUp(ctx context.Context, name string, seen time.Time, up bool, problem string) (changed, known bool, err error) {
	s, changed, known := c.sites.SetUp(name, up, problem)
	if !known {
		return false, false, nil
	}
	err = c.catalog.Saw(ctx, name, seen, up, s.Free, problem)
	if errors.Is(err, store.ErrNotFound) { // it was removed meanwhile
		return false, false, nil
	}
	return changed, true, err
}

// SetFree records, from time to time, that an agent is up, and its free space, -1 if it is not
// known.
func (c *Registry) SetFree(ctx context.Context, site string, free int64) error {
	seen, changed := c.agents.SetFree(site, free)
	if !changed {
		return nil
	}
	return c.catalog.Saw(ctx, site, seen, true, free, "")
}

// Watch records which agents have been silent for too long.
func (c *Registry) Watch(ctx context.Context) error {
	for name, heard := range c.agents.Silent() {
		problem := fmt.Sprintf("its agent has not reported since %s", say.UTC(heard))
		c.log.Warn("site is down", "site", name, "problem", problem)
		_, _, err := c.SetUp(ctx, name, time.Time{}, false, problem)
		c.wake()
		if err != nil {
			return err
		}
	}
	return nil
}

// CheckURL returns an error if a URL is not the URL of a folder.
func CheckURL(address string) error {
	u, err := url.Parse(address)
	switch {
	case err != nil:
		return errors.New("invalid URL") // it may contain a password: it is not repeated
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

// Add adds a site without an agent, or changes it. by is the requesting user.
func (c *Registry) Add(ctx context.Context, in *transfer.NewSite, by string) (none catalog.Site, err error) {
	if err := Check(in); err != nil {
		return none, wire.Refuse(http.StatusBadRequest, "%s", err.Error())
	}
	if err := c.Put(ctx, in); err != nil {
		return none, err
	}
	c.log.Info("site added", "site", in.Name, "by", by)
	c.sites.Reset(in.Name)
	c.endpoints.Forget(in.Name)
	c.wake()
	c.Probe(ctx, in.Name)
	return c.catalog.Site(ctx, in.Name)
}

// Put writes a site without an agent to the catalog.
func (c *Registry) Put(ctx context.Context, in *transfer.NewSite) error {
	return c.putSite(ctx, newSite(in), secretsIn(in))
}

func (c *Registry) putSite(ctx context.Context, site catalog.Site, s dispatch.Secrets) error {
	old, err := c.catalog.Site(ctx, site.Name)
	switch {
	case errors.Is(err, store.ErrNotFound):
		err = c.catalog.AddSite(ctx, site)
	case err == nil && old.Kind == catalog.AgentSite:
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
	if err := c.catalog.SetSecret(ctx, site.Name, c.box.Seal(string(text), site.Name)); err != nil {
		return err
	}
	return c.Read(ctx)
}

// IsLoopback reports whether the host of a URL is this machine.
func IsLoopback(address string) bool {
	u, err := url.Parse(address)
	if err != nil {
		return false
	}
	ip, err := netip.ParseAddr(u.Hostname())
	return err == nil && ip.IsLoopback() || u.Hostname() == "localhost"
}

// Remove removes a site from the catalog. by is the requesting user.
func (c *Registry) Remove(ctx context.Context, name, by string) error {
	if busy := c.sites.Active(name); busy > 0 {
		return wire.Refuse(http.StatusConflict, "site %s takes part in %d transfers: cancel their requests, or wait", name, busy)
	}
	if err := c.catalog.RemoveSite(ctx, name); err != nil {
		return err
	}
	c.log.Info("site removed", "site", name, "by", by)
	c.agents.Remove(name)
	return c.removed(ctx, name)
}

// List returns all sites with their problems.
func (c *Registry) List(ctx context.Context) ([]catalog.Site, error) {
	list, err := c.catalog.Sites(ctx)
	problems := c.queue.BrokenSources()
	maps.Copy(problems, c.sites.Refusals())
	banned := c.sites.Banned()
	for i, s := range list {
		if b, is := banned[s.Name]; is {
			list[i].Problem = b.Why()
		} else if s.Problem == "" {
			list[i].Problem = problems[s.Name]
		}
	}
	return list, err
}

// ProbeAll probes endpoints without agents until ctx ends.
func (c *Registry) ProbeAll(ctx context.Context) {
	for ; ctx.Err() == nil; pause.For(ctx, probeEvery) {
		var probes sync.WaitGroup
		room := make(chan struct{}, probesAtOnce)
		for _, n := range c.sites.WithoutAgent() {
			room <- struct{}{}
			probes.Go(func() {
				defer func() { <-room }()
				c.Probe(ctx, n)
			})
		}
		probes.Wait()
	}
}

const (
	probeTime    = 10 * time.Second // timeout of a probe
	probeEvery   = 30 * time.Second
	probesAtOnce = 32
)

// Probe determines the abilities of an endpoint, and records whether it is up.
func (c *Registry) Probe(ctx context.Context, name string) {
	site, _ := c.sites.Get(name)
	if site.URL == "" {
		return
	}
	d := c.sites.Secrets(name)
	ask, cancel := context.WithTimeout(ctx, probeTime)
	can, err := c.tpc.Ask(ask, c.endpoints.SiteTarget(site, d, "/"))
	cancel()
	if ctx.Err() != nil {
		return
	}
	if err == nil {
		c.endpoints.Learn(ctx, site, d, can)
	}
	now, up, problem := c.now(), true, ""
	switch kind := tpc.KindOf(err); {
	case errors.Is(err, tpc.ErrRefused):
		up, problem, now = false, say.Bounded(err.Error()), time.Time{}
	case site.Kind == catalog.URLSite && tpc.UnknownHost(err): // its files are tried, and fail
		problem, now = say.Bounded(err.Error()), time.Time{}
	case kind == tpc.Unreachable, kind == tpc.Stalled, kind == tpc.Broken:
		up, problem = false, fmt.Sprintf("it could not be reached at %s: %s", say.UTC(now), say.Bounded(err.Error()))
		now = time.Time{}
	case kind == tpc.Busy:
		problem = "it is busy"
	}
	changed, _, err := c.SetUp(ctx, name, now, up, problem)
	c.health.Database(err)
	if changed {
		c.log.Info("site has changed", "site", name, "up", up, "problem", problem)
		c.wake()
	}
}
