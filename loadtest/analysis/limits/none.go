package limits

import (
	"cmp"
	"net"
	"slices"
	"strings"

	"weir/internal/stats"
	"weir/loadtest/analysis/basics"
	"weir/loadtest/analysis/fact"
	"weir/loadtest/analysis/hosts"
	"weir/loadtest/analysis/shape"
	"weir/loadtest/analysis/steps"
)

// atOneLoad returns the bottlenecks if the loads do not form a curve: it can only report saturated
// resources.
func (l *ladder) atOneLoad(all []full) []Bottleneck {
	alone := fact.New("limit.one.load")
	if l.last() > 0 {
		alone = fact.New("limit.near.loads")
	}
	s := l.steps[l.last()]
	var idle []full // others fill it, and clients and service use little of it
	all = slices.DeleteFunc(all, func(x full) bool {
		if x.idle() {
			idle = append(idle, x)
		}
		return x.idle()
	})
	switch {
	case len(all) == 0 && len(idle) > 0:
		b := Bottleneck{Resource: LimitUnknown, Reason: ReasonForeign, Step: s.Step, From: s.Clients, Candidates: l.candidates(l.last(), idle)}
		b.add(alone, l.foreignUse(&idle[0]))
		return []Bottleneck{b}
	case len(all) == 0:
		b := Bottleneck{Resource: LimitNone, Step: s.Step, From: s.Clients}
		b.add(alone, mostUsed(s))
		return []Bottleneck{b}
	}
	slices.SortStableFunc(all, func(a, b full) int { return cmp.Compare(a.precedence(all), b.precedence(all)) })
	first := l.named(&all[0])
	first.add(alone)
	first.add(l.context(all)...)
	return append([]Bottleneck{first}, l.following(all[1:], -1)...)
}

// growing returns the bottlenecks of a curve that does not level off in the tested range. A
// resource that is saturated at the heaviest loads still limits it, unless the curve has grown
// since by more than the resource permits.
func (l *ladder) growing(all []full) []Bottleneck {
	var causes, rest []full
	for _, x := range all {
		if l.limits(&x) || x.sharedCPU() && (!x.usedByOthers() || l.grown(&x) <= efficiency) {
			causes = append(causes, l.grownUp(x))
		} else {
			rest = append(rest, x)
		}
	}
	if len(causes) > 0 {
		slices.SortStableFunc(causes, func(a, b full) int { return cmp.Compare(a.precedence(causes), b.precedence(causes)) })
		return l.limited(causes, rest, nil)
	}
	last := l.last()
	s := l.steps[last]
	b := Bottleneck{Resource: LimitNone, Step: s.Step, From: s.Clients}
	one, many := stats.Ratio(l.yield(0), l.load(0)), stats.Ratio(l.yield(last), l.load(last))
	if many >= proportional*one {
		b.add(l.straight()...)
		if !l.curve.Open() && !slices.ContainsFunc(rest, func(x full) bool { return !x.usedByOthers() }) { // others fill them
			b.Resource = LimitLatency
		}
	} else {
		b.addFact("limit.slower", "noun", l.curve.Noun(), "each", strings.TrimSuffix(l.curve.Loads(), "s"), "share", stats.Ratio(many, one),
			"load", l.curve.At(l.steps[0]))
	}
	b.add(mostUsed(s))
	b.Candidates = l.candidates(last, rest)
	for i := range rest {
		b.addFact("limit.despite", "load", l.curve.At(l.steps[rest[i].onset]), "use", rest[i].use.Detail)
	}
	return []Bottleneck{b}
}

// straight returns the evidence that only the time of the operations limits the yield: X = N/(R+Z)
// with constant R and Z.
func (l *ladder) straight() []fact.Fact {
	last := l.last()
	s, first := l.steps[last], l.steps[0]
	if l.curve.Open() {
		return []fact.Fact{fact.New("limit.straight.open", "from", l.curve.At(first), "to", l.curve.At(s))}
	}
	each := func(i int) float64 { return stats.Ratio(l.yield(i), l.load(i)) }
	all := []fact.Fact{fact.New("limit.straight", "noun", l.curve.Noun(), "loads", l.curve.Load(), "first", each(0), "last", each(last),
		"unit", l.curve.Unit(), "from", l.curve.At(first), "to", l.curve.At(s))}
	r, z := l.cycle(last)
	if r <= 0 || s.ErrorRatio > shape.FewErrors(l.curve.Points()) {
		return all
	}
	load, expected := l.curve.Count(s.Clients), stats.Ratio(s.ActiveClients, r+z)
	switch {
	case z <= 0:
		return append(all, fact.New("limit.little", "latency", r, "load", load, "expected", expected, "measured", s.Operations))
	case s.Jobs != nil:
		return append(all, fact.New("limit.little.computing", "latency", r, "computing", z, "load", load, "expected", expected,
			"measured", s.Operations))
	}
	return append(all, fact.New("limit.little.pause", "latency", r, "pause", z, "load", load, "expected", expected, "measured", s.Operations))
}

