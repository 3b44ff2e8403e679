package analysis

import (
	"cmp"
	"math"
	"slices"

	"weir/loadtest/analysis/shape"
)

// Bounds by which a curve is said to level off.
const (
	halfGrowth = 0.5  // of the load's growth
	growthSlip = 0.05 // that noise may add to it
	leastRange = 1.25 // factor between loads that can show anything
	roomSlip   = 1.1  // what a resource that is full may give more than its room, by noise
	efficiency = 2    // factor by which cores that are full may give more still, as each operation costs less in a crowd
	noInterval = 0.1  // half of the interval of a yield that has none, as a share of it
)

// A ladder is the tested loads, the lightest first; of equal ones the first that was tested.
type ladder struct {
	f     *Findings
	steps []*Step
	level int  // from here on the yield grows by less than half as much as the load; -1: nowhere
	sure  bool // that it does so is more than the yields' noise
	top   int  // the lightest step that gives 95% of the best yield
}

func (f *Findings) ladder() *ladder {
	l := &ladder{f: f, level: -1}
	for s := range each(f.Curve) {
		if f.load(s) > 0 {
			l.steps = append(l.steps, s)
		}
	}
	slices.SortStableFunc(l.steps, func(a, b *Step) int { return cmp.Compare(f.load(a), f.load(b)) })
	l.steps = slices.CompactFunc(l.steps, func(a, b *Step) bool { return f.load(a) == f.load(b) })
	if len(l.steps) == 0 {
		return l
	}
	most := 0.0
	for i := range l.steps {
		most = max(most, l.yield(i))
	}
	l.top = slices.IndexFunc(l.steps, func(s *Step) bool { y, _, _ := f.yield(s); return y >= shape.NearBest*most })
	l.top = max(0, l.top)
	l.level, l.sure = l.levels()
	return l
}

func (l *ladder) yield(i int) float64 { y, _, _ := l.f.yield(l.steps[i]); return y }
func (l *ladder) load(i int) float64  { return l.f.load(l.steps[i]) }
func (l *ladder) last() int           { return len(l.steps) - 1 }

// narrow reports whether the loads lie too near to each other to show a curve.
func (l *ladder) narrow() bool { return l.load(l.last()) < leastRange*l.load(0) }

// half is half of the interval of a step's yield.
func (l *ladder) half(i int) float64 {
	mean, low, high := l.f.yield(l.steps[i])
	if low == nil || high == nil {
		return noInterval * mean
	}
	return max(0, *high-mean) // the lower half is cut at zero
}

// exceeds compares the yield of step j with factor times that of step i, by the 95% interval of the difference: +1 if
// it is more, -1 if it is less, 0 if that is undecided.
func (l *ladder) exceeds(j int, factor float64, i int) int {
	difference, half := l.yield(j)-factor*l.yield(i), math.Hypot(l.half(j), factor*l.half(i))
	switch {
	case difference > half:
		return 1
	case difference <= -half:
		return -1
	}
	return 0
}

// levels returns the lightest step from which on the yield grows, to every heavier step, by less than half as much as
// the load, -1 if there is none; and whether the yields' intervals agree. Where they agree of no step, it is the
// lightest of which they say the contrary neither of it nor of a heavier step that yields as much.
func (l *ladder) levels() (level int, sure bool) {
	perhaps := -1
	for i := range l.steps {
		if l.load(l.last()) < leastRange*l.load(i) {
			break
		}
		most := -1 // the clearest growth beyond it
		for j := i + 1; j < len(l.steps); j++ {
			more := ratio(l.load(j), l.load(i)) - 1
			most = max(most, l.exceeds(j, 1+halfGrowth*more+growthSlip, i))
		}
		switch {
		case l.yield(i) <= 0:
		case most < 0:
			return i, true
		case most == 0 && perhaps < 0:
			perhaps = i
		case most > 0 && perhaps >= 0 && l.yield(i) >= l.yield(perhaps):
			perhaps = -1 // it clearly grows beyond: only the noise of that step hid it
		}
	}
	return perhaps, false
}

// bestAfter returns the step beyond i that yields most, -1 if i is the last.
func (l *ladder) bestAfter(i int) int {
	best := -1
	for j := i + 1; j < len(l.steps); j++ {
		if best < 0 || l.yield(j) > l.yield(best) {
			best = j
		}
	}
	return best
}

// from is where the limit begins to show when nothing else tells: the lightest step that gives nearly the best, if
// there is a heavier one.
func (l *ladder) from() int {
	if l.top < l.last() {
		return l.top
	}
	return max(0, l.level)
}

