package limits

import (
	"cmp"
	"slices"

	"weir/internal/stats"
	"weir/loadtest/analysis/basics"
	"weir/loadtest/analysis/hosts"
)

// A full resource is one that is saturated from some load on.
type full struct {
	resource, host string
	onset          int     // place in the ladder
	use            *usage  // there
	let            int     // a heavier step at which less was used, as the yield had fallen; -1: none
	own            float64 // largest part of it that clients and service used from there on
	threads        int     // of a core that is the built-in server's: threads that serve its pages
}

// uses returns each resource's use in all steps of the ladder, nil where it was not seen.
func (l *ladder) uses() map[resourceID][]*usage {
	seen := map[resourceID][]*usage{}
	for i, s := range l.steps {
		for u := range basics.Each(l.res[s]) {
			id := resourceID{u.Resource, u.Host}
			if seen[id] == nil {
				seen[id] = make([]*usage, len(l.steps))
			}
			seen[id][i] = u
		}
	}
	return seen
}

// A resourceID names a resource of a host.
type resourceID struct{ resource, host string }

// Saturated finds resources that are used up from some load on, and marks them in the steps. Loads at which a
// resource was not seen do not count, nor do those at which the yield has fallen: what used it up gets less there.
func (l *ladder) Saturated() []full {
	var all []full
	fell := l.fell()
	for id, uses := range l.uses() {
		onset := onsetOf(uses, fell)
		if onset < 0 || kindOf(id.resource) == kindDisk && !deepens(uses, onset) {
			continue
		}
		x := full{id.resource, id.host, onset, uses[onset], -1, 0, l.serverThreads(uses[onset])}
		for i, u := range uses[onset:] {
			if u == nil {
				continue
			}
			u.Saturated = u.reached || u.holds
			x.own = max(x.own, u.own)
			if !u.Saturated {
				x.let = onset + i
			}
		}
		all = append(all, x)
	}
	slices.SortFunc(all, func(a, b full) int {
		return cmp.Or(cmp.Compare(a.onset, b.onset), cmp.Compare(rank(a.resource), rank(b.resource)),
			cmp.Compare(shareOf(b.use.Share), shareOf(a.use.Share)), cmp.Compare(a.host, b.host))
	})
	return all
}

// markUndecided marks what is neither saturated nor clearly not.
func (l *ladder) markUndecided() {
	for id, uses := range l.uses() {
		deep := kindOf(id.resource) != kindDisk
		for i := range uses {
			deep = deep || uses[i] != nil && deepens(uses, i)
		}
		for _, u := range uses {
			if u != nil {
				u.Undecided = !u.Saturated && !u.clear && deep && rank(u.Resource) >= 0
			}
		}
	}
}

// onsetOf returns the place of the lightest step at which a resource is used up and stays so at all heavier ones, -1
// if there is none. That it is has to be certain at one step; at those next to it the means are enough.
func onsetOf(uses []*usage, fell []bool) int {
	onset := -1
	for i := len(uses) - 1; i >= 0; i-- {
		switch {
		case uses[i] == nil || fell[i] && !uses[i].reached:
		case !uses[i].holds && !uses[i].reached:
			return onset
		case uses[i].reached || onset >= 0 && uses[i].near:
			onset = i
		}
	}
	return onset
}

// deepens reports whether a disk's queue grows with the load, or is deep.
func deepens(uses []*usage, onset int) bool {
	before, most := uses[onset].depth, 0.0
	for i := onset - 1; i >= 0; i-- {
		if uses[i] != nil {
			before = uses[i].depth
			break
		}
	}
	for _, u := range uses[onset:] {
		if u != nil {
			most = max(most, u.depth)
		}
	}
	return most >= deepQueue || most >= queueGrows*before
}

// rank orders what is saturated at the same load: what causes comes before what follows from it. A pool of threads is
// full because each of them waits for something; the clients' own limit says nothing of the service. A wire that is
// always sending is full, whoever keeps the cores busy meanwhile. Waiting for a disk is never full itself, but it
// cannot be ruled out either.
func rank(resource string) int {
	return slices.Index([]string{hosts.ResourceGenerator, hosts.ResourceNetwork, hosts.ResourceCPU, hosts.ResourceCore,
		hosts.ResourceSent, hosts.ResourceReceived, hosts.ResourceDisk,
		hosts.ResourceScratch, hosts.ResourceMemory, hosts.ResourceFiles, hosts.ResourcePorts, hosts.ResourceThreads,
		hosts.ResourceIOWait}, resource)
}

// early reports whether x is full where the curve levels off, or at most one step later, or from there on was never
// clear of being full.
func (l *ladder) early(x *full) bool {
	from := max(l.level, l.top)
	if x.onset <= from+1 {
		return true
	}
	uses := l.uses()[resourceID{x.resource, x.host}]
	return !slices.ContainsFunc(uses[from:x.onset], func(u *usage) bool { return u == nil || u.clear })
}

// grown is by what factor the yield certainly grew since x was full, more than what was left of x allows (by the
// utilization law, U = X*D, it can grow by 1/U); 1 if it did not.
func (l *ladder) grown(x *full) float64 {
	after := l.bestAfter(x.onset)
	if after < 0 || l.exceeds(after, roomSlip*x.room(), x.onset) <= 0 {
		return 1
	}
	return max(1, stats.Ratio(l.yield(after), l.yield(x.onset)*x.room()))
}

// grownUp moves the onset of x to the lightest load from which on the yield grows no more than what is left of x
// allows.
func (l *ladder) grownUp(x full) full {
	uses := l.uses()[resourceID{x.resource, x.host}]
	for i := x.onset; i < len(uses); i++ {
		if uses[i] == nil || !uses[i].Saturated {
			continue
		}
		moved := x
		moved.onset, moved.use = i, uses[i]
		if l.grown(&moved) <= 1 {
			return moved
		}
	}
	return x
}

// limits reports whether x can be what keeps the curve from growing: it is full where the curve levels off, or before,
// and the yield never became larger than what was left of it allows.
func (l *ladder) limits(x *full) bool { return !x.idle() && l.early(x) && l.grown(x) <= 1 }

// room is by what factor more a resource could have been used.
func (x *full) room() float64 {
	switch x.resource {
	case hosts.ResourceCPU, hosts.ResourceCore, hosts.ResourceGenerator, hosts.ResourceReceived, hosts.ResourceSent, hosts.ResourceNetwork:
		return 1 / max(0.5, min(1, shareOf(x.use.Share)))
	case hosts.ResourceDisk: // processes with files on other disks go on
		if x.use.group > 0 {
			return 1 / max(0.5, min(1, x.use.group))
		}
	}
	return 1
}

// serverThreads returns how many threads of the built-in server serve its pages, if u is of a core of it; else 0.
func (l *ladder) serverThreads(u *usage) int {
	if u.Resource != hosts.ResourceCore || u.Side != hosts.Server {
		return 0
	}
	return l.curve.PageThreads
}