// nearlyFull is the share from which a resource that is not saturated may still be the limit.
const nearlyFull = 0.75

// mostUsed reports the resource with the largest share, which saturates next if the load grows.
func mostUsed(s *steps.Working) fact.Fact {
	for u := range basics.Each(s.Resources) {
		if u.Share == nil || u.Resource == hosts.ResourceIOWait || u.Resource == hosts.ResourceMemory || u.Saturated {
			continue
		}
		what := placed(u.Resource, u.Host, 0).Text
		if *u.Share >= nearlyFull {
			return fact.New("limit.most.near", "resource", what, "use", u.Detail)
		}
		return fact.New("limit.most", "resource", what, "use", u.Detail)
	}
	return fact.New("limit.most.none")
}

// hidden returns the bottleneck of a curve that levels off, or may do so, if no saturated resource
// can be the limit. The limit is inside the server only if everything else is ruled out.
func (l *ladder) hidden(v *sorted) Bottleneck {
	from := l.from()
	s := l.steps[from]
	b := Bottleneck{Resource: LimitUnknown, Step: s.Step, From: s.Clients, Candidates: l.candidates(from, v.doubts)}
	b.addFact("limit.flat", "load", l.curve.At(s), "noun", l.curve.Noun(), "yield", l.yield(from), "unit", l.curve.Unit())
	b.add(l.growth(from))
	b.add(l.queue(from)...)
	l.exclude(&b, from, v)
	for c := range basics.Each(b.Candidates) {
		if c.Low == nil || c.High == nil {
			b.addFact("limit.may.unsure", "resource", c.text(), "use", c.Detail)
			continue
		}
		b.addFact("limit.may", "resource", c.text(), "use", c.Detail, "low", *c.Low, "high", min(1, *c.High))
	}
	b.add(l.hints()...)
	b.add(v.before...)
	return b
}

// exclude fills in the limit of b, or the reason why it is unknown.
func (l *ladder) exclude(b *Bottleneck, from int, v *sorted) {
	switch seen, there := machines(l.steps[l.last()]); {
	case !slices.ContainsFunc(l.steps[from:], sawServer):
		b.Reason = ReasonUnwatched
		b.addFact("limit.unwatched.service")
	case seen < there:
		b.Reason = ReasonUnwatched
	case !slices.ContainsFunc(l.steps[from:], sawGenerator):
		b.Reason = ReasonUnwatched
		b.addFact("limit.unwatched.generator")
	case slices.ContainsFunc(v.doubts, func(x full) bool { return x.usedByOthers() }):
		b.Reason = ReasonForeign
	case l.waitedFor(b.Candidates):
		c := b.Candidates[0]
		b.Resource, b.Host, b.Side, b.Candidates = c.Resource, c.Host, c.Side, nil
		b.addFact("limit.only", "resource", c.text(), "use", c.Detail, "low", basics.Value(c.Low), "high", min(1, *c.High), "share", l.waits(&c))
	case len(b.Candidates) > 0:
		b.Reason = ReasonNoise
	case !l.sure:
		b.Reason = ReasonGrowth
		b.addFact("limit.growth.unclear")
	default:
		b.Resource, b.Side = LimitInside, hosts.Server
		b.Excluded = l.excluded(from, v.later)
		b.add(mostUsed(l.steps[l.last()]))
		b.addFact("limit.inside.waits")
	}
}

// coresWanted is the share of time in which a runnable task waits for a core from which cores are
// wanting: on machines whose cores are full it is 64% to 75%.
const coresWanted = 0.6

