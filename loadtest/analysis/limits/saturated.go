package limits

import (
	"cmp"
	"slices"

	"weir/internal/stats"
	"weir/loadtest/analysis/basics"
	"weir/loadtest/analysis/hosts"
)

// A full resource is a resource that is saturated from some load on.
type full struct {
	resource, host string
	onset          int     // index in the ladder
	use            *usage  // at the onset
	let            int     // a heavier step with less use, as the yield had fallen; -1: no step
	own            float64 // largest part of it that clients and service used from the onset on
	threads        int     // of a core that is the built-in server's: threads that serve its pages
}

// uses returns each resource's use in all steps of the ladder, nil for steps in which it was not
// sampled.
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

// A resourceID identifies a resource of a host.
type resourceID struct{ resource, host string }

// Saturated returns the resources that are used up from some load on, and marks them in the steps.
// Loads at which a resource was not sampled do not count, nor do loads at which the yield has
// fallen: there the resource gets less work.
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

// markUndecided marks the resources that are neither saturated nor clearly free.
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

// onsetOf returns the index of the lightest step from which a resource is used up at all heavier
// steps, -1 without such a step. This has to be certain at one step; at the neighboring steps the
// means are enough.
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

// rank orders resources that are saturated at the same load: causes come before their effects. A
// pool of threads is full because each of its threads waits for another resource; the clients' own
// limit has nothing to do with the service. A wire that is always sending is full, even if other
// work keeps the cores busy meanwhile. The wait for a disk is never full itself, but it cannot be
// ruled out either.
func rank(resource string) int {
	return slices.Index([]string{hosts.ResourceGenerator, hosts.ResourceNetwork, hosts.ResourceCPU, hosts.ResourceCore,
		hosts.ResourceSent, hosts.ResourceReceived, hosts.ResourceDisk,
		hosts.ResourceScratch, hosts.ResourceMemory, hosts.ResourceFiles, hosts.ResourcePorts, hosts.ResourceThreads,
		hosts.ResourceIOWait}, resource)
}

// early reports whether x is full at the step at which the curve levels off, or at most one step
// later, or was never clearly free from that step on.
func (l *ladder) early(x *full) bool {
	from := max(l.level, l.top)
	if x.onset <= from+1 {
		return true
	}
	uses := l.uses()[resourceID{x.resource, x.host}]
	return !slices.ContainsFunc(uses[from:x.onset], func(u *usage) bool { return u == nil || u.clear })
}

// grown returns the factor by which the yield has certainly grown since x was full, beyond the
// growth that the rest of x allows (by the utilization law, U = X*D, it can grow by 1/U); 1 if it
// has not.
func (l *ladder) grown(x *full) float64 {
	after := l.bestAfter(x.onset)
	if after < 0 || l.exceeds(after, roomSlip*x.room(), x.onset) <= 0 {
		return 1
	}
	return max(1, stats.Ratio(l.yield(after), l.yield(x.onset)*x.room()))
}

// grownUp moves the onset of x to the lightest load from which the yield grows no more than the
// rest of x allows.
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

// limits reports whether x can keep the curve from growing: it is full at the step at which the
// curve levels off, or before, and the yield never grew by more than the rest of x allows.
func (l *ladder) limits(x *full) bool { return !x.idle() && l.early(x) && l.grown(x) <= 1 }

// room returns the factor by which the use of a resource could still have grown.
func (x *full) room() float64 {
	switch x.resource {
	case hosts.ResourceCPU, hosts.ResourceCore, hosts.ResourceGenerator, hosts.ResourceReceived, hosts.ResourceSent, hosts.ResourceNetwork:
		return 1 / max(0.5, min(1, shareOf(x.use.Share)))
	case hosts.ResourceDisk: // processes with files on other disks continue
		if x.use.group > 0 {
			return 1 / max(0.5, min(1, x.use.group))
		}
	}
	return 1
}

// serverThreads returns the number of threads of the built-in server that serve its pages, if u is
// the use of a core of that server; otherwise 0.
func (l *ladder) serverThreads(u *usage) int {
	if u.Resource != hosts.ResourceCore || u.Side != hosts.Server {
		return 0
	}
	return l.curve.PageThreads
}
