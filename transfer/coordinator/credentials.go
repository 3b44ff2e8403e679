package coordinator

import (
	"context"
	"crypto/aes"
	"crypto/cipher"
	"crypto/rand"
	"crypto/tls"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"net/http"
	"net/netip"
	"os"
	"path"
	"sync"
	"time"

	"weir/internal/durable"
	"weir/internal/token"
	"weir/internal/tpc"
	"weir/transfer"
	"weir/transfer/catalog"
)

const (
	folderFiles   = 8         // files of a folder from which on they share one token for the folder
	tokenLife     = time.Hour // plus the time that the file takes at slowRate
	slowRate      = 1 << 20   // bytes per second
	longToken     = 72 * time.Hour
	macaroonTime  = 15 * time.Second // for a site to issue a macaroon
	macaroonEvery = 10 * time.Minute // a site is asked whether it issues any
)

// A folder is a folder at a site.
type folder struct{ site, path string }

// lifeOf returns the lifetime of the tokens for a lease.
func lifeOf(l *transfer.Lease) time.Duration {
	return min(tokenLife+time.Duration(l.Size/slowRate)*time.Second, longToken)
}

// addCredentials fills in how agents reach the other ends of their leases: URL, pin and a short-lived
// token for the file. back are the outcomes of leases for which there is no token now.
func (c *Coordinator) addCredentials(ctx context.Context, leases []transfer.Lease) (opened []transfer.Lease, back []transfer.Outcome) {
	c.registry.mu.Lock()
	for i := range leases {
		switch l := &leases[i]; l.Mode {
		case transfer.Pull:
			c.resolveLocked(&l.Source)
		case transfer.Push:
			c.resolveLocked(&l.Dest)
		}
	}
	c.registry.mu.Unlock()
	opened = leases[:0]
	for _, l := range leases {
		if err := c.addDelegated(ctx, &l); err != nil {
			back = append(back, transfer.Outcome{Item: l.Item, Epoch: l.Epoch, Fault: transfer.MoverStopped, Reason: sentence(err.Error())})
			continue
		}
		opened = append(opened, l)
	}
	c.addTokens(opened)
	return opened, back
}

// addDelegated fills in the token of a lease's other end if that is a site without an agent.
func (c *Coordinator) addDelegated(ctx context.Context, l *transfer.Lease) (err error) {
	switch {
	case l.Mode == transfer.Pull && !c.issuesTokens(l.Source.Site):
		l.Source.Token, err = c.delegate(ctx, l, l.Source, tpc.MayRead)
	case l.Mode == transfer.Push && !c.issuesTokens(l.Dest.Site):
		l.Dest.Token, err = c.delegate(ctx, l, l.Dest, tpc.MayWrite)
		if l.Dest.Token != "" && l.Dest.Token != c.secretsOf(l.Dest.Site).Token {
			l.Dest.Temp = tempName(*l) // in the folder that the macaroon is for
		}
	}
	return err
}

// addTokens fills in the tokens of agents' endpoints: one for each file, or one for a folder of which
// many files are read.
func (c *Coordinator) addTokens(leases []transfer.Lease) {
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
			if many[f] < folderFiles || f.path == "." { // there is no token for all of a site
				f.path = l.Source.Path
			}
			if shared[f] == "" {
				shared[f] = c.issue(l, f.site, lifeOf(l), nil, token.Path("read", "/"+f.path))
			}
			l.Source.Token = shared[f]
		}
		if l.Mode == transfer.Push && l.Dest.URL != "" && c.issuesTokens(l.Dest.Site) {
			l.Dest.Token = c.issue(l, l.Dest.Site, lifeOf(l), &l.Size, writeScopes(l.Dest.Path, transfer.PartName(l.Item, l.Epoch))...)
		}
	}
}

// writeScopes returns the scopes that writing a file under a temporary name requires.
func writeScopes(final, temp string) []string {
	final, temp = "/"+final, "/"+temp
	return []string{token.Path("read", final), token.Path("create", final), token.Path("modify", temp), token.Path("read", temp)}
}

// resolveLocked fills in the URL and pin of an end, and reports whether the coordinator issues its tokens.
func (c *Coordinator) resolveLocked(e *transfer.End) bool {
	s := c.registry.sites[e.Site]
	if s.URL == "" {
		return false
	}
	e.URL = fileURL(s.URL, e.Path)
	if s.Kind != agentKind {
		d := c.registry.secrets[e.Site]
		e.Pin, e.Servers = d.Pin, d.Servers
		return false
	}
	if a := c.registry.agents[e.Site]; a != nil {
		e.Pin = a.Pin
	}
	return true
}

// issuesTokens reports whether the coordinator issues the tokens of a site.
func (c *Coordinator) issuesTokens(site string) bool {
	s, _ := c.registry.site(site)
	return s.Kind == agentKind
}

