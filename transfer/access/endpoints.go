package access

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"path"
	"sync"
	"time"

	"weir/internal/say"
	"weir/internal/token"
	"weir/internal/tpc"
	"weir/transfer"
	"weir/transfer/catalog"
	"weir/transfer/dispatch"
	"weir/transfer/health"
	"weir/transfer/remote"
)

const (
	folderFiles   = 8         // files of a folder from which on they share one token for the folder
	tokenLife     = time.Hour // plus the time that the file takes at slowRate
	slowRate      = 1 << 20   // bytes per second
	longToken     = 72 * time.Hour
	macaroonTime  = 15 * time.Second // for a site to issue a macaroon
	macaroonEvery = 10 * time.Minute // between two tests whether a site issues macaroons
)

// Endpoints have the credentials for the endpoints of sites: tokens that the coordinator issues for
// the endpoints of agents, and macaroons or the configured tokens for other endpoints.
type Endpoints struct {
	control     *Control
	sites       *dispatch.Sites
	tpc         *remote.Client
	health      *health.Health
	now         func() time.Time
	delegations delegations
}

// NewEndpoints returns the credentials for sites, to which client connects.
func NewEndpoints(c *Control, sites *dispatch.Sites, client *remote.Client) *Endpoints {
	return &Endpoints{control: c, sites: sites, tpc: client, health: c.health, now: c.now}
}

// Audience returns the name of a site's endpoint in tokens.
func Audience(site string) string { return "weir://" + site }

// A folder is a folder at a site.
type folder struct{ site, path string }

// lifeOf returns the lifetime of the tokens for a lease.
func lifeOf(l *transfer.Lease) time.Duration {
	return min(tokenLife+time.Duration(l.Size/slowRate)*time.Second, longToken)
}

// AddCredentials adds the access data of the other ends of leases to them: URL, pin and a
// short-lived token for the file. back are the outcomes of leases for which there is no token now.
func (c *Endpoints) AddCredentials(ctx context.Context, leases []transfer.Lease) (opened []transfer.Lease, back []transfer.Outcome) {
	c.sites.Resolve(leases)
	opened = leases[:0]
	for _, l := range leases {
		if err := c.addDelegated(ctx, &l); err != nil {
			back = append(back, transfer.Outcome{Item: l.Item, Epoch: l.Epoch, Fault: transfer.MoverStopped, Reason: say.Bounded(err.Error())})
			continue
		}
		opened = append(opened, l)
	}
	c.addTokens(opened)
	return opened, back
}

// addDelegated fills in the token of a lease's other end if that is a site without an agent.
func (c *Endpoints) addDelegated(ctx context.Context, l *transfer.Lease) (err error) {
	switch {
	case l.Mode == transfer.Pull && !c.issuesTokens(l.Source.Site):
		l.Source.Token, err = c.Delegate(ctx, l, l.Source, tpc.MayRead)
	case l.Mode == transfer.Push && !c.issuesTokens(l.Dest.Site):
		l.Dest.Token, err = c.Delegate(ctx, l, l.Dest, tpc.MayWrite)
		if l.Dest.Token != "" && l.Dest.Token != c.sites.Secrets(l.Dest.Site).Token {
			l.Dest.Temp = l.TempPath() // in the folder that the macaroon is for
		}
	}
	return err
}

// addTokens fills in the tokens of agents' endpoints: a token for each file, or one token for a
// folder of which many files are read.
func (c *Endpoints) addTokens(leases []transfer.Lease) {
	pulled := func(l *transfer.Lease) bool {
		return l.Mode == transfer.Pull && l.Source.URL != "" && c.issuesTokens(l.Source.Site)
	}
	many, shared := map[folder]int{}, map[folder]string{}
	for i := range leases {
		if e := leases[i].Source; pulled(&leases[i]) {
			many[folder{e.Site, path.Dir(e.Path)}]++
		}
	}
	for i := range leases {
		l := &leases[i]
		if pulled(l) {
			f := folder{l.Source.Site, path.Dir(l.Source.Path)}
			if many[f] < folderFiles || f.path == "." { // a token never covers a whole site
				f.path = l.Source.Path
			}
			if shared[f] == "" {
				shared[f] = c.issue(l, f.site, lifeOf(l), nil, token.Path("read", "/"+f.path))
			}
			l.Source.Token = shared[f]
		}
		if l.Mode == transfer.Push && l.Dest.URL != "" && c.issuesTokens(l.Dest.Site) {
			l.Dest.Token = c.issue(l, l.Dest.Site, lifeOf(l), &l.Size, WriteScopes(l.Dest.Path, transfer.PartName(l.Item, l.Epoch))...)
		}
	}
}

