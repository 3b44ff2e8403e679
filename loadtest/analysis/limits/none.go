package limits

import (
	"cmp"
	"fmt"
	"net"
	"slices"
	"strings"

	"weir/internal/say"
	"weir/internal/stats"
	"weir/internal/unit"
	"weir/loadtest/analysis/basics"
	"weir/loadtest/analysis/hosts"
	"weir/loadtest/analysis/shape"
	"weir/loadtest/analysis/steps"
)

// atOneLoad is for curves that are none: it can only say what is full.
func (l *ladder) atOneLoad(all []full) []Bottleneck {
	alone := "One load does not show whether more would give more: test several, from light to heavy."
	if l.last() > 0 {
		alone = "The loads are too near to each other to show whether more would give more: test some from light to heavy."
	}
	s := l.steps[l.last()]
	var idle []full // others fill it, and clients and service want little of it
	all = slices.DeleteFunc(all, func(x full) bool {
		if x.idle() {
			idle = append(idle, x)
		}
		return x.idle()
	})
	switch {
	case len(all) == 0 && len(idle) > 0:
		return []Bottleneck{{Resource: LimitUnknown, Reason: ReasonForeign, Step: s.Step, From: s.Clients,
			Candidates: l.candidates(l.last(), idle), Evidence: []string{alone, l.usedByOthersText(&idle[0])}}}
	case len(all) == 0:
		return []Bottleneck{{Resource: LimitNone, Step: s.Step, From: s.Clients, Evidence: []string{alone, mostUsed(s)}}}
	}
	slices.SortStableFunc(all, func(a, b full) int { return cmp.Compare(a.precedence(all), b.precedence(all)) })
	first := l.named(&all[0])
	first.Evidence = append(first.Evidence, alone)
	first.Evidence = append(first.Evidence, l.context(all)...)
	return append([]Bottleneck{first}, l.following(all[1:], -1)...)
}

// growing is for curves that do not level off in the tested range. What is full at the heaviest loads limits all the
// same, unless the curve grew more since than it could.
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
		b.Evidence = l.straight()
		if !l.curve.Open() && !slices.ContainsFunc(rest, func(x full) bool { return !x.usedByOthers() }) { // others fill it
			b.Resource = LimitLatency
		}
	} else {
		b.Evidence = []string{fmt.Sprintf("%s still grows at the last step, but less than the load: each %s gives %s of what it gave at %s. "+
			"A limit is near; heavier steps would show it.",
			say.Capital(l.curve.Noun()), l.unitOfLoad(), unit.Percent(stats.Ratio(many, one)), l.curve.At(l.steps[0]))}
	}
	b.Evidence = append(b.Evidence, mostUsed(s))
	b.Candidates = l.candidates(last, rest)
	for i := range rest {
		b.Evidence = append(b.Evidence, fmt.Sprintf("Saturated at %s, although the curve still grows: %s.", l.curve.At(l.steps[rest[i].onset]),
			rest[i].use.Detail))
	}
	return []Bottleneck{b}
}

func (l *ladder) unitOfLoad() string {
	if l.curve.Open() {
		return "arrival"
	}
	return strings.TrimSuffix(l.curve.Load(), "s")
}

// straight is the evidence that nothing limits but the time that operations take: X = N/(R+Z) with R and Z as they
// are.
func (l *ladder) straight() []string {
	last := l.last()
	s, first := l.steps[last], l.steps[0]
	if l.curve.Open() {
		return []string{fmt.Sprintf("The service kept up with all planned arrivals, from %s to %s; heavier steps would give more.",
			l.curve.At(first), l.curve.At(s))}
	}
	each := func(i int) string { return l.curve.Show(stats.Ratio(l.yield(i), l.load(i))) }
	all := []string{fmt.Sprintf("%s grows in proportion to the %s: each gives %s at %s and %s at %s; more %[2]s would give more.",
		say.Capital(l.curve.Noun()), l.curve.Load(), each(0), l.curve.At(first), each(last), l.curve.At(s))}
	if r, z := l.cycle(last); r > 0 && s.ErrorRatio <= shape.FewErrors(l.curve.Points()) {
		pause := "without a pause"
		if z > 0 {
			pause = "and the pause after it " + unit.Seconds(z)
			if s.Jobs != nil {
				pause = "and the computing that belongs to it " + unit.Seconds(z)
			}
		}
		all = append(all, fmt.Sprintf("An operation takes %s %s: N/(R+Z) for %s is %s operations/s; measured: %s.",
			unit.Seconds(r), pause, l.curve.Count(s.Clients), unit.Count(stats.Ratio(s.ActiveClients, r+z)), unit.Count(s.Operations)))
	}
	return all
}