// waitedFor reports whether the only candidate is the CPU of one machine, which may be full, and
// whether tasks wait for its cores most of the time.
func (l *ladder) waitedFor(all []Candidate) bool {
	if len(all) != 1 || all[0].Resource != hosts.ResourceCPU || all[0].High == nil {
		return false
	}
	return *all[0].High >= boundOf(hosts.ResourceCPU).reached && l.waits(&all[0]) >= coresWanted
}

// waits returns the share of time in which a task waited for a core of the candidate's machine at
// the candidate's step; 0 if it is not known.
func (l *ladder) waits(c *Candidate) float64 {
	for _, s := range l.steps {
		for h := range basics.Each(s.Hosts) {
			if s.Step == c.Step && h.Host == c.Host && h.CPUWaits != nil {
				return *h.CPUWaits
			}
		}
	}
	return 0
}

// queue shows by Little's law that the additional clients wait in a queue.
func (l *ladder) queue(from int) []fact.Fact {
	last := l.last()
	r, z := l.cycle(from)
	R, Z := l.cycle(last)
	if l.curve.Open() || r <= 0 || R <= 0 {
		return nil
	}
	more, longer := stats.Ratio(l.load(last), l.load(from)), stats.Ratio(R+Z, r+z)
	if longer < halfGrowth*more || R <= r {
		return nil
	}
	return []fact.Fact{fact.New("limit.queue", "before", r, "after", R, "load", l.curve.At(l.steps[last]))}
}

// machines returns the number of watched machines of the service, and the number of its machines by
// the names of its data servers.
func machines(s *steps.Working) (seen, there int) {
	for h := range basics.Each(s.Machines) {
		if h.CPU != nil && (h.Side() == hosts.Server || h.Side() == "both") {
			seen++
		}
	}
	names := map[string]bool{}
	for i := range s.Servers {
		if host, _, err := net.SplitHostPort(s.Servers[i].Name); err == nil && host != "" {
			names[host] = true
		}
	}
	return seen, len(names)
}

// mostHints is the maximum number of listed hints.
const mostHints = 6

// hints returns signs of limits that are not shares of a resource.
func (l *ladder) hints() []fact.Fact {
	var all []fact.Fact
	s := l.steps[l.last()]
	load := l.curve.At(s)
	if s.ErrorRatio >= 0.01 {
		all = append(all, fact.New("limit.hint.errors", "load", load, "share", s.ErrorRatio, "classes", steps.Classes(s.BadBy())))
	}
	if s.Waits > 0 {
		all = append(all, fact.New("limit.hint.waits", "load", load, "waits", s.Waits, "mean", stats.Ratio(s.Waited, float64(s.Waits))))
	}
	if seen, there := machines(s); seen > 0 && seen < there {
		all = append(all, fact.New("limit.hint.machines", "servers", there, "monitored", seen))
	}
	for h := range basics.Each(s.Hosts) {
		if v := h.Service; v != nil && (v.Refused > 0 || v.Queue > 0 || v.Limited > 0) {
			all = append(all, fact.New("limit.hint.service", "host", h.Host, "refused", v.Refused, "waiting", v.Queue, "limited", v.Limited))
		}
	}
	for i := range s.Resources {
		switch u := &s.Resources[i]; {
		case u.Resource == hosts.ResourceListen, u.Resource == hosts.ResourceRetransmits, u.Resource == hosts.ResourceNetwork && u.Share == nil:
			all = append(all, fact.New("limit.hint.use", "host", u.Host, "use", u.Detail))
		}
	}
	if n := len(all); n > mostHints {
		all = append(all[:mostHints], fact.New("limit.hint.more", "number", n-mostHints))
	}
	return all
}

// sawGenerator reports whether a machine of the clients was watched.
func sawGenerator(s *steps.Working) bool {
	return slices.ContainsFunc(s.Machines, func(h hosts.Host) bool {
		return h.ClientCores != nil || h.CPU != nil && (h.Side() == hosts.Client || h.Side() == "both")
	})
}

// sawServer reports whether a machine of the service was sampled. A server's own statistics are not
// enough: they do not include its disks and its CPU.
func sawServer(s *steps.Working) bool {
	for h := range basics.Each(s.Machines) {
		if h.CPU != nil && (h.Side() == hosts.Server || h.Side() == "both") {
			return true
		}
	}
	return false
}