// WriteScopes returns the scopes that writing a file under a temporary name requires.
func WriteScopes(final, temp string) []string {
	final, temp = "/"+final, "/"+temp
	return []string{token.Path("read", final), token.Path("create", final), token.Path("modify", temp), token.Path("read", temp)}
}

// issuesTokens reports whether the coordinator issues the tokens of a site.
func (c *Endpoints) issuesTokens(site string) bool {
	s, _ := c.sites.Get(site)
	return s.Kind == catalog.AgentSite
}

// issue issues a token for the endpoint of an agent. With a size, the token is limited to single
// files, and no more than size bytes may be stored with it.
func (c *Endpoints) issue(l *transfer.Lease, site string, life time.Duration, size *int64, scopes ...string) string {
	t, err := c.control.issuer.Mint(token.Grant{
		Subject:  fmt.Sprintf("copy %d.%d of request %d", l.Item, l.Epoch, l.Request),
		Audience: []string{Audience(site)}, Scopes: scopes, Life: life, Early: 24 * time.Hour, Size: size,
	})
	if err != nil {
		c.health.Set("tokens", err)
	}
	return t
}

// Target returns a file at one end of a lease for the coordinator's own requests. No more than the
// file's size may be stored with its token.
func (c *Endpoints) Target(l transfer.Lease, e transfer.End, scopes ...string) tpc.Target {
	e, guard, ours := c.sites.Target(&l, e)
	if ours {
		e.Token = c.issue(&l, e.Site, tokenLife, &l.Size, scopes...)
	}
	return tpc.Target{URL: e.URL, Token: e.Token, Cert: e.Cert, Pin: e.Pin, Servers: e.Servers, Guard: guard}
}

// delegations are the macaroons that sites without agents have issued. Other hosts never get the
// token of such a site, unless an administrator allows it. They get macaroons for one folder and a
// few hours.
type delegations struct {
	mu   sync.Mutex
	kept map[delegation]macaroon
}

// A delegation identifies a right at a site that is given to another host.
type delegation struct {
	folder
	activities string
	proxy      *tls.Certificate // with which it was requested; nil: the token of the site
}

type macaroon struct {
	text string // or the reason why the site issues no macaroons
	ends time.Time
}

// Delegate returns the token that another host uses for the file of a lease at an end that is not
// an agent's, or "" if no token is needed.
func (c *Endpoints) Delegate(ctx context.Context, l *transfer.Lease, e transfer.End, activities string) (string, error) {
	site, d, delegates := c.sites.Delegation(e.Site)
	switch {
	case d.Token == "" || d.Lend:
		return d.Token, nil
	case !delegates:
		return "", errors.New(dispatch.KeepsToken(e.Site))
	}
	k := delegation{folder: macaroonFolder(e, activities), activities: activities}
	text, err := c.macaroon(ctx, k, lifeOf(l), c.SiteTarget(site, d, k.path))
	if err != nil { // the next probe repeats the test
		c.sites.NoMacaroons(e.Site)
		return "", fmt.Errorf("macaroon of %s: %w", e.Site, err)
	}
	return text, nil
}

// macaroonFolder returns the folder or file for which the macaroon of one end of a lease is valid.
func macaroonFolder(e transfer.End, activities string) folder {
	f := folder{e.Site, path.Dir(e.Path)}
	if f.path == "." && activities == tpc.MayRead { // a macaroon never allows reading a whole site
		f.path = e.Path
	}
	return f
}