// nearlyFull is the share from which on a resource that is not saturated may still be what limits.
const nearlyFull = 0.75

// mostUsed names the resource with the largest share, which saturates next if the load grows.
func mostUsed(s *steps.Working) string {
	for u := range basics.Each(s.Resources) {
		if u.Share == nil || u.Resource == hosts.ResourceIOWait || u.Resource == hosts.ResourceMemory || u.Saturated {
			continue
		}
		b := Bottleneck{Resource: u.Resource, Host: u.Host, Side: u.Side}
		text := fmt.Sprintf("The most used resource that was monitored is %s: %s.", b.Text(), u.Detail)
		if *u.Share >= nearlyFull {
			text += " It is near saturation, and may be saturated for moments that one-second means do not show."
		}
		return text
	}
	return "No resource was monitored."
}

// hidden is for curves that level off, or may do so, where nothing that is saturated can be what limits. It is a
// limit inside the server only if all else is ruled out.
func (l *ladder) hidden(v *sorted) Bottleneck {
	from := l.from()
	s := l.steps[from]
	b := Bottleneck{Resource: LimitUnknown, Step: s.Step, From: s.Clients, Candidates: l.candidates(from, v.doubts)}
	b.Evidence = []string{fmt.Sprintf("At %s %s is %s.", l.curve.At(s), l.curve.Noun(), l.curve.Show(l.yield(from))), l.growthText(from)}
	if text := l.queueText(from); text != "" {
		b.Evidence = append(b.Evidence, text)
	}
	switch seen, there := machines(l.steps[l.last()]); {
	case !slices.ContainsFunc(l.steps[from:], sawServer):
		b.Reason = ReasonUnwatched
		b.Evidence = append(b.Evidence, "No machine of the service was monitored, so its saturated resources are unknown: "+
			"name it in the scenario under hosts, with role: server and the node_exporter of that machine, or run weir there.")
	case seen < there:
		b.Reason = ReasonUnwatched
	case !slices.ContainsFunc(l.steps[from:], sawGenerator):
		b.Reason = ReasonUnwatched
		b.Evidence = append(b.Evidence, "The load generator was not monitored, so it may be the limit.")
	case slices.ContainsFunc(v.doubts, func(x full) bool { return x.usedByOthers() }):
		b.Reason = ReasonForeign
	case l.waitedFor(b.Candidates):
		c := b.Candidates[0]
		b.Resource, b.Host, b.Side, b.Candidates = c.Resource, c.Host, c.Side, nil
		b.Evidence = append(b.Evidence, fmt.Sprintf("Of all monitored resources only %s is near its limit: %s%s. "+
			"During %s of the time a runnable task waited for a core there.", c.text(), c.Detail, c.interval(), unit.Percent(l.waits(&c))))
	case len(b.Candidates) > 0:
		b.Reason = ReasonNoise
	case !l.sure:
		b.Reason = ReasonGrowth
		b.Evidence = append(b.Evidence, "Whether it still grows is not clear from its noise: measure longer, or test heavier loads.")
	default:
		b.Resource, b.Side = LimitInside, hosts.Server
		b.Excluded = l.excluded(from, v.later)
		b.Evidence = append(b.Evidence, mostUsed(l.steps[l.last()]),
			"Clients wait for a lock, for a limit in the configuration of the service (processes, connections, a rate), or for a part of the path "+
				"that was not monitored.")
	}
	for c := range basics.Each(b.Candidates) {
		b.Evidence = append(b.Evidence, fmt.Sprintf("The limit may be %s: %s%s.", c.text(), c.Detail, c.interval()))
	}
	b.Evidence = append(b.Evidence, l.hints()...)
	b.Evidence = append(b.Evidence, v.before...)
	return b
}

