package coordinator

import (
	"context"
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

// open fills in how agents reach the other end of their leases: its URL, pin and a
// token that is good for this file, for some time. The coordinator finds its own way
// when it needs one. back are the ends of leases for which there is no token now; they
// are not in opened.
func (c *Coordinator) open(ctx context.Context, leases []transfer.Lease) (opened []transfer.Lease, back []transfer.Outcome) {
	c.registry.mu.Lock()
	for i := range leases {
		switch l := &leases[i]; l.Mode {
		case transfer.Pull:
			c.reach(&l.Source)
		case transfer.Push:
			c.reach(&l.Dest)
		}
	}
	c.registry.mu.Unlock()
	opened = leases[:0]
	for _, l := range leases {
		if err := c.borrow(ctx, &l); err != nil {
			back = append(back, transfer.Outcome{Item: l.Item, Epoch: l.Epoch, Fault: transfer.MoverStopped, Reason: sentence(err.Error())})
			continue
		}
		opened = append(opened, l)
	}
	c.mintAll(opened)
	return opened, back
}

// borrow fills in the token of a lease's other end where that is a site without an
// agent.
func (c *Coordinator) borrow(ctx context.Context, l *transfer.Lease) (err error) {
	switch {
	case l.Mode == transfer.Pull && !c.minted(l.Source.Site):
		l.Source.Token, err = c.lent(ctx, l, l.Source, tpc.MayRead)
	case l.Mode == transfer.Push && !c.minted(l.Dest.Site):
		l.Dest.Token, err = c.lent(ctx, l, l.Dest, tpc.MayWrite)
		if c.borrowed(l.Dest) {
			l.Dest.Temp = tempName(*l) // in the folder that it is for
		}
	}
	return err
}

// mintAll fills in the tokens of agents' doors: one for each file, but of many files of
// a folder that are read one for all.
func (c *Coordinator) mintAll(leases []transfer.Lease) {
	pulled := func(l *transfer.Lease) bool {
		return l.Mode == transfer.Pull && l.Source.URL != "" && c.minted(l.Source.Site)
	}
	many := map[folder]int{}
	for i := range leases {
		if e := leases[i].Source; pulled(&leases[i]) {
			many[folder{e.Site, path.Dir(e.Path)}]++
		}
	}
	shared := map[folder]string{}
	for i := range leases {
		l := &leases[i]
		life := min(tokenLife+time.Duration(l.Size/slowRate)*time.Second, longToken)
		if pulled(l) {
			f := folder{l.Source.Site, path.Dir(l.Source.Path)}
			if many[f] < sameFolder || f.path == "." { // nobody gets a token for all of a site
				f.path = l.Source.Path
			}
			if shared[f] == "" {
				shared[f] = c.mint(l, f.site, life, nil, token.Path("read", "/"+f.path))
			}
			l.Source.Token = shared[f]
		}
		if l.Mode == transfer.Push && l.Dest.URL != "" && c.minted(l.Dest.Site) {
			final, temp := "/"+l.Dest.Path, "/"+transfer.PartName(l.Item, l.Epoch)
			l.Dest.Token = c.mint(l, l.Dest.Site, life, &l.Size, token.Path("read", final), token.Path("create", final), token.Path("modify", temp), token.Path("read", temp))
		}
	}
}

// reach fills in an end, and tells whether its token is still to be made. The registry
// is locked.
func (c *Coordinator) reach(e *transfer.End) bool {
	s := c.registry.sites[e.Site]
	if s.URL == "" {
		return false
	}
	e.URL = fileURL(s.URL, e.Path)
	if s.Kind == httpKind {
		d := c.registry.secrets[e.Site]
		e.Pin, e.Servers = d.Pin, d.Servers
		return false
	}
	if a := c.registry.agents[e.Site]; a != nil {
		e.Pin = a.Pin
	}
	return true
}

// minted tells whether the tokens of a site are the coordinator's.
func (c *Coordinator) minted(site string) bool {
	c.registry.mu.Lock()
	defer c.registry.mu.Unlock()
	return c.registry.sites[site].Kind == agentKind
}

// mint makes a token for the door of an agent. With a size it is for single files, of
// which no more than so many bytes are taken there.
func (c *Coordinator) mint(l *transfer.Lease, site string, life time.Duration, size *int64, scopes ...string) string {
	t, err := c.issuer.Mint(token.Grant{
		Subject: fmt.Sprintf("copy %d.%d of request %d", l.Item, l.Epoch, l.Request), Audience: []string{audience(site)}, Scopes: scopes, Life: life, Early: 24 * time.Hour, Size: size,
	})
	if err != nil {
		c.health.say("tokens", err)
	}
	return t
}

// target is the file at one end of a lease, as the coordinator asks for it. No more
// than the file's size may be stored with its token.
func (c *Coordinator) target(l transfer.Lease, e transfer.End, scopes ...string) tpc.Target {
	c.registry.mu.Lock()
	ours, guard := c.reach(&e), c.guard(e.Site)
	if e.Token = ""; !ours {
		e.Token = c.registry.secrets[e.Site].Token
	}
	c.registry.mu.Unlock()
	if ours {
		e.Token = c.mint(&l, e.Site, tokenLife, &l.Size, scopes...)
	}
	return tpc.Target{URL: e.URL, Token: e.Token, Pin: e.Pin, Servers: e.Servers, Guard: guard}
}
