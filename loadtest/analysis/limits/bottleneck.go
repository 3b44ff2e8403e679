// Package limits finds the limit of a curve: the use of each resource in each step, the load from which on it is saturated, and how
// several servers shared the load.
package limits

import (
	"cmp"
	"slices"

	"weir/loadtest/analysis/basics"
	"weir/loadtest/analysis/fact"
	"weir/loadtest/analysis/hosts"
	"weir/loadtest/analysis/steps"
)

// A Bottleneck is the resource that limits the curve from some load on.
type Bottleneck struct {
	Resource string  `json:"resource"` // as in ResourceUsage; or LimitLatency and the like
	Host     string  `json:"host"`
	Side     string  `json:"side"`
	Step     int     `json:"step"`                    // the lightest step at which it is saturated
	From     int     `json:"from_clients"`            // of that step
	Shared   bool    `json:"shared"`                  // clients and service share it
	Threads  int     `json:"threads,omitempty"`       // of a core that is the built-in server's: threads that serve its pages
	Foreign  float64 `json:"foreign_ratio,omitempty"` // share of a CPU that other programs and guests used
	Reason   string  `json:"reason,omitempty"`        // of LimitUnknown: ReasonUnwatched and the like
	// of LimitUnknown: resources that may limit, and cannot be ruled out; of LimitNone: resources
	// that may be saturated next
	Candidates []Candidate `json:"candidates,omitempty"`
	Excluded   []string    `json:"excluded,omitempty"` // of LimitInside: kinds of resources that are clearly not the limit
	Evidence   []string    `json:"evidence"`           // sentences with numbers: the texts of Facts
	Facts      []fact.Fact `json:"facts,omitempty"`
}

// addFact adds a fact to the evidence, see fact.New.
func (b *Bottleneck) addFact(code string, pairs ...any) { b.add(fact.New(code, pairs...)) }

func (b *Bottleneck) add(facts ...fact.Fact) {
	b.Facts = append(b.Facts, facts...)
	b.Evidence = fact.Texts(b.Facts)
}

// Values of Bottleneck.Reason.
const (
	ReasonUnwatched = "unwatched"      // the machines of the service, or the generator, were not watched, or only some of them
	ReasonNoise     = "noise"          // the use of a resource is too near to its limit, or too noisy
	ReasonGrowth    = "growth"         // the noise hides whether the curve still grows
	ReasonForeign   = "other programs" // other programs, or guests of the hypervisor, used the rest
)

// A Candidate is a resource that may limit a curve.
type Candidate struct {
	Resource string   `json:"resource"`
	Host     string   `json:"host"`
	Side     string   `json:"side"`
	Step     int      `json:"step"`              // the step of the stated use
	Threads  int      `json:"threads,omitempty"` // as of a Bottleneck
	Share    *float64 `json:"use_ratio"`         // nil: its size is not known, or it was not watched
	Low      *float64 `json:"use_low"`
	High     *float64 `json:"use_high"`
	Detail   string   `json:"detail"` // the texts of Facts

	Facts []fact.Fact `json:"facts,omitempty"`
}

// Values of Bottleneck.Resource that ResourceUsage.Resource does not have.
const (
	LimitLatency = "latency"           // no resource is full: each client waits for its operations
	LimitInside  = "inside the server" // all watched resources are clearly free, and the curve is flat
	LimitUnknown = "unknown"           // see Bottleneck.Reason and Candidates
	LimitNone    = "none"              // no limit was reached in the tested range
)

// proportional is the share of the yield per client at the lightest step that the heaviest step
// must keep if the curve is to count as straight.
const proportional = 0.8