func (c *Coordinator) secretsOf(site string) secrets {
	c.registry.mu.Lock()
	defer c.registry.mu.Unlock()
	return c.registry.secrets[site]
}

// issue issues a token for the endpoint of an agent. With a size it is for single files, and no more
// bytes than that may be stored with it.
func (c *Coordinator) issue(l *transfer.Lease, site string, life time.Duration, size *int64, scopes ...string) string {
	t, err := c.issuer.Mint(token.Grant{
		Subject:  fmt.Sprintf("copy %d.%d of request %d", l.Item, l.Epoch, l.Request),
		Audience: []string{audience(site)}, Scopes: scopes, Life: life, Early: 24 * time.Hour, Size: size,
	})
	if err != nil {
		c.health.set("tokens", err)
	}
	return t
}

// target returns a file at one end of a lease for the coordinator's own requests. No more than the
// file's size may be stored with its token.
func (c *Coordinator) target(l transfer.Lease, e transfer.End, scopes ...string) tpc.Target {
	c.registry.mu.Lock()
	ours, guard := c.resolveLocked(&e), c.guardLocked(e.Site)
	switch {
	case l.Job != "": // lent has filled in its own token
		ours = false
	case ours:
		e.Token = ""
	default:
		e.Token = c.registry.secrets[e.Site].Token
	}
	c.registry.mu.Unlock()
	if ours {
		e.Token = c.issue(&l, e.Site, tokenLife, &l.Size, scopes...)
	}
	return tpc.Target{URL: e.URL, Token: e.Token, Cert: e.Cert, Pin: e.Pin, Servers: e.Servers, Guard: guard}
}

// guardLocked limits where the coordinator connects to reach the endpoint of an agent, by where that agent
// connects from: an agent in the public internet cannot have it contact a private network, or itself.
// An endpoint from the URLs of a job has the limit of Config.JobArea. nil is no limit: an administrator has added the site.
func (c *Coordinator) guardLocked(site string) *tpc.Guard {
	switch c.registry.sites[site].Kind {
	case httpKind:
		return nil
	case urlKind:
		return c.guards[c.conf.JobArea]
	}
	if a := c.registry.agents[site]; a != nil {
		return c.guards[a.area]
	}
	return c.guards[tpc.Public]
}

// areaOf returns the area from which a request comes.
func areaOf(r *http.Request) tpc.Area {
	from, err := netip.ParseAddrPort(r.RemoteAddr)
	if err != nil {
		return tpc.Public
	}
	if to, ok := r.Context().Value(http.LocalAddrContextKey).(*net.TCPAddr); ok && to.AddrPort().Addr().Unmap() == from.Addr().Unmap() {
		return tpc.Loopback // by whatever address of this machine
	}
	if area := tpc.AreaOf(from.Addr()); area != tpc.Special {
		return area
	}
	return tpc.Network // link-local: a neighbor
}

// delegations are the macaroons that sites without agents have issued. Others never get the token of
// such a site, unless an administrator says so, but macaroons for one folder and a few hours.
type delegations struct {
	mu   sync.Mutex
	kept map[delegation]macaroon
}

// A delegation is what somebody else may do at a site.
type delegation struct {
	folder
	activities string
	proxy      *tls.Certificate // with which it was requested; nil: the token of the site
}

type macaroon struct {
	text string // or why the site issues none
	ends time.Time
}

// An endpoint is what probes have found out about a site without an agent.
type endpoint struct {
	tpc.Abilities
	macaroons bool
	asked     time.Time
}

// delegatesLocked reports whether others can be given credentials for a site.
func (c *Coordinator) delegatesLocked(site catalog.Site) bool {
	if site.Kind != httpKind {
		return true // the coordinator issues them, or jobs have them
	}
	d := c.registry.secrets[site.Name]
	return d.Token == "" || d.Lend || c.registry.endpoints[site.Name].macaroons
}

// keepsToken says why others cannot read or write at a site.
func keepsToken(site string) string {
	return fmt.Sprintf("the token of site %s is not given to others, and the site issues no macaroons (site add --lend-token "+
		"gives it to them)", site)
}

// delegate returns the token that somebody else uses for the file of a lease at an end that is not
// an agent's, "" if none is needed.
func (c *Coordinator) delegate(ctx context.Context, l *transfer.Lease, e transfer.End, activities string) (string, error) {
	c.registry.mu.Lock()
	d, site := c.registry.secrets[e.Site], c.registry.sites[e.Site]
	delegates := c.delegatesLocked(site)
	c.registry.mu.Unlock()
	switch {
	case d.Token == "" || d.Lend:
		return d.Token, nil
	case !delegates:
		return "", errors.New(keepsToken(e.Site))
	}
	k := delegation{folder: macaroonFolder(e, activities), activities: activities}
	text, err := c.macaroon(ctx, k, lifeOf(l), c.siteTarget(site, d, k.path))
	if err != nil { // the next probe asks again
		c.registry.mu.Lock()
		p := c.registry.endpoints[e.Site]
		p.macaroons = false
		c.registry.endpoints[e.Site] = p
		c.registry.mu.Unlock()
		return "", fmt.Errorf("macaroon of %s: %w", e.Site, err)
	}
	return text, nil
}

