package dispatch

import (
	"net/url"
	"slices"
	"strings"
	"time"

	"weir/transfer/catalog"
	"weir/transfer/fts"
)

// UnusedEvery is the time between two searches for unused sites. A site that a submission has named is in use for as long.
const UnusedEvery = 10 * time.Minute

// Get returns a site and reports whether it is known.
func (f *Sites) Get(name string) (catalog.Site, bool) {
	r := f.r
	r.mu.Lock()
	defer r.mu.Unlock()
	s, known := r.sites[name]
	return s, known
}

// Set replaces all sites, and the secrets of the sites without agents.
func (f *Sites) Set(sites map[string]catalog.Site, all map[string]Secrets) {
	r := f.r
	r.mu.Lock()
	defer r.mu.Unlock()
	r.sites, r.secrets = sites, all
	r.applyLimitsLocked()
}

// SetUp records whether a site is up.
func (f *Sites) SetUp(name string, up bool, problem string) (s catalog.Site, changed, known bool) {
	r := f.r
	r.mu.Lock()
	defer r.mu.Unlock()
	s, known = r.sites[name]
	if changed = s.Up != up; known {
		s.Up, s.Problem = up, problem
		r.sites[name] = s
	}
	return s, changed, known
}

// SetFree records the free space of the agent of a site. changed reports whether it must be
// recorded in the catalog.
func (f *Agents) SetFree(site string, free int64) (seen time.Time, changed bool) {
	r := f.r
	r.mu.Lock()
	defer r.mu.Unlock()
	s, known := r.sites[site]
	now, a := r.now(), r.agents[site]
	if a != nil {
		a.free = free
	}
	difference := max(free-s.Free, s.Free-free)
	similar := difference < max(s.Free/100, 1<<20) && (free < 0) == (s.Free < 0)
	if a == nil || !known || s.Up && similar && now.Sub(s.Seen) < agentTimeout/2 {
		return now, false
	}
	s.Up, s.Free, s.Seen, s.Problem = true, free, now, ""
	r.sites[site] = s
	return now, true
}

// Silent returns the sites that are up and whose agents have been silent for too long, with the
// times of their last messages.
func (f *Agents) Silent() map[string]time.Time {
	r := f.r
	now, all := r.now(), map[string]time.Time{}
	r.mu.Lock()
	defer r.mu.Unlock()
	for name, s := range r.sites {
		heard, timeout, a := r.begun, agentTimeout, r.agents[name]
		if a != nil {
			heard, timeout = a.heard, a.timeoutLocked()
		}
		if s.Kind == catalog.AgentSite && s.Up && (a == nil || !a.waiting) && now.Sub(heard) >= timeout {
			all[name] = heard
		}
	}
	return all
}

// Reset discards the recorded failures and abilities of a site, because its credentials have
// changed.
func (f *Sites) Reset(name string) {
	r := f.r
	r.mu.Lock()
	defer r.mu.Unlock()
	r.resetBreakersLocked(name)
	delete(r.endpoints, name)
}

// Active returns the number of transfers from and to a site.
func (f *Sites) Active(name string) int {
	r := f.r
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.net.Active(name)
}

// Remove removes the agent of a site.
func (f *Agents) Remove(name string) {
	r := f.r
	r.mu.Lock()
	defer r.mu.Unlock()
	if a := r.agents[name]; a != nil {
		delete(r.agents, name)
		a.wake()
	}
}

// WithoutAgent returns the sites without an agent.
func (f *Sites) WithoutAgent() (names []string) {
	r := f.r
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, s := range r.sites {
		if s.Kind != catalog.AgentSite {
			names = append(names, s.Name)
		}
	}
	return names
}

// ofInterestLocked reports whether an administrator has configured a site.
func (r *registry) ofInterestLocked(s catalog.Site) bool {
	names := []string{s.Name, r.elementLocked(s.Name)}
	for _, l := range r.settings.Links {
		if slices.Contains(names, l.Source) || slices.Contains(names, l.Dest) {
			return true
		}
	}
	_, banned := r.bannedAsLocked(s)
	return banned || s.Max > 0 || slices.ContainsFunc(names, func(name string) bool { _, is := r.settings.SE[name]; return is })
}

