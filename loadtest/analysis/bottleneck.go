package analysis

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"weir/internal/unit"
)

// Values of Bottleneck.Resource beside those of ResourceUsage.Resource.
const (
	LimitLatency = "latency"           // nothing is full: each client waits for its own operations
	LimitInside  = "inside the server" // all that was watched is clearly not full, and throughput does not grow
	LimitUnknown = "unknown"           // see Bottleneck.Reason and Candidates
	LimitNone    = "none"              // no limit was reached in the tested range
)

// proportional is the share of the lightest step's yield of each client that the heaviest must keep for the curve to
// be called straight.
const proportional = 0.8

// bottleneck says what limits the curve: first what was saturated first as the load grew, where the curve levels off,
// then what was saturated later. It marks what is saturated, and what is undecided, in the steps. Where the
// evidence does not decide, the answer is LimitUnknown.
func (d *data) bottleneck(f *Findings, best int) []Bottleneck {
	l := f.ladder()
	if best < 0 || len(l.steps) == 0 {
		return []Bottleneck{}
	}
	all := l.saturated()
	l.markUndecided()
	switch {
	case l.narrow():
		return l.atOneLoad(all)
	case l.level < 0:
		return l.growing(all)
	}
	v := l.sort(all)
	if len(v.causes) == 0 {
		return append([]Bottleneck{l.hidden(&v)}, l.following(v.later, -1)...)
	}
	return l.limited(v.causes, v.later, v.before)
}

// A sorted is what is saturated, by what it has to do with the curve.
type sorted struct {
	causes []full   // may be what limits; the first is named
	later  []full   // is saturated beyond the place where the curve levels off only
	doubts []full   // is saturated, but the curve grew too much since: it may burn what it has
	before []string // sentences about what is saturated and does not limit
}

// sort finds what of all that is saturated can limit the curve. What others crowd counts where nothing else is left.
func (l *ladder) sort(all []full) sorted {
	var v sorted
	var crowded []full
	for _, x := range all {
		grown := l.grown(&x)
		switch {
		case x.idle():
			v.before = append(v.before, l.usedByOthersText(&x))
			v.doubts = append(v.doubts, x)
		case x.sharedCPU():
			v.causes = append(v.causes, l.grownUp(x))
		case !l.early(&x):
			v.later = append(v.later, x)
		case grown <= 1:
			v.causes = append(v.causes, x)
		case x.usedByOthers():
			crowded = append(crowded, x)
			v.before = append(v.before, l.usedByOthersText(&x))
		case grown <= efficiency && (x.resource == ResourceCPU || x.resource == ResourceCore || x.resource == ResourceGenerator):
			v.causes = append(v.causes, l.grownUp(x))
		default:
			v.before = append(v.before, l.beforeText(&x))
			v.doubts = append(v.doubts, x)
		}
	}
	if len(v.causes) == 0 && len(crowded) > 0 {
		v.causes, v.before = crowded[:1], nil // what is left for the service follows from what others do
	}
	slices.SortStableFunc(v.causes, func(a, b full) int { return cmp.Compare(a.precedence(v.causes), b.precedence(v.causes)) })
	return v
}

// precedence orders causes so that the answer does not depend on which of two related causes was seen first: a
// wire that is full is full whoever uses the CPU; of a machine that clients and service share the CPU is the limit,
// whichever of its parts is full with it; and a client machine's CPU, or a core of it, is full because of the
// generator.
func (x *full) precedence(all []full) int {
	generates := func(o full) bool { return o.resource == ResourceGenerator && o.host == x.host }
	switch {
	case x.resource == ResourceNetwork:
		return 0
	case x.sharedCPU():
		return 1
	case (x.resource == ResourceCPU || x.resource == ResourceCore) && slices.ContainsFunc(all, generates):
		return 3
	}
	return 2
}

// limited makes the answer of causes that are certain.
func (l *ladder) limited(causes, later []full, before []string) []Bottleneck {
	x := &causes[0]
	first := l.named(x)
	first.Evidence = append(first.Evidence, l.growthText(x.onset))
	first.Evidence = append(first.Evidence, l.letText(x)...)
	first.Evidence = append(first.Evidence, l.context(causes)...)
	first.Evidence = append(first.Evidence, before...)
	return append([]Bottleneck{first}, l.following(append(causes[1:], later...), x.onset)...)
}