// macaroon returns a macaroon with at least half of a lifetime left.
func (c *Endpoints) macaroon(ctx context.Context, k delegation, life time.Duration, t tpc.Target) (string, error) {
	now := c.now()
	c.delegations.mu.Lock()
	m, ok := c.delegations.kept[k]
	c.delegations.mu.Unlock()
	if ok && now.Add(life/2).Before(m.ends) {
		return m.text, nil
	}
	ctx, cancel := context.WithTimeout(ctx, macaroonTime)
	defer cancel()
	text, err := c.tpc.Macaroon(ctx, t, k.activities, life)
	if err == nil {
		c.keepMacaroon(k, macaroon{text: text, ends: now.Add(life)})
	}
	return text, err
}

func (c *Endpoints) keepMacaroon(k delegation, m macaroon) {
	c.delegations.mu.Lock()
	defer c.delegations.mu.Unlock()
	if c.delegations.kept == nil || len(c.delegations.kept) > 10_000 {
		c.delegations.kept = map[delegation]macaroon{}
	}
	c.delegations.kept[k] = m
}

// ProxyMacaroon returns a macaroon for the other end of a copy whose job has a proxy, as FTS3 does. If
// the site issues no macaroons, it returns the reason instead.
func (c *Endpoints) ProxyMacaroon(ctx context.Context, l *transfer.Lease, e transfer.End, activities string) (text, none string,
	err error) {
	at := e
	k := delegation{folder: macaroonFolder(e, activities), activities: activities, proxy: e.Cert}
	whole := delegation{folder: folder{site: e.Site}, activities: activities, proxy: e.Cert}
	c.delegations.mu.Lock()
	m, ok := c.delegations.kept[whole]
	c.delegations.mu.Unlock()
	if ok && c.now().Before(m.ends) {
		return "", m.text, nil
	}
	at.Path = k.path
	text, err = c.macaroon(ctx, k, lifeOf(l), c.Target(*l, at))
	switch tpc.KindOf(err) {
	case tpc.Unsupported, tpc.Denied:
		none = fmt.Sprintf("%s gives the user's proxy no macaroon (%s)", e.Site, err)
		if tpc.KindOf(err) == tpc.Unsupported {
			c.keepMacaroon(whole, macaroon{text: none, ends: c.now().Add(macaroonEvery)})
		}
		return "", none, nil
	}
	return text, "", err
}

// SiteTarget returns a path at a site without an agent.
func (c *Endpoints) SiteTarget(site catalog.Site, d dispatch.Secrets, path string) tpc.Target {
	return tpc.Target{URL: dispatch.FileURL(site.URL, path), Token: d.Token, Pin: d.Pin, Servers: d.Servers, Guard: c.sites.Guard(site.Name)}
}

// Forget discards the macaroons of a site whose token has changed.
func (c *Endpoints) Forget(site string) {
	c.delegations.mu.Lock()
	defer c.delegations.mu.Unlock()
	for k := range c.delegations.kept {
		if k.site == site {
			delete(c.delegations.kept, k)
		}
	}
}

// Learn records the abilities of an endpoint and, every macaroonEvery, whether it issues macaroons.
func (c *Endpoints) Learn(ctx context.Context, site catalog.Site, d dispatch.Secrets, a tpc.Abilities) {
	p := c.sites.Endpoint(site.Name)
	p.Abilities = a
	if now := c.now(); d.Token != "" && !d.Lend && now.Sub(p.Asked) >= macaroonEvery {
		ask, cancel := context.WithTimeout(ctx, macaroonTime)
		_, err := c.tpc.Macaroon(ask, c.SiteTarget(site, d, "/"), tpc.MayRead, time.Minute)
		cancel()
		p.Asked = now
		switch tpc.KindOf(err) {
		case "":
			p.Macaroons = err == nil
		case tpc.Unsupported, tpc.Denied:
			p.Macaroons = false
		}
	}
	c.sites.SetEndpoint(site.Name, p)
}
