package dispatch

import (
	"fmt"
	"net/url"
	"strings"

	"weir/transfer"
	"weir/transfer/catalog"
	"weir/transfer/queue"
	"weir/transfer/remote"
)

func allModes() []transfer.Mode { return []transfer.Mode{transfer.Pull, transfer.Push, transfer.Third} }

// A method determines how a file is transferred from one source.
type method struct {
	mode  transfer.Mode
	mover string // the site of the agent; "": a third-party copy
}

// methods are the possible methods of transferring a file to a destination now.
type methods struct {
	sources []string
	by      map[string]method
	none    []string          // sources that cannot be used now
	why     map[string]string // why not
}

// methodsLocked finds a method for each source of a file.
func (r *registry) methodsLocked(dest string, f queue.Candidate) methods {
	w := methods{by: map[string]method{}, why: map[string]string{}}
	for _, p := range f.Replicas {
		one, why := r.methodLocked(r.sites[p.Site], r.sites[dest], f)
		if why != "" {
			w.none = append(w.none, p.Site)
			w.why[p.Site] = why
			continue
		}
		w.sources = append(w.sources, p.Site)
		w.by[p.Site] = one
	}
	return w
}

// methodLocked selects the mover of a file between two sites: the destination's agent if it has
// one, else the source's agent, else the sites themselves by a third-party copy. A file whose last
// attempt failed is also tried in the other mode, because a firewall may block one of them.
func (r *registry) methodLocked(from, to catalog.Site, f queue.Candidate) (method, string) {
	modes := allModes()
	if f.Job != "" { // it has credentials of its own
		from.Kind, to.Kind = catalog.URLSite, catalog.URLSite
	}
	switch {
	case f.Want != "":
		modes = []transfer.Mode{f.Want}
	case f.Mode == transfer.Pull && (f.Fault == transfer.Unreachable || f.Fault == transfer.Transient && f.Tries%2 == 1):
		modes = []transfer.Mode{transfer.Push, transfer.Pull, transfer.Third}
	}
	why := ""
	for _, m := range modes {
		mover, problem := r.availableLocked(m, from, to)
		if a := r.moverAgentLocked(mover); problem == "" && a != nil && a.roomLocked(r.net.Rules().Ahead) == 0 {
			why = fmt.Sprintf("the agent of site %s, which has to %s, is busy with %d of %d concurrent transfers", mover, m, a.count, a.Slots)
			if m == transfer.Push && modes[0] == m && len(modes) > 1 {
				continue // the agent may have stopped: the usual mode is left
			}
			return method{}, why
		}
		if problem == "" {
			return method{m, mover}, ""
		}
		if why == "" || !strings.Contains(problem, "no agent") {
			why = problem
		}
	}
	return method{}, why
}

// availableLocked returns the mover in a mode now ("": a third-party copy), or the reason why there is no mover.
func (r *registry) availableLocked(m transfer.Mode, from, to catalog.Site) (mover, problem string) {
	mover, problem = r.eligibleLocked(m, from, to)
	needs := []catalog.Site{from, to} // the endpoints of a third-party copy
	switch m {
	case transfer.Pull:
		needs = needs[1:]
	case transfer.Push:
		needs = needs[:1]
	}
	for _, s := range needs {
		if problem == "" && s.Kind == catalog.AgentSite && (r.agents[s.Name] == nil || !s.Up) {
			problem = fmt.Sprintf("the agent of site %s, which has to %s, is not registered", s.Name, verb(m))
		}
	}
	if problem != "" {
		return "", problem
	}
	if why := r.unsupportedLocked(m, from, to); why != "" && (m != transfer.Third || !r.streams) {
		return "", fmt.Sprintf("sites %s and %s cannot %s (%s)", from.Name, to.Name, verb(m), why)
	}
	if why := r.blockedLocked(mover, from.Name, to.Name); why != "" {
		return "", why
	}
	return mover, ""
}

func verb(m transfer.Mode) string {
	if m == transfer.Third {
		return "copy without an agent"
	}
	return string(m)
}

// eligibleLocked returns the mover in a mode if all agents were registered, or the reason why there is no mover.
func (r *registry) eligibleLocked(m transfer.Mode, from, to catalog.Site) (mover, problem string) {
	at, other := to, from
	switch m {
	case transfer.Push:
		at, other = from, to
	case transfer.Third:
		if from.URL == "" || to.URL == "" {
			return "", fmt.Sprintf("sites %s and %s do not both have an endpoint that others can reach, and no agent can reach both",
				from.Name, to.Name)
		}
		// No agent pulls from it, and its agent does not push there.
		if r.streams {
			return "", ""
		}
		return "", r.mustStreamLocked(from, to)
	}
	switch {
	case at.Kind != catalog.AgentSite:
		return "", fmt.Sprintf("site %s has no agent to %s", at.Name, m)
	case other.URL == "":
		return "", fmt.Sprintf("the agent of site %s cannot %s: site %s has no endpoint that others can reach", at.Name, m, other.Name)
	case remote.IsRoot(other.URL):
		return "", fmt.Sprintf("the agent of site %s cannot %s: it does not know the XRootD protocol of site %s", at.Name, m, other.Name)
	case !r.delegatesLocked(other):
		return "", KeepsToken(other.Name)
	}
	return at.Name, ""
}

// FileURL returns the URL of a file at a site.
func FileURL(base, path string) string {
	u := url.URL{Path: "/" + strings.TrimLeft(path, "/")}
	return strings.TrimSuffix(base, "/") + u.EscapedPath()
}

// unknownPinLocked reports whether a site without an agent cannot verify the endpoint of another
// site, whose certificate is self-signed: only weir's own servers support pins.
func (r *registry) unknownPinLocked(site, other catalog.Site) bool {
	a := r.agents[other.Name]
	return a != nil && a.Pin != "" && strings.HasPrefix(other.URL, "https:") &&
		!strings.HasPrefix(r.endpoints[site.Name].Server, "weir")
}

// mustStreamLocked returns the reason why two sites cannot copy from each other, or "" if they may
// be able to.
func (r *registry) mustStreamLocked(from, to catalog.Site) string {
	switch root := remote.IsRoot(from.URL); {
	case root != remote.IsRoot(to.URL):
		return fmt.Sprintf("sites %s and %s have different protocols", from.Name, to.Name)
	case root: // the destination needs no credentials at the source
		return r.unsupportedLocked(transfer.Third, from, to)
	}
	if !r.delegatesLocked(from) && (!r.delegatesLocked(to) || r.unknownPinLocked(from, to)) {
		return KeepsToken(from.Name)
	}
	return r.unsupportedLocked(transfer.Third, from, to)
}

// MustStream reports whether the ends of a lease cannot copy from each other, with the credentials
// of its job or of the sites.
func (f *Leases) MustStream(l *transfer.Lease) bool {
	r := f.r
	r.mu.Lock()
	defer r.mu.Unlock()
	from, to := r.sites[l.Source.Site], r.sites[l.Dest.Site]
	if l.Job != "" {
		from.Kind, to.Kind = catalog.URLSite, catalog.URLSite
	}
	return r.mustStreamLocked(from, to) != ""
}
