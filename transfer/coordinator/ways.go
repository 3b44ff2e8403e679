package coordinator

import (
	"fmt"
	"net/url"
	"strings"

	"weir/transfer"
	"weir/transfer/catalog"
	"weir/transfer/queue"
)

// A way is who moves a file from one source.
type way struct {
	mode  transfer.Mode
	mover string // the site of the agent; "": third parties
}

// Ways are how a file could come to a destination now.
type ways struct {
	sources []string
	by      map[string]way
	none    []string          // sources from which nobody can bring it now
	why     map[string]string // why not
}

// ways looks for who could bring a file from each of its sources. The registry is
// locked.
func (c *Coordinator) ways(dest string, f queue.Candidate) ways {
	w := ways{by: map[string]way{}, why: map[string]string{}}
	to := c.registry.sites[dest]
	for _, r := range f.Replicas {
		one, why := c.way(c.registry.sites[r.Site], to, f)
		if why != "" {
			w.none = append(w.none, r.Site)
			w.why[r.Site] = why
			continue
		}
		w.sources = append(w.sources, r.Site)
		w.by[r.Site] = one
	}
	return w
}

// way decides who moves a file between two sites: the destination's agent if it
// has one, else the source's, else a third-party copy. A file whose last attempt
// failed in one way is tried in the other one, too: a firewall may let through
// only one of them.
func (c *Coordinator) way(from, to catalog.Site, f queue.Candidate) (way, string) {
	modes := []transfer.Mode{transfer.Pull, transfer.Push, transfer.Third}
	switch {
	case f.Want != "":
		modes = []transfer.Mode{f.Want}
	case f.Mode == transfer.Pull && (f.Fault == transfer.Unreachable || f.Fault == transfer.Transient && f.Tries%2 == 1):
		modes = []transfer.Mode{transfer.Push, transfer.Pull, transfer.Third}
	}
	why := ""
	for _, m := range modes {
		mover, problem := c.movable(m, from, to)
		if a := c.registry.agents[mover]; problem == "" && a != nil && mover != "" && a.room(c.registry.net.Rules().Ahead) == 0 {
			why = fmt.Sprintf("the agent of site %s, which is to %s, is busy with %d of %d copies at once", mover, m, a.count, a.Slots)
			if m == transfer.Push && modes[0] == m && len(modes) > 1 {
				continue // it may have ended, too: then the usual way is left
			}
			return way{}, why
		}
		if problem == "" {
			return way{m, mover}, ""
		}
		if why == "" || !strings.Contains(problem, "no agent") {
			why = problem
		}
	}
	return way{}, why
}

// movable tells who moves files in a mode, or why nobody can now.
func (c *Coordinator) movable(m transfer.Mode, from, to catalog.Site) (mover, problem string) {
	mover, problem = c.mover(m, from, to)
	if problem != "" {
		return "", problem
	}
	if x := c.registry.unable[pair{from.Name, to.Name, m}]; c.now().Before(x.until) {
		return "", fmt.Sprintf("sites %s and %s cannot %s (%s)", from.Name, to.Name, inWords(m), x.why)
	}
	if why := c.refusing(mover, from.Name, to.Name); why != "" {
		return "", why
	}
	return mover, ""
}

// may tells whether files could be moved in a mode if all agents were there.
func (c *Coordinator) may(m transfer.Mode, from, to catalog.Site) bool {
	_, problem := c.eligible(m, from, to)
	return problem == "" && !c.now().Before(c.registry.unable[pair{from.Name, to.Name, m}].until)
}

// inWords is what a mode's movers do.
func inWords(m transfer.Mode) string {
	if m == transfer.Third {
		return "copy without an agent"
	}
	return string(m)
}

// mover tells whose agent moves files in a mode ("": third parties), or why nobody can
// now.
func (c *Coordinator) mover(m transfer.Mode, from, to catalog.Site) (mover, problem string) {
	mover, problem = c.eligible(m, from, to)
	needs := []catalog.Site{from, to} // the doors of a third-party copy
	switch m {
	case transfer.Pull:
		needs = needs[1:]
	case transfer.Push:
		needs = needs[:1]
	}
	for _, s := range needs {
		if problem == "" && s.Kind == agentKind && (c.registry.agents[s.Name] == nil || !s.Up) {
			problem = fmt.Sprintf("the agent of site %s, which is to %s, is not there", s.Name, inWords(m))
		}
	}
	return mover, problem
}

// eligible is mover where all agents are there.
func (c *Coordinator) eligible(m transfer.Mode, from, to catalog.Site) (mover, problem string) {
	at, other := to, from
	switch m {
	case transfer.Push:
		at, other = from, to
	case transfer.Third:
		if from.URL == "" || to.URL == "" {
			return "", fmt.Sprintf("sites %s and %s do not both have a door that others can reach, and no agent can reach both", from.Name, to.Name)
		}
		if !c.lends(from) && (!c.lends(to) || c.strange(from, to)) { // nobody pulls from it, and it does not push there
			return "", keepsToken(from.Name)
		}
		return "", ""
	}
	switch {
	case at.Kind != agentKind:
		return "", fmt.Sprintf("site %s has no agent to %s", at.Name, m)
	case other.URL == "":
		return "", fmt.Sprintf("the agent of site %s cannot %s: site %s has no door that others can reach", at.Name, m, other.Name)
	case !c.lends(other):
		return "", keepsToken(other.Name)
	}
	return at.Name, ""
}

// fileURL is a file at a site's endpoint.
func fileURL(base, path string) string {
	u := url.URL{Path: "/" + strings.TrimLeft(path, "/")}
	return strings.TrimSuffix(base, "/") + u.EscapedPath()
}

// strange tells whether a site without an agent cannot know the door of another one: its
// certificate is self-made, and of pins only weir's own servers know. The registry is locked.
func (c *Coordinator) strange(site, other catalog.Site) bool {
	a := c.registry.agents[other.Name]
	return a != nil && a.Pin != "" && strings.HasPrefix(other.URL, "https:") && !strings.HasPrefix(c.registry.endpoints[site.Name].Server, "weir")
}