// named makes the Bottleneck of a full resource, with the first sentence.
func (l *ladder) named(x *full) Bottleneck {
	s := l.steps[x.onset]
	b := Bottleneck{Resource: x.resource, Host: x.host, Side: x.use.Side, Step: s.Step, From: s.Clients, Threads: x.threads,
		Shared: x.use.Side == "both"}
	if x.usedByOthers() {
		b.Foreign = x.use.foreign
	}
	b.Evidence = []string{fmt.Sprintf("At %s %s is saturated: %s.", l.f.at(s), b.name()+b.of(), x.use.Detail)}
	if x.onset > 0 {
		for _, u := range l.steps[x.onset-1].Resources {
			if u.Resource == x.resource && u.Host == x.host && u.Share != nil && !u.Saturated {
				b.Evidence = append(b.Evidence, fmt.Sprintf("At %s it was used to %s.", l.f.at(l.steps[x.onset-1]), unit.Percent(*u.Share)))
			}
		}
	}
	return b
}

// letText reports on a heavier load at which less of x was used.
func (l *ladder) letText(x *full) []string {
	if x.let < 0 {
		return nil
	}
	for _, u := range l.steps[x.let].Resources {
		if u.Resource == x.resource && u.Host == x.host && u.Share != nil {
			return []string{fmt.Sprintf("At %s, where %s has fallen, only %s of it is used: something else, such as a lock, takes the time.",
				l.f.at(l.steps[x.let]), l.f.noun(), unit.Percent(*u.Share))}
		}
	}
	return nil
}

// context is what else has to be known of the first of causes.
func (l *ladder) context(causes []full) []string {
	x := &causes[0]
	s := l.steps[x.onset]
	var all []string
	switch x.use.Side {
	case "both":
		all = append(all, "Clients and service share this machine: what one of them uses is not available to the other, "+
			"and the curve is that of both together.")
	case client:
		what := "This limit is on the client side: the service may be able to give more than the curve shows."
		if x.resource == ResourceCPU && (s.burned > 0 || s.programs) {
			what = "The jobs themselves compute with it: more or faster machines would do more, and the service may be able to give more than " +
				"the curve shows."
		}
		all = append(all, what)
	}
	if x.usedByOthers() {
		all = append(all, l.usedByOthersText(x))
	}
	var others []string
	for i := range causes[1:] {
		o := &causes[1+i]
		if o.onset == x.onset {
			others = append(others, o.text())
		}
	}
	if len(others) > 0 {
		all = append(all, fmt.Sprintf("Also saturated from %s on: %s.", l.f.at(s), strings.Join(head(others, 4), ", ")))
	}
	return all
}

// following lists what is saturated beside the first bottleneck. Of the same resource of many hosts the first stands
// for all.
func (l *ladder) following(later []full, shown int) []Bottleneck {
	all := []Bottleneck{}
	hosts := map[[2]string]int{}
	for x := range each(later) {
		id := [2]string{x.resource, x.use.Side}
		at, ok := hosts[id]
		if ok {
			if n := len(all[at].Evidence); n < 4 {
				all[at].Evidence = append(all[at].Evidence, fmt.Sprintf("On %s it is saturated from %s on.", x.host, l.f.at(l.steps[x.onset])))
			}
			continue
		}
		hosts[id] = len(all)
		b := l.named(x)
		if x.onset > shown && shown >= 0 {
			b.Evidence = append(b.Evidence, "Another resource was saturated before.")
		}
		all = append(all, b)
	}
	return all
}

// usedByOthers reports whether programs other than the clients and the service used much of it.
func (x *full) usedByOthers() bool { return x.use.foreign >= othersWarn }

// sharedCPU reports whether x is the CPU of a machine that clients and service share.
func (x *full) sharedCPU() bool {
	return x.resource == ResourceCPU && x.use.Side == "both" && !x.idle()
}

// leastOwn is the part of a resource that clients and service use at least if it can be what they wait for: of a CPU
// each program that wants it gets a part.
const leastOwn = 0.1

// idle reports whether others use x up, and clients and service hardly any of it.
func (x *full) idle() bool { return x.usedByOthers() && x.own < leastOwn }