// cycle returns the mean time of an operation of step i, and of the pause and the computing that belong to it, in
// seconds; zeros where none ended, or where jobs do both at once.
func (l *ladder) cycle(i int) (latency, think float64) {
	s := l.steps[i]
	if s.Latency == nil || s.Done == 0 || s.Jobs != nil && !s.oneByOne {
		return 0, 0
	}
	return s.Latency.Mean, ratio(s.thinkSeconds+s.computeSeconds, float64(s.Done))
}

// fallen is the share of the best lighter yield below which a yield has fallen.
const fallen = 0.9

// fell tells which steps yield clearly less than a lighter one.
func (l *ladder) fell() []bool {
	all, most := make([]bool, len(l.steps)), 0.0
	for i := range l.steps {
		all[i] = l.yield(i) < fallen*most
		most = max(most, l.yield(i))
	}
	return all
}

// A full resource is one that is saturated from some load on.
type full struct {
	resource, host string
	onset          int            // place in the ladder
	use            *ResourceUsage // there
	let            int            // a heavier step at which less was used, as the yield had fallen; -1: none
	own            float64        // largest part of it that clients and service used from there on
	threads        int            // of a core that is the built-in server's: threads that serve its pages
}

// uses returns each resource's use in all steps of the ladder, nil where it was not seen.
func (l *ladder) uses() map[resourceID][]*ResourceUsage {
	seen := map[resourceID][]*ResourceUsage{}
	for i, s := range l.steps {
		for u := range each(s.Resources) {
			id := resourceID{u.Resource, u.Host}
			if seen[id] == nil {
				seen[id] = make([]*ResourceUsage, len(l.steps))
			}
			seen[id][i] = u
		}
	}
	return seen
}

// A resourceID names a resource of a host.
type resourceID struct{ resource, host string }

// saturated finds what is used up from some load on and stays so, and marks it in the steps. Loads at which a
// resource was not seen do not count, nor do those at which the yield has fallen: what used it up gets less there.
func (l *ladder) saturated() []full {
	var all []full
	fell := l.fell()
	for id, uses := range l.uses() {
		onset := onsetOf(uses, fell)
		if onset < 0 || kindOf(id.resource) == kindDisk && !deepens(uses, onset) {
			continue
		}
		x := full{id.resource, id.host, onset, uses[onset], -1, 0, l.f.serverThreads(uses[onset])}
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
func onsetOf(uses []*ResourceUsage, fell []bool) int {
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
func deepens(uses []*ResourceUsage, onset int) bool {
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
	return slices.Index([]string{ResourceGenerator, ResourceNetwork, ResourceCPU, ResourceCore, ResourceSent, ResourceReceived, ResourceDisk,
		ResourceScratch, ResourceMemory, ResourceFiles, ResourcePorts, ResourceThreads, ResourceIOWait}, resource)
}

// early reports whether x is full where the curve levels off, or at most one step later, or from there on was never
// clear of being full.
func (l *ladder) early(x *full) bool {
	from := max(l.level, l.top)
	if x.onset <= from+1 {
		return true
	}
	uses := l.uses()[resourceID{x.resource, x.host}]
	return !slices.ContainsFunc(uses[from:x.onset], func(u *ResourceUsage) bool { return u == nil || u.clear })
}

// grown is by what factor the yield certainly grew since x was full, more than what was left of x allows (by the
// utilization law, U = X*D, it can grow by 1/U); 1 if it did not.
func (l *ladder) grown(x *full) float64 {
	after := l.bestAfter(x.onset)
	if after < 0 || l.exceeds(after, roomSlip*x.room(), x.onset) <= 0 {
		return 1
	}
	return max(1, ratio(l.yield(after), l.yield(x.onset)*x.room()))
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
	case ResourceCPU, ResourceCore, ResourceGenerator, ResourceReceived, ResourceSent, ResourceNetwork:
		return 1 / max(0.5, min(1, shareOf(x.use.Share)))
	case ResourceDisk: // what has its files on other disks goes on
		if x.use.group > 0 {
			return 1 / max(0.5, min(1, x.use.group))
		}
	}
	return 1
}

// serverThreads returns how many threads of the built-in server serve its pages, if u is of a core of it; else 0.
func (f *Findings) serverThreads(u *ResourceUsage) int {
	if u.Resource != ResourceCore || u.Side != server {
		return 0
	}
	return f.pageThreads
}
