package limits

import (
	"strings"

	"weir/internal/stats"
	"weir/loadtest/analysis/basics"
	"weir/loadtest/analysis/fact"
	"weir/loadtest/analysis/hosts"
	"weir/loadtest/analysis/shape"
	"weir/loadtest/analysis/steps"
)

// mostOfCPU is the share of a CPU from which the headline mentions its use by others.
const mostOfCPU = 0.5

// Text returns the limit as a part of a sentence: "the CPU of store.example.org".
func (b *Bottleneck) Text() string { return b.fact().Text }

// fact returns the fact that names the limit.
func (b *Bottleneck) fact() fact.Fact {
	switch b.Resource {
	case LimitLatency:
		return fact.New("limit.latency")
	case LimitInside:
		return fact.New("limit.inside")
	case LimitUnknown:
		return fact.New("limit.unknown")
	case LimitNone:
		return fact.New("limit.none")
	}
	what := placed(b.Resource, b.Host, b.Threads).Shown()
	switch {
	case b.Resource != hosts.ResourceCPU:
	case b.Foreign >= mostOfCPU:
		return fact.New("limit.shared.most", "resource", what, "share", b.Foreign)
	case b.Shared && b.Foreign > 0:
		return fact.New("limit.shared.all", "resource", what, "share", b.Foreign)
	case b.Shared:
		return fact.New("limit.shared", "resource", what)
	case b.Foreign > 0:
		return fact.New("limit.shared.others", "resource", what, "share", b.Foreign)
	}
	return placed(b.Resource, b.Host, b.Threads)
}

// placed returns the name of a resource with its host.
func placed(resource, host string, threads int) fact.Fact {
	name := named(resource, threads)
	switch {
	case host == "":
		return name
	case resource == hosts.ResourceNetwork:
		return fact.New("limit.of.link", "resource", name.Shown(), "host", host)
	case resource == hosts.ResourceGenerator, threads > 0:
		return fact.New("limit.on", "resource", name.Shown(), "host", host)
	}
	return fact.New("limit.of", "resource", name.Shown(), "host", host)
}

// named returns the name of a resource. threads is as in Bottleneck.
func named(resource string, threads int) fact.Fact {
	switch resource {
	case hosts.ResourceCPU:
		return fact.New("limit.cpu")
	case hosts.ResourceCore:
		if threads > 0 {
			return fact.New("limit.core.threads", "threads", threads)
		}
		return fact.New("limit.core")
	case hosts.ResourceReceived:
		return fact.New("limit.network.receiving")
	case hosts.ResourceSent:
		return fact.New("limit.network.sending")
	case hosts.ResourceNetwork:
		return fact.New("limit.network")
	case hosts.ResourceThreads:
		return fact.New("limit.threads")
	case hosts.ResourceGenerator:
		return fact.New("limit.generator")
	case hosts.ResourceFiles:
		return fact.New("limit.files")
	case hosts.ResourcePorts:
		return fact.New("limit.ports")
	}
	return fact.New("limit.other", "resource", resource)
}

// excludedNames returns the names of the excluded kinds of resources.
func (b *Bottleneck) excludedNames() []string {
	var names []string
	for _, kind := range b.Excluded {
		if kind == kindCPU {
			kind = "CPU"
		}
		names = append(names, kind)
	}
	return names
}

// text returns the name of the candidate as for a Bottleneck.
func (c *Candidate) text() string { return placed(c.Resource, c.Host, c.Threads).Text }

// text returns the name of the resource as for a Bottleneck.
func (x *full) text() string { return placed(x.resource, x.host, x.threads).Text }

// growth reports the growth of the yield beyond step i.
func (l *ladder) growth(i int) fact.Fact {
	after, noun, loads := l.bestAfter(i), l.curve.Noun(), l.curve.Loads()
	switch {
	case after < 0 && l.steps[i].LinkFull():
		return fact.New("limit.heaviest.link")
	case after < 0:
		return fact.New("limit.heaviest", "noun", noun)
	}
	a, b, unit := l.yield(i), l.yield(after), l.curve.Unit()
	factor, to := stats.Ratio(l.load(l.last()), l.load(i)), l.curve.At(l.steps[l.last()])
	if b <= a {
		return fact.New("limit.growth.none", "noun", noun, "from", a, "to", b, "unit", unit, "loads", loads, "factor", factor, "load", to)
	}
	return fact.New("limit.growth", "noun", noun, "share", stats.Ratio(b, a)-1, "from", a, "to", b, "unit", unit, "loads", loads,
		"factor", factor, "load", to)
}

// grewAfter reports that the yield still grew after x was full.
func (l *ladder) grewAfter(x *full) fact.Fact {
	factor := stats.Ratio(l.yield(l.bestAfter(x.onset)), l.yield(x.onset))
	return fact.New("limit.not.growth", "resource", x.text(), "load", l.curve.At(l.steps[x.onset]), "use", x.use.Detail,
		"noun", l.curve.Noun(), "factor", factor)
}

// foreignUse reports the use of a resource by others.
func (l *ladder) foreignUse(x *full) fact.Fact {
	if x.idle() {
		return fact.New("limit.not.foreign", "resource", x.text(), "share", x.use.foreign)
	}
	return fact.New("limit.foreign", "resource", x.text(), "share", x.use.foreign, "load", l.curve.At(l.steps[x.onset]))
}

