package limits

import (
	"cmp"
	"slices"

	"weir/loadtest/analysis/basics"
	"weir/loadtest/analysis/hosts"
)

// mostCandidates is the maximum number of listed candidates.
const mostCandidates = 6

// candidates lists the resources that may limit from step from on: resources that are undecided
// there, and saturated resources that the shape of the curve contradicts. Each is listed with the
// load of its highest use.
func (l *ladder) candidates(from int, doubts []full) []Candidate {
	var all []Candidate
	fell := l.fell()
	for id, uses := range l.uses() {
		var most *Candidate
		for i := from; i < len(uses); i++ {
			u := uses[i]
			doubted := slices.ContainsFunc(doubts, func(x full) bool { return resourceID{x.resource, x.host} == id })
			if u == nil || fell[i] || !u.Undecided && (!doubted || !u.Saturated) {
				continue
			}
			if most == nil || shareOf(u.Share) > shareOf(most.Share) {
				most = &Candidate{Resource: u.Resource, Host: u.Host, Side: u.Side, Step: l.steps[i].Step, Threads: l.serverThreads(u),
					Share: u.Share, Low: u.Low, High: u.High, Detail: u.Detail, Facts: u.Facts}
			}
		}
		if most != nil {
			all = append(all, *most)
		}
	}
	slices.SortFunc(all, func(a, b Candidate) int {
		return cmp.Or(cmp.Compare(shareOf(b.Share), shareOf(a.Share)), cmp.Compare(rank(a.Resource), rank(b.Resource)),
			cmp.Compare(a.Host, b.Host))
	})
	return all[:min(len(all), mostCandidates)]
}

// excluded lists the kinds of resources of the service's machines, and of the path to them, that
// were watched and are clearly not the limit.
func (l *ladder) excluded(from int, later []full) []string {
	seen := map[string]bool{}
	for _, s := range l.steps[from:] {
		for u := range basics.Each(s.Resources) {
			seen[kindOf(u.Resource)] = seen[kindOf(u.Resource)] || u.Side != hosts.Client
		}
	}
	for i := range later {
		seen[kindOf(later[i].resource)] = false
	}
	all := []string{}
	for _, kind := range []string{kindCPU, kindDisk, kindNetwork} {
		if seen[kind] {
			all = append(all, kind)
		}
	}
	return all
}

// Values of Bottleneck.Excluded.
const (
	kindCPU     = "cpu"
	kindDisk    = "disk"
	kindNetwork = "network"
)

func kindOf(resource string) string {
	switch resource {
	case hosts.ResourceCPU, hosts.ResourceCore:
		return kindCPU
	case hosts.ResourceDisk, hosts.ResourceScratch:
		return kindDisk
	case hosts.ResourceNetwork, hosts.ResourceReceived, hosts.ResourceSent:
		return kindNetwork
	}
	return ""
}
