package coordinator

import (
	"fmt"
	"net/url"
	"strings"

	"weir/catalog"
	"weir/transfer"
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

// ways looks for who could bring a file from each of its sources. The hub is
// locked.
func (c *Coordinator) ways(dest string, f queue.Candidate) ways {
	w := ways{by: map[string]way{}, why: map[string]string{}}
	to := c.hub.sites[dest]
	for _, r := range f.Replicas {
		one, why := c.way(c.hub.sites[r.Site], to, f)
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
	case f.Mode == transfer.Pull && (f.Fault == transfer.Away || f.Fault == transfer.Transient && f.Tries%2 == 1):
		modes = []transfer.Mode{transfer.Push, transfer.Pull, transfer.Third}
	}
	why := ""
	for _, m := range modes {
		mover, problem := c.movable(m, from, to)
		if a := c.hub.agents[mover]; problem == "" && a != nil && mover != "" && a.room(c.hub.net.Rules().Ahead) == 0 {
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

// movable tells who moves files in a mode, or why nobody can.
func (c *Coordinator) movable(m transfer.Mode, from, to catalog.Site) (mover, problem string) {
	at, other := to, from
	switch m {
	case transfer.Push:
		at, other = from, to
	case transfer.Third:
		if from.URL == "" || to.URL == "" {
			return "", fmt.Sprintf("sites %s and %s do not both have a door that others can reach, and no agent can reach both", from.Name, to.Name)
		}
		if from.Kind != httpKind && to.Kind != httpKind && c.hub.agents[from.Name] == nil && c.hub.agents[to.Name] == nil {
			return "", fmt.Sprintf("neither %s nor %s is there", from.Name, to.Name)
		}
		return "", ""
	}
	a := c.hub.agents[at.Name]
	switch {
	case at.Kind != agentKind:
		return "", fmt.Sprintf("site %s has no agent to %s", at.Name, m)
	case a == nil || !at.Up:
		return "", fmt.Sprintf("the agent of site %s, which is to %s, is not there", at.Name, m)
	case other.URL == "":
		return "", fmt.Sprintf("the agent of site %s cannot %s: site %s has no door that others can reach", at.Name, m, other.Name)
	}
	return at.Name, ""
}

// fileURL is a file at a site's endpoint.
func fileURL(base, path string) string {
	u := url.URL{Path: "/" + strings.TrimLeft(path, "/")}
	return strings.TrimSuffix(base, "/") + u.EscapedPath()
}
