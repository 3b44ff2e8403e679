package coordinator

import (
	"context"
	"errors"
	"fmt"
	"path"
	"sync"
	"time"

	"weir/internal/tpc"
	"weir/transfer"
	"weir/transfer/catalog"
)

// What others get of a site without an agent: never its token, unless an
// administrator says so, but macaroons for one folder and some hours where the site
// makes them.

const (
	lendTime  = 15 * time.Second // for a site to make a macaroon
	lendEvery = 10 * time.Minute // a site is asked whether it makes any
)

// A lender keeps the macaroons that were made, for leases of the same folder.
type lender struct {
	mu   sync.Mutex
	kept map[loan]macaroon
}

// A loan is what somebody else is to do at a site.
type loan struct {
	site, folder string
	activities   string
}

type macaroon struct {
	text string
	ends time.Time
}

// An endpoint is what was learned of a site without an agent when it was probed.
type endpoint struct {
	tpc.Abilities
	macaroons bool
	asked     time.Time
}

// lends tells whether others can be given credentials for a site. The registry is locked.
func (c *Coordinator) lends(site catalog.Site) bool {
	if site.Kind != httpKind {
		return true // the coordinator makes them
	}
	d := c.registry.secrets[site.Name]
	return d.Token == "" || d.Lend || c.registry.endpoints[site.Name].macaroons
}

// keepsToken says why nobody else reads or writes at a site.
func keepsToken(site string) string {
	return fmt.Sprintf("the token of site %s is not given to others, and it makes no macaroons (site add --lend-token gives it to them)", site)
}

// lent returns the token that somebody else uses for a file of a lease at one of its
// ends, which is no agent's door: "" if none is needed.
func (c *Coordinator) lent(ctx context.Context, l *transfer.Lease, e transfer.End, activities string) (string, error) {
	c.registry.mu.Lock()
	d, site := c.registry.secrets[e.Site], c.registry.sites[e.Site]
	lends := c.lends(site)
	c.registry.mu.Unlock()
	switch {
	case d.Token == "" || d.Lend:
		return d.Token, nil
	case !lends:
		return "", errors.New(keepsToken(e.Site))
	}
	life := min(tokenLife+time.Duration(l.Size/slowRate)*time.Second, longToken)
	k := loan{e.Site, path.Dir(e.Path), activities}
	if k.folder == "." && activities == tpc.MayRead { // nobody reads all of a site
		k.folder = e.Path
	}
	now := c.now()
	c.lender.mu.Lock()
	m, ok := c.lender.kept[k]
	c.lender.mu.Unlock()
	if ok && now.Add(life/2).Before(m.ends) {
		return m.text, nil
	}
	ctx, cancel := context.WithTimeout(ctx, lendTime)
	defer cancel()
	text, err := c.tpc.Macaroon(ctx, tpc.Target{URL: fileURL(site.URL, k.folder), Token: d.Token, Pin: d.Pin, Servers: d.Servers}, activities, life)
	if err != nil { // it is asked again when it is probed
		c.registry.mu.Lock()
		p := c.registry.endpoints[e.Site]
		p.macaroons = false
		c.registry.endpoints[e.Site] = p
		c.registry.mu.Unlock()
		return "", fmt.Errorf("a macaroon of %s: %w", e.Site, err)
	}
	c.lender.mu.Lock()
	defer c.lender.mu.Unlock()
	if c.lender.kept == nil || len(c.lender.kept) > 10_000 {
		c.lender.kept = map[loan]macaroon{}
	}
	c.lender.kept[k] = macaroon{text, now.Add(life)}
	return text, nil
}

// forgetLoans has macaroons of a site made anew: it has another token.
func (c *Coordinator) forgetLoans(site string) {
	c.lender.mu.Lock()
	defer c.lender.mu.Unlock()
	for k := range c.lender.kept {
		if k.site == site {
			delete(c.lender.kept, k)
		}
	}
}

// learn notes what an endpoint can, and now and then whether it makes macaroons.
func (c *Coordinator) learn(ctx context.Context, site catalog.Site, d secrets, a tpc.Abilities) {
	c.registry.mu.Lock()
	p := c.registry.endpoints[site.Name]
	c.registry.mu.Unlock()
	p.Abilities = a
	if now := c.now(); d.Token != "" && !d.Lend && now.Sub(p.asked) >= lendEvery {
		ask, cancel := context.WithTimeout(ctx, lendTime)
		_, err := c.tpc.Macaroon(ask, tpc.Target{URL: fileURL(site.URL, "/"), Token: d.Token, Pin: d.Pin, Servers: d.Servers}, tpc.MayRead, time.Minute)
		cancel()
		p.asked = now
		switch tpc.KindOf(err) {
		case "":
			p.macaroons = err == nil
		case tpc.Unsupported, tpc.Denied:
			p.macaroons = false
		}
	}
	c.registry.mu.Lock()
	defer c.registry.mu.Unlock()
	c.registry.endpoints[site.Name] = p
}

// borrowed tells whether an end's token is a macaroon.
func (c *Coordinator) borrowed(e transfer.End) bool {
	c.registry.mu.Lock()
	defer c.registry.mu.Unlock()
	return e.Token != "" && e.Token != c.registry.secrets[e.Site].Token
}