// Bottlenecks returns the limits of the curve: first the resource that was saturated first as the
// load grew, if the curve levels off there, then the resources that were saturated later. It marks
// the saturated and the undecided resources in the steps. If the evidence does not decide, it
// returns LimitUnknown.
func Bottlenecks(curve *steps.Curve, res Resources, best int) []Bottleneck {
	l := newLadder(curve, res)
	if best < 0 || len(l.steps) == 0 {
		return []Bottleneck{}
	}
	all := l.Saturated()
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

// A sorted holds the saturated resources, by their relation to the curve.
type sorted struct {
	causes []full      // may be the limit; the first is named
	later  []full      // saturated only beyond the load at which the curve levels off
	doubts []full      // saturated, but the curve grew too much since: busy loops
	before []fact.Fact // on resources that are saturated and do not limit
}

// sort selects the saturated resources that can limit the curve. A resource that other programs
// crowd counts only if no other resource is left.
func (l *ladder) sort(all []full) sorted {
	var v sorted
	var crowded []full
	for _, x := range all {
		grown := l.grown(&x)
		switch {
		case x.idle():
			v.before = append(v.before, l.foreignUse(&x))
			v.doubts = append(v.doubts, x)
		case x.sharedCPU():
			v.causes = append(v.causes, l.grownUp(x))
		case !l.early(&x):
			v.later = append(v.later, x)
		case grown <= 1:
			v.causes = append(v.causes, x)
		case x.usedByOthers():
			crowded = append(crowded, x)
			v.before = append(v.before, l.foreignUse(&x))
		case grown <= efficiency && (x.resource == hosts.ResourceCPU || x.resource == hosts.ResourceCore ||
			x.resource == hosts.ResourceGenerator):
			v.causes = append(v.causes, l.grownUp(x))
		default:
			v.before = append(v.before, l.grewAfter(&x))
			v.doubts = append(v.doubts, x)
		}
	}
	if len(v.causes) == 0 && len(crowded) > 0 {
		v.causes, v.before = crowded[:1], nil // other programs leave too little for the service
	}
	slices.SortStableFunc(v.causes, func(a, b full) int { return cmp.Compare(a.precedence(v.causes), b.precedence(v.causes)) })
	return v
}

// precedence orders causes so that the result does not depend on which of two related causes was
// detected first: a full wire is the limit, regardless of the users of the CPU; if clients and
// service share a machine, its CPU is the limit, whichever of its parts is full as well; and the
// CPU of a client machine, or a core of it, is full because of the generator.
func (x *full) precedence(all []full) int {
	generates := func(o full) bool { return o.resource == hosts.ResourceGenerator && o.host == x.host }
	switch {
	case x.resource == hosts.ResourceNetwork:
		return 0
	case x.sharedCPU():
		return 1
	case (x.resource == hosts.ResourceCPU || x.resource == hosts.ResourceCore) && slices.ContainsFunc(all, generates):
		return 3
	}
	return 2
}

// limited returns the bottlenecks if the causes are certain.
func (l *ladder) limited(causes, later []full, before []fact.Fact) []Bottleneck {
	x := &causes[0]
	first := l.named(x)
	first.add(l.growth(x.onset))
	first.add(l.let(x)...)
	first.add(l.context(causes)...)
	first.add(before...)
	return append([]Bottleneck{first}, l.following(append(causes[1:], later...), x.onset)...)
}

// named returns the Bottleneck of a saturated resource, with its first fact.
func (l *ladder) named(x *full) Bottleneck {
	s := l.steps[x.onset]
	b := Bottleneck{Resource: x.resource, Host: x.host, Side: x.use.Side, Step: s.Step, From: s.Clients, Threads: x.threads,
		Shared: x.use.Side == "both"}
	if x.usedByOthers() {
		b.Foreign = x.use.foreign
	}
	b.addFact("limit.saturated", "load", l.curve.At(s), "resource", x.text(), "use", x.use.Detail)
	if x.onset > 0 {
		for _, u := range l.steps[x.onset-1].Resources {
			if u.Resource == x.resource && u.Host == x.host && u.Share != nil && !u.Saturated {
				b.addFact("limit.before", "load", l.curve.At(l.steps[x.onset-1]), "share", *u.Share)
			}
		}
	}
	return b
}

// let reports the use of x at a heavier load at which it was used less.
func (l *ladder) let(x *full) []fact.Fact {
	if x.let < 0 {
		return nil
	}
	for _, u := range l.steps[x.let].Resources {
		if u.Resource == x.resource && u.Host == x.host && u.Share != nil {
			return []fact.Fact{fact.New("limit.let", "load", l.curve.At(l.steps[x.let]), "noun", l.curve.Noun(), "share", *u.Share)}
		}
	}
	return nil
}

// context returns further facts on the first cause: its side, and other users.
func (l *ladder) context(causes []full) []fact.Fact {
	x := &causes[0]
	s := l.steps[x.onset]
	var all []fact.Fact
	switch {
	case x.use.Side == "both":
		all = append(all, fact.New("limit.side.both"))
	case x.use.Side == hosts.Client && x.resource == hosts.ResourceCPU && (s.Burned > 0 || s.Programs):
		all = append(all, fact.New("limit.side.jobs"))
	case x.use.Side == hosts.Client:
		all = append(all, fact.New("limit.side.client"))
	}
	if x.usedByOthers() {
		all = append(all, l.foreignUse(x))
	}
	var others []string
	for i := range causes[1:] {
		o := &causes[1+i]
		if o.onset == x.onset {
			others = append(others, o.text())
		}
	}
	if len(others) > 0 {
		all = append(all, fact.New("limit.also", "load", l.curve.At(s), "resources", fact.List(others)))
	}
	return all
}

// following lists the saturated resources after the first bottleneck. If many hosts have the same
// saturated resource, the first host represents all of them.
func (l *ladder) following(later []full, shown int) []Bottleneck {
	all := []Bottleneck{}
	hosts := map[[2]string]int{}
	for x := range basics.Each(later) {
		id := [2]string{x.resource, x.use.Side}
		at, ok := hosts[id]
		if ok {
			if len(all[at].Facts) < 4 {
				all[at].addFact("limit.also.host", "host", x.host, "load", l.curve.At(l.steps[x.onset]))
			}
			continue
		}
		hosts[id] = len(all)
		b := l.named(x)
		if x.onset > shown && shown >= 0 {
			b.addFact("limit.later")
		}
		all = append(all, b)
	}
	return all
}

// usedByOthers reports whether programs other than the clients and the service used a large share
// of it.
func (x *full) usedByOthers() bool { return x.use.foreign >= othersWarn }

// sharedCPU reports whether x is the CPU of a machine that clients and service share.
func (x *full) sharedCPU() bool {
	return x.resource == hosts.ResourceCPU && x.use.Side == "both" && !x.idle()
}

// leastOwn is the least share of a resource that clients and service must use if they may be
// waiting for it: each program that needs the CPU gets a share of it.
const leastOwn = 0.1

// idle reports whether others use up x, and clients and service use hardly any of it.
func (x *full) idle() bool { return x.usedByOthers() && x.own < leastOwn }
