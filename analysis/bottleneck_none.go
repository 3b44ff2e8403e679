package analysis

import (
	"fmt"
	"net"
	"slices"
	"strings"

	"weir/analysis/shape"
	"weir/internal/say"
	"weir/internal/unit"
)

// atOneLoad is for curves that are none: it can only say what is full.
func (l *ladder) atOneLoad(all []full) []Bottleneck {
	const alone = "One load alone does not show whether more would bring more: test several, from light to heavy."
	s := l.steps[l.last()]
	if len(all) == 0 {
		return []Bottleneck{{Resource: LimitNone, Step: s.Step, From: s.Clients, Evidence: []string{alone, mostUsed(s)}}}
	}
	first := l.named(&all[0])
	first.Evidence = append(first.Evidence, alone)
	first.Evidence = append(first.Evidence, l.context(all)...)
	return append([]Bottleneck{first}, l.following(all[1:], -1)...)
}

// growing is for curves that do not level off in the tested range.
func (l *ladder) growing(all []full) []Bottleneck {
	last := l.last()
	grown := ratio(ratio(l.yield(last), l.yield(last-1))-1, ratio(l.load(last), l.load(last-1))-1)
	for i := range all {
		if x := &all[i]; grown < proportional && l.limits(x) {
			first := l.named(x)
			first.Evidence = append(first.Evidence, l.growthText(x.onset))
			first.Evidence = append(first.Evidence, l.context(all[i:])...)
			return append([]Bottleneck{first}, l.following(all[i+1:], -1)...)
		}
	}
	s := l.steps[last]
	b := Bottleneck{Resource: LimitNone, Step: s.Step, From: s.Clients}
	one, many := ratio(l.yield(0), l.load(0)), ratio(l.yield(last), l.load(last))
	if many >= proportional*one {
		b.Evidence = l.straight()
		if !l.f.Open() {
			b.Resource = LimitLatency
		}
	} else {
		b.Evidence = []string{fmt.Sprintf("%s still grows at the last step, but less than the load: each %s brings %s of what it brought with %s. A limit is near; heavier steps would show it.",
			say.Capital(l.noun()), l.unitOfLoad(), unit.Percent(ratio(many, one)), l.f.at(l.steps[0]))}
	}
	b.Evidence = append(b.Evidence, mostUsed(s))
	for i := range all {
		b.Evidence = append(b.Evidence, fmt.Sprintf("Full with %s, though the curve still grows: %s.", l.f.at(l.steps[all[i].onset]), all[i].use.Detail))
	}
	return []Bottleneck{b}
}

func (l *ladder) unitOfLoad() string {
	if l.f.Open() {
		return "arrival"
	}
	return strings.TrimSuffix(l.f.Load(), "s")
}

// straight is the evidence that nothing limits but the time that operations
// take: X = N/(R+Z) with R and Z as they are.
func (l *ladder) straight() []string {
	last := l.last()
	s, first := l.steps[last], l.steps[0]
	if l.f.Open() {
		return []string{fmt.Sprintf("The service kept up with all planned arrivals, from %s to %s; heavier steps would bring more.", l.f.at(first), l.f.at(s))}
	}
	each := func(i int) string { return l.f.show(ratio(l.yield(i), l.load(i))) }
	all := []string{fmt.Sprintf("%s grows in proportion to the %s: each brings %s with %s and %s with %s; more %[2]s would bring more.",
		say.Capital(l.noun()), l.f.Load(), each(0), l.f.at(first), each(last), l.f.at(s))}
	if r, z := l.cycle(last); r > 0 && s.ErrorRatio < shape.FewErrors {
		pause := "and there is no pause"
		if z > 0 {
			pause = "and the pause after it " + unit.Seconds(z)
			if s.Jobs != nil {
				pause = "and the computing that belongs to it " + unit.Seconds(z)
			}
		}
		all = append(all, fmt.Sprintf("An operation takes %s %s: N/(R+Z) of %s is %s operations/s, and %s were measured.",
			unit.Seconds(r), pause, l.f.count(s.Clients), unit.Count(ratio(s.ActiveClients, r+z)), unit.Count(s.Operations)))
	}
	return all
}

// nearlyFull is the share from which on a resource that is not saturated may
// still be what limits.
const nearlyFull = 0.75