// recentlyNamedLocked reports whether a submission has named a site a short time ago.
func (r *registry) recentlyNamedLocked(site string) bool {
	at, named := r.named[site]
	return named && r.now().Sub(at) < UnusedEvery
}

// Name records that a submission names a site, and reports whether the site exists.
func (f *Sites) Name(name string) bool {
	r := f.r
	r.mu.Lock()
	defer r.mu.Unlock()
	_, known := r.sites[name]
	if known = known && name != r.leaving; known {
		r.named[name] = r.now()
	}
	return known
}

// Unused returns the sites that were added for jobs and are not in use. It leaves out sites that an
// administrator has named, limited or banned.
func (f *Sites) Unused(used []string) (names []string) {
	r := f.r
	r.mu.Lock()
	defer r.mu.Unlock()
	for name, s := range r.sites {
		if s.Kind == catalog.URLSite && !slices.Contains(used, name) && !r.ofInterestLocked(s) && !r.recentlyNamedLocked(name) {
			names = append(names, name)
		}
	}
	return names
}

// Leave records that a site is being removed, unless it is in use. The caller must call Left
// afterwards.
func (f *Sites) Leave(name string) bool {
	r := f.r
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.recentlyNamedLocked(name) || r.net.Active(name) > 0 || r.sites[name].Kind != catalog.URLSite {
		return false
	}
	r.leaving = name
	return true
}

// Left records that no site is being removed.
func (f *Sites) Left() {
	r := f.r
	r.mu.Lock()
	defer r.mu.Unlock()
	r.leaving = ""
}

// Forget removes the state of a site that is no longer in the catalog.
func (f *Sites) Forget(name string) {
	r := f.r
	r.mu.Lock()
	defer r.mu.Unlock()
	r.resetBreakersLocked(name)
	r.net.Forget(name)
	delete(r.endpoints, name)
	delete(r.named, name)
}

// Of returns the site of a URL, or "" if no site matches, and the path below it. A site that an
// administrator has named comes first; known excludes other sites. inside reports whether a site of
// the server has a part of its paths only.
func (f *Sites) Of(u *url.URL, known bool) (site, path string, inside bool) {
	r := f.r
	server, best := fts.Server(u), -1
	path = strings.TrimLeft(u.Path, "/")
	whole := path + "/"
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, one := range r.sites {
		at, err := url.Parse(one.URL)
		if one.Kind == catalog.AgentSite || one.Name == r.leaving || known && one.Kind == catalog.URLSite {
			continue
		}
		if err != nil || at.Scheme != u.Scheme || fts.Server(at) != server {
			continue
		}
		below := strings.Trim(at.Path, "/")
		inside = inside || below != ""
		rest, ok := strings.CutPrefix(whole, strings.TrimPrefix(below+"/", "/"))
		rank := 2 * len(below)
		if one.Kind == catalog.HTTPSite { // an administrator has named it
			rank++
		}
		if ok && rank > best {
			site, best, path = one.Name, rank, strings.TrimSuffix(rest, "/")
		}
	}
	if site != "" {
		r.named[site] = r.now()
	}
	return site, path, inside
}

// A SiteState is the present state of a site.
type SiteState struct {
	catalog.Site
	Refuses bool // all requests
	Copies  int
	Agent   bool // an agent is registered
	Slots   int  // of the agent
}

// States returns the states of all sites.
func (f *Sites) States() []SiteState {
	r := f.r
	r.mu.Lock()
	defer r.mu.Unlock()
	refusals := r.refusalsLocked()
	all := make([]SiteState, 0, len(r.sites))
	for _, s := range r.sites {
		one := SiteState{Site: s, Refuses: refusals[s.Name] != "", Copies: r.net.Active(s.Name)}
		if a := r.agents[s.Name]; a != nil {
			one.Agent, one.Slots = true, a.Slots
		}
		all = append(all, one)
	}
	return all
}