// macaroonFolder returns what a macaroon for one end of a lease is for.
func macaroonFolder(e transfer.End, activities string) folder {
	f := folder{e.Site, path.Dir(e.Path)}
	if f.path == "." && activities == tpc.MayRead { // no one reads all of a site
		f.path = e.Path
	}
	return f
}

// macaroon returns a macaroon with at least half of a lifetime left.
func (c *Coordinator) macaroon(ctx context.Context, k delegation, life time.Duration, t tpc.Target) (string, error) {
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

func (c *Coordinator) keepMacaroon(k delegation, m macaroon) {
	c.delegations.mu.Lock()
	defer c.delegations.mu.Unlock()
	if c.delegations.kept == nil || len(c.delegations.kept) > 10_000 {
		c.delegations.kept = map[delegation]macaroon{}
	}
	c.delegations.kept[k] = m
}

// proxyMacaroon returns a macaroon for the other end of a copy whose job has a proxy, as FTS3 does. none says why the site issues none.
func (c *Coordinator) proxyMacaroon(ctx context.Context, l *transfer.Lease, e transfer.End, activities string) (text, none string,
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
	text, err = c.macaroon(ctx, k, lifeOf(l), c.target(*l, at))
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

// siteTarget returns a path at a site without an agent.
func (c *Coordinator) siteTarget(site catalog.Site, d secrets, path string) tpc.Target {
	c.registry.mu.Lock()
	guard := c.guardLocked(site.Name)
	c.registry.mu.Unlock()
	return tpc.Target{URL: fileURL(site.URL, path), Token: d.Token, Pin: d.Pin, Servers: d.Servers, Guard: guard}
}

// forgetDelegations discards the macaroons of a site, which has another token.
func (c *Coordinator) forgetDelegations(site string) {
	c.delegations.mu.Lock()
	defer c.delegations.mu.Unlock()
	for k := range c.delegations.kept {
		if k.site == site {
			delete(c.delegations.kept, k)
		}
	}
}

// learn records the abilities of an endpoint, and from time to time whether it issues macaroons.
func (c *Coordinator) learn(ctx context.Context, site catalog.Site, d secrets, a tpc.Abilities) {
	c.registry.mu.Lock()
	p := c.registry.endpoints[site.Name]
	c.registry.mu.Unlock()
	p.Abilities = a
	if now := c.now(); d.Token != "" && !d.Lend && now.Sub(p.asked) >= macaroonEvery {
		ask, cancel := context.WithTimeout(ctx, macaroonTime)
		_, err := c.tpc.Macaroon(ask, c.siteTarget(site, d, "/"), tpc.MayRead, time.Minute)
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

// A secretBox encrypts the secrets in the database with a key outside of it.
type secretBox struct{ box cipher.AEAD }

// newSecretBox returns a box with the key in file, which is created if it is missing.
func newSecretBox(file string) (*secretBox, error) {
	key, err := keepFile(file, newKey)
	if err != nil {
		return nil, err
	}
	if len(key) != 32 {
		return nil, fmt.Errorf("%s: the key must have 32 bytes; without the right key the tokens of sites must be entered again", file)
	}
	block, err := aes.NewCipher(key)
	if err != nil {
		return nil, err
	}
	box, err := cipher.NewGCMWithRandomNonce(block)
	return &secretBox{box}, err
}

func newKey() ([]byte, error) {
	key := make([]byte, 32)
	_, err := rand.Read(key)
	return key, err
}

// close encrypts a secret of one owner.
func (s *secretBox) close(secret, owner string) []byte {
	if secret == "" {
		return []byte{}
	}
	return s.box.Seal(nil, nil, []byte(secret), []byte(owner))
}

// open decrypts a secret of the same owner.
func (s *secretBox) open(sealed []byte, owner string) (string, error) {
	if len(sealed) == 0 {
		return "", nil
	}
	secret, err := s.box.Open(nil, nil, sealed, []byte(owner))
	if err != nil {
		return "", fmt.Errorf("the token of site %s cannot be decrypted with the key in %s: enter it again", owner, secretBoxFile)
	}
	return string(secret), nil
}

// keepFile returns the content of a file, which is created if it is missing.
func keepFile(path string, create func() ([]byte, error)) ([]byte, error) {
	text, err := os.ReadFile(path)
	if !errors.Is(err, fs.ErrNotExist) {
		return text, err
	}
	if text, err = create(); err != nil {
		return nil, err
	}
	return text, durable.Write(path, text, 0o600)
}
