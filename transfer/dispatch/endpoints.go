package dispatch

import (
	"fmt"
	"time"

	"weir/internal/tpc"
	"weir/transfer"
	"weir/transfer/catalog"
)

// Resolve fills in the URLs and pins of the other ends of the leases of agents.
func (f *Sites) Resolve(leases []transfer.Lease) {
	r := f.r
	r.mu.Lock()
	defer r.mu.Unlock()
	for i := range leases {
		switch l := &leases[i]; l.Mode {
		case transfer.Pull:
			r.resolveLocked(&l.Source)
		case transfer.Push:
			r.resolveLocked(&l.Dest)
		}
	}
}

// resolveLocked fills in the URL and pin of an end, and reports whether the coordinator issues its tokens.
func (r *registry) resolveLocked(e *transfer.End) bool {
	s := r.sites[e.Site]
	if s.URL == "" {
		return false
	}
	e.URL = FileURL(s.URL, e.Path)
	if s.Kind != catalog.AgentSite {
		d := r.secrets[e.Site]
		e.Pin, e.Servers = d.Pin, d.Servers
		return false
	}
	if a := r.agents[e.Site]; a != nil {
		e.Pin = a.Pin
	}
	return true
}

// Secrets returns the credentials of a site.
func (f *Sites) Secrets(site string) Secrets {
	r := f.r
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.secrets[site]
}

// Target returns an end of a lease with its URL, pin and token, and the guard of connections to it. ours reports whether the coordinator
// issues its token.
func (f *Sites) Target(l *transfer.Lease, e transfer.End) (_ transfer.End, guard *tpc.Guard, ours bool) {
	r := f.r
	r.mu.Lock()
	defer r.mu.Unlock()
	ours, guard = r.resolveLocked(&e), r.guardLocked(e.Site)
	switch {
	case l.Job != "": // its own token is filled in
		ours = false
	case ours:
		e.Token = ""
	default:
		e.Token = r.secrets[e.Site].Token
	}
	return e, guard, ours
}

// guardLocked limits the addresses to which the coordinator connects for the endpoint of an Agent,
// by the area from which that agent connects: an agent in the public internet cannot have it
// contact a private network, or itself. An endpoint from the URLs of a job has the limit of
// Config.JobArea. nil is no limit: an administrator has added the site.
func (r *registry) guardLocked(site string) *tpc.Guard {
	switch r.sites[site].Kind {
	case catalog.HTTPSite:
		return nil
	case catalog.URLSite:
		return r.guards[r.jobArea]
	}
	if a := r.agents[site]; a != nil {
		return r.guards[a.area]
	}
	return r.guards[tpc.Public]
}

// Guard returns the guard of connections to a site, see guardLocked.
func (f *Sites) Guard(site string) *tpc.Guard {
	r := f.r
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.guardLocked(site)
}

// An Endpoint has the results of probes of a site without an agent.
type Endpoint struct {
	tpc.Abilities
	Macaroons bool      // it issues macaroons
	Asked     time.Time // for a macaroon
}

// delegatesLocked reports whether other hosts can be given credentials for a site.
func (r *registry) delegatesLocked(site catalog.Site) bool {
	if site.Kind != catalog.HTTPSite {
		return true // the coordinator issues them, or jobs have them
	}
	d := r.secrets[site.Name]
	return d.Token == "" || d.Lend || r.endpoints[site.Name].Macaroons
}

// KeepsToken returns the reason why other hosts cannot read or write at a site.
func KeepsToken(site string) string {
	return fmt.Sprintf("the token of site %s is not given to others, and the site issues no macaroons (site add --lend-token "+
		"gives it to them)", site)
}

// Delegation returns a site with its credentials, and reports whether other hosts can be given
// credentials for it.
func (f *Sites) Delegation(name string) (site catalog.Site, d Secrets, delegates bool) {
	r := f.r
	r.mu.Lock()
	defer r.mu.Unlock()
	site = r.sites[name]
	return site, r.secrets[name], r.delegatesLocked(site)
}

// Endpoint returns the known abilities of a site without an Agent.
func (f *Sites) Endpoint(site string) Endpoint {
	r := f.r
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.endpoints[site]
}

// SetEndpoint records the abilities of a site without an agent.
func (f *Sites) SetEndpoint(site string, p Endpoint) {
	r := f.r
	r.mu.Lock()
	defer r.mu.Unlock()
	r.endpoints[site] = p
}

// NoMacaroons records that a site issues no macaroons, until the next probe.
func (f *Sites) NoMacaroons(site string) {
	r := f.r
	r.mu.Lock()
	defer r.mu.Unlock()
	p := r.endpoints[site]
	p.Macaroons = false
	r.endpoints[site] = p
}
