package coordinator

import (
	"fmt"
	"path"
	"time"

	"weir/internal/token"
	"weir/internal/tpc"
	"weir/transfer"
)

const (
	sameFolder = 8         // files of a folder from which on one token for the folder serves them all
	tokenLife  = time.Hour // and as long as the file takes at slowRate
	slowRate   = 1 << 20   // bytes per second
	longToken  = 72 * time.Hour
)

// A folder is one of a site.
type folder struct{ site, path string }

// open fills in how movers reach the other end of their leases: its URL, pin and a
// token that is good for this file, for some time.
func (c *Coordinator) open(leases []transfer.Lease) {
	c.hub.mu.Lock()
	var minted []*transfer.End // whose tokens are ours to make
	for i := range leases {
		l := &leases[i]
		if l.Mode == transfer.Check {
			continue // who looks is there, or the coordinator
		}
		if l.Mode != transfer.Push && c.reach(&l.Source) {
			minted = append(minted, &l.Source)
		}
		if l.Mode != transfer.Pull {
			c.reach(&l.Dest)
		}
	}
	c.hub.mu.Unlock()
	many := map[folder]int{}
	for _, e := range minted {
		many[folder{e.Site, path.Dir(e.Path)}]++
	}
	shared := map[folder]string{}
	for i := range leases {
		l := &leases[i]
		life := min(tokenLife+time.Duration(l.Size/slowRate)*time.Second, longToken)
		if l.Source.URL != "" && l.Source.Token == "" && c.minted(l.Source.Site) {
			f := folder{l.Source.Site, path.Dir(l.Source.Path)}
			if many[f] < sameFolder || f.path == "." { // nobody gets a token for all of a site
				f.path = l.Source.Path
			}
			if shared[f] == "" {
				shared[f] = c.mint(l, f.site, life, nil, token.Path("read", "/"+f.path))
			}
			l.Source.Token = shared[f]
		}
		if l.Dest.URL != "" && l.Dest.Token == "" && c.minted(l.Dest.Site) {
			final, temp := "/"+l.Dest.Path, fmt.Sprintf("/.weir/%d.%d.part", l.Item, l.Epoch)
			l.Dest.Token = c.mint(l, l.Dest.Site, life, &l.Size, token.Path("read", final), token.Path("create", final), token.Path("modify", temp), token.Path("read", temp))
		}
	}
}

// reach fills in an end, and tells whether its token is still to be made. The hub
// is locked.
func (c *Coordinator) reach(e *transfer.End) bool {
	s := c.hub.sites[e.Site]
	if s.URL == "" {
		return false
	}
	e.URL = fileURL(s.URL, e.Path)
	if s.Kind == httpKind {
		d := c.hub.doors[e.Site]
		e.Token, e.Pin = d.Token, d.Pin
		return false
	}
	if a := c.hub.agents[e.Site]; a != nil {
		e.Pin = a.Pin
	}
	return true
}

// minted tells whether the tokens of a site are the coordinator's.
func (c *Coordinator) minted(site string) bool {
	c.hub.mu.Lock()
	defer c.hub.mu.Unlock()
	return c.hub.sites[site].Kind == agentKind
}

// mint makes a token for the door of an agent. With a size it is for single files, of
// which no more than so many bytes are taken there.
func (c *Coordinator) mint(l *transfer.Lease, site string, life time.Duration, size *int64, scopes ...string) string {
	t, err := c.issuer.Mint(token.Grant{
		Subject: fmt.Sprintf("copy %d.%d of request %d", l.Item, l.Epoch, l.Request), Audience: []string{audience(site)}, Scopes: scopes, Life: life, Early: 24 * time.Hour, Size: size,
	})
	if err != nil {
		c.told.say("tokens", err)
	}
	return t
}

// target is the file at one end of a lease, as the coordinator asks for it. No more
// than the file's size may be stored with its token.
func (c *Coordinator) target(l transfer.Lease, e transfer.End, scopes ...string) tpc.Target {
	c.hub.mu.Lock()
	ours, guard := c.reach(&e), c.guard(e.Site)
	c.hub.mu.Unlock()
	if ours {
		e.Token = c.mint(&l, e.Site, tokenLife, &l.Size, scopes...)
	}
	return tpc.Target{URL: e.URL, Token: e.Token, Pin: e.Pin, Guard: guard}
}