// mostUsed names the resource with the largest share, which saturates next if
// the load grows.
func mostUsed(s *Step) string {
	for i := range s.Resources {
		u := &s.Resources[i]
		if u.Share == nil || u.Resource == ResourceIOWait || u.Resource == ResourceMemory || u.Saturated {
			continue
		}
		b := Bottleneck{Resource: u.Resource, Host: u.Host, Side: u.Side}
		text := fmt.Sprintf("Of what was watched, most used is %s: %s.", b.Text(), u.Detail)
		if *u.Share >= nearlyFull {
			text += " That is near to full: it may well be full for moments that means of a second do not show."
		}
		return text
	}
	return "No resource was watched."
}

// hidden is for curves that level off with nothing saturated.
func (l *ladder) hidden(before []string) Bottleneck {
	from := l.from()
	s, heavy := l.steps[from], l.steps[l.last()]
	b := Bottleneck{Resource: LimitInside, Side: server, Step: s.Step, From: s.Clients}
	b.Evidence = []string{fmt.Sprintf("With %s %s is %s.", l.f.at(s), l.noun(), l.f.show(l.yield(from))), l.growthText(from)}
	if text := l.queueText(from); text != "" {
		b.Evidence = append(b.Evidence, text)
	}
	if !slices.ContainsFunc(l.steps[from:], sawServer) {
		b.Resource, b.Side = LimitUnknown, ""
		b.Evidence = append(b.Evidence, "No machine of the service was watched, so what is full there cannot be said: name it in the scenario under hosts, "+
			"with role: server and the node_exporter of that machine, or run weir where it is.")
	} else {
		b.Evidence = append(b.Evidence, "Nothing that was watched is saturated there. "+mostUsed(heavy),
			"So clients wait for a lock, or for a limit in the service's settings (processes, connections, a rate), or for a part of the way that was not watched.")
	}
	b.Evidence = append(b.Evidence, l.hints()...)
	return Bottleneck{b.Resource, b.Host, b.Side, b.Step, b.From, append(b.Evidence, before...)}
}

// sawServer tells whether anything is known of a machine of the service. What a
// server says of itself is not enough: its disks and its CPU are not in it.
func sawServer(s *Step) bool {
	for i := range s.Hosts {
		if h := &s.Hosts[i]; h.CPU != nil && (h.side() == server || h.side() == "both") {
			return true
		}
	}
	return false
}

// queueText shows by Little's law where the additional clients are: in a queue.
func (l *ladder) queueText(from int) string {
	last := l.last()
	r, z := l.cycle(from)
	R, Z := l.cycle(last)
	if l.f.Open() || r <= 0 || R <= 0 {
		return ""
	}
	more, longer := ratio(l.load(last), l.load(from)), ratio(R+Z, r+z)
	if longer < halfGrowth*more || R <= r {
		return ""
	}
	return fmt.Sprintf("An operation takes %s there and %s with %s: additional clients only wait, as N = X (R + Z) has it.",
		unit.Seconds(r), unit.Seconds(R), l.f.at(l.steps[last]))
}

// machines returns how many machines of the service were watched, and on how
// many its data servers are by their names.
func machines(s *Step) (seen, there int) {
	for i := range s.Hosts {
		if h := &s.Hosts[i]; h.CPU != nil && (h.side() == server || h.side() == "both") {
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
		all = append(all, fmt.Sprintf("With %s %s of the operations fail (%s): the service may refuse what is beyond a limit.", l.f.at(s), unit.Percent(s.ErrorRatio), classes(s.ErrorsBy)))
	}
	if s.Waits > 0 {
		all = append(all, fmt.Sprintf("With %s the service told clients %s times to wait, %s each on average.", l.f.at(s), unit.Count(float64(s.Waits)), unit.Seconds(ratio(s.Waited, float64(s.Waits)))))
	}
	if seen, there := machines(s); seen > 0 && seen < there {
		all = append(all, fmt.Sprintf("Of the machines of %d data servers only %d were watched: what is full may be on another one.", there, seen))
	}
	for i := range s.Hosts {
		h := &s.Hosts[i]
		if v := h.Service; v != nil && (v.Refused > 0 || v.Queue > 0 || v.Limited > 0) {
			all = append(all, fmt.Sprintf("%s says of itself: %s refused logins/s, at most %s in line for a thread, %s times/s at its limit of threads.",
				h.Host, unit.Count(v.Refused), several(v.Queue, "job", "jobs"), unit.Count(v.Limited)))
		}
	}
	for i := range s.Resources {
		switch u := &s.Resources[i]; {
		case u.Resource == ResourceListen, u.Resource == ResourceRetransmits, u.Resource == ResourceNetwork && u.Share == nil:
			all = append(all, fmt.Sprintf("On %s %s.", u.Host, u.Detail))
		}
	}
	return head(all, 6)
}