// coresWanted is the share of time from which on something that could run waits for a core where cores are what is
// wanting: on machines whose cores are full it is 64% to 75%.
const coresWanted = 0.6

// waitedFor reports whether all that may be the limit is the CPU of one machine, which may be full, and for whose cores
// something waits for most of the time.
func (l *ladder) waitedFor(all []Candidate) bool {
	if len(all) != 1 || all[0].Resource != hosts.ResourceCPU || all[0].High == nil {
		return false
	}
	return *all[0].High >= boundOf(hosts.ResourceCPU).reached && l.waits(&all[0]) >= coresWanted
}

// waits is the share of time in which something waited for a core of a candidate's machine at its step; 0 if that is
// not known.
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

// queueText shows by Little's law where the additional clients are: in a queue.
func (l *ladder) queueText(from int) string {
	last := l.last()
	r, z := l.cycle(from)
	R, Z := l.cycle(last)
	if l.curve.Open() || r <= 0 || R <= 0 {
		return ""
	}
	more, longer := stats.Ratio(l.load(last), l.load(from)), stats.Ratio(R+Z, r+z)
	if longer < halfGrowth*more || R <= r {
		return ""
	}
	return fmt.Sprintf("An operation takes %s there and %s at %s: additional clients only wait, by Little's law N = X (R + Z).",
		unit.Seconds(r), unit.Seconds(R), l.curve.At(l.steps[last]))
}

// machines returns how many machines of the service were watched, and on how many its data servers are by their
// names.
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

// hints are signs of limits that have no share.
func (l *ladder) hints() []string {
	var all []string
	s := l.steps[l.last()]
	if s.ErrorRatio >= 0.01 {
		all = append(all, fmt.Sprintf("At %s %s of the operations fail (%s): the service may reject requests beyond a limit.", l.curve.At(s),
			unit.Percent(s.ErrorRatio), steps.Classes(s.BadBy())))
	}
	if s.Waits > 0 {
		all = append(all, fmt.Sprintf("At %s the service asked clients to wait %s times, for %s each on average.", l.curve.At(s),
			unit.Count(float64(s.Waits)), unit.Seconds(stats.Ratio(s.Waited, float64(s.Waits)))))
	}
	if seen, there := machines(s); seen > 0 && seen < there {
		all = append(all, fmt.Sprintf("Of the machines of %d data servers only %d were monitored: the saturated resource may be on another one.",
			there, seen))
	}
	for h := range basics.Each(s.Hosts) {
		if v := h.Service; v != nil && (v.Refused > 0 || v.Queue > 0 || v.Limited > 0) {
			all = append(all, fmt.Sprintf("%s reports %s refused logins/s, at most %s waiting for a thread, "+
				"and reaching its thread limit %s times/s.", h.Host, unit.Count(v.Refused), several(v.Queue, "job", "jobs"), unit.Count(v.Limited)))
		}
	}
	for i := range s.Resources {
		switch u := &s.Resources[i]; {
		case u.Resource == hosts.ResourceListen, u.Resource == hosts.ResourceRetransmits, u.Resource == hosts.ResourceNetwork && u.Share == nil:
			all = append(all, fmt.Sprintf("On %s %s.", u.Host, u.Detail))
		}
	}
	return basics.Head(all, 6)
}

// sawGenerator reports whether anything is known of a machine of the clients.
func sawGenerator(s *steps.Working) bool {
	return slices.ContainsFunc(s.Machines, func(h hosts.Host) bool {
		return h.ClientCores != nil || h.CPU != nil && (h.Side() == hosts.Client || h.Side() == "both")
	})
}

// sawServer reports whether a machine of the service was sampled. A server's own statistics are not enough: they do not
// include its disks and its CPU.
func sawServer(s *steps.Working) bool {
	for h := range basics.Each(s.Machines) {
		if h.CPU != nil && (h.Side() == hosts.Server || h.Side() == "both") {
			return true
		}
	}
	return false
}