// limitAt returns the load from which b limits, "" if the curve has no such step.
func limitAt(curve *steps.Curve, b *Bottleneck) string {
	for i := range curve.Steps {
		if curve.Steps[i].Step == b.Step {
			return curve.At(curve.Steps[i])
		}
	}
	return ""
}

// LimitClause returns the facts of the verdict on the limit, nil without a limit.
func LimitClause(curve *steps.Curve, all []Bottleneck) []fact.Fact {
	if len(all) == 0 {
		return nil
	}
	switch all[0].Resource {
	case LimitNone, LimitUnknown, LimitLatency:
		return nil
	}
	return LimitFacts(curve, all)
}

// LimitText returns the texts of LimitFacts.
func LimitText(curve *steps.Curve, all []Bottleneck) string {
	return strings.Join(fact.Texts(LimitFacts(curve, all)), " ")
}

// LimitFacts returns the limit of the curve, nil if it was not judged.
func LimitFacts(curve *steps.Curve, all []Bottleneck) []fact.Fact {
	if len(all) == 0 {
		return nil
	}
	b := &all[0]
	load, noun := limitAt(curve, b), curve.Noun()
	switch b.Resource {
	case LimitLatency:
		if curve.OfJobs() {
			return []fact.Fact{fact.New("limit.unreached.jobs")}
		}
		return []fact.Fact{fact.New("limit.unreached.clients")}
	case LimitUnknown:
		return unknown(curve, b)
	case LimitNone:
		if len(b.Candidates) > 0 {
			return []fact.Fact{fact.New("limit.unreached.next", "resource", b.Candidates[0].text())}
		}
		return []fact.Fact{fact.New("limit.unreached")}
	}
	if excluded := b.excludedNames(); len(excluded) > 0 {
		return []fact.Fact{fact.New("limit.from.inside", "load", load, "noun", noun, "limit", b.fact().Shown(), "excluded", excluded)}
	}
	return []fact.Fact{fact.New("limit.from", "load", load, "noun", noun, "limit", b.fact().Shown())}
}

// unknown returns the bend of the curve, and the reason why its limit is unknown.
func unknown(curve *steps.Curve, b *Bottleneck) []fact.Fact {
	why := unknownReason(b)
	if curve.OneLoad() {
		return []fact.Fact{why}
	}
	most, at := 0.0, 0.0
	for _, s := range curve.Steps {
		if s.Excluded == "" {
			most = max(most, curve.Mean(s))
		}
		if s.Step == b.Step {
			at = curve.Mean(s)
		}
	}
	if at < shape.NearBest*most {
		return []fact.Fact{fact.New("limit.grows", "load", limitAt(curve, b), "noun", curve.Noun()), why}
	}
	return []fact.Fact{fact.New("limit.levels", "load", limitAt(curve, b), "noun", curve.Noun()), why}
}

func unknownReason(b *Bottleneck) fact.Fact {
	switch b.Reason {
	case ReasonUnwatched:
		return fact.New("limit.unknown.unwatched")
	case ReasonGrowth:
		return fact.New("limit.unknown.growth")
	case ReasonForeign:
		return fact.New("limit.unknown.foreign")
	}
	var names []string
	for i := range min(3, len(b.Candidates)) {
		names = append(names, b.Candidates[i].text())
	}
	return fact.New("limit.unknown.noise", "resources", names)
}

// LimitPhrase returns the limit of the curve for the headline, in full and without its host. ok is
// false if it was not judged.
func LimitPhrase(all []Bottleneck) (full, short fact.Fact, ok bool) {
	if len(all) == 0 {
		return full, short, false
	}
	b := &all[0]
	switch b.Resource {
	case LimitNone, LimitLatency:
		full = fact.New("verdict.unlimited")
		return full, full, true
	case LimitUnknown:
		full = fact.New("verdict.unknown")
		return full, full, true
	case LimitInside:
		full = fact.New("verdict.limited", "limit", b.fact().Shown())
		if excluded := b.excludedNames(); len(excluded) > 0 {
			full = fact.New("verdict.limited.inside", "limit", b.fact().Shown(), "excluded", excluded)
		}
		return full, fact.New("verdict.limited.server"), true
	}
	full = fact.New("verdict.limited", "limit", b.fact().Shown())
	return full, fact.New("verdict.limited", "limit", named(b.Resource, b.Threads).Shown()), true
}

// OthersOfCPU reports that other programs used most of a saturated CPU in a step, in full and without its host. ok is
// false if they did not.
func (r Resources) OthersOfCPU(s *steps.Working) (full, short fact.Fact, ok bool) {
	most := mostOfCPU
	for u := range basics.Each(r[s]) {
		if u.Resource == hosts.ResourceCPU && (u.reached || u.Saturated) && u.foreign >= most {
			most, ok = u.foreign, true
			full = fact.New("verdict.others", "share", most, "host", u.Host)
			short = fact.New("verdict.others.short", "share", most)
		}
	}
	return full, short, ok
}

// OthersNamed reports whether the text of the limit mentions that other programs used most of a CPU.
func OthersNamed(all []Bottleneck) bool {
	return len(all) > 0 && all[0].Resource == hosts.ResourceCPU && all[0].Foreign >= mostOfCPU
}
