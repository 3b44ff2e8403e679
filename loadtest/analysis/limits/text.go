package limits

import (
	"fmt"
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

// mostOfCPU is the share from which on the headline says that others used it.
const mostOfCPU = 0.5

// Text names what limits, for a sentence: "the CPU of store.example.org".
func (b *Bottleneck) Text() string {
	switch b.Resource {
	case LimitLatency:
		return "the latency of each operation"
	case LimitInside:
		return "the server (lock or internal limit)"
	case LimitUnknown:
		return "unknown"
	case LimitNone:
		return "nothing in the tested range"
	}
	return b.name() + b.of() + b.sharers()
}

// sharers names who uses a CPU beside the service.
func (b *Bottleneck) sharers() string {
	if b.Resource != hosts.ResourceCPU {
		return ""
	}
	others := "other programs (" + unit.Percent(b.Foreign) + ")"
	switch {
	case b.Foreign >= mostOfCPU:
		return ", " + unit.Percent(b.Foreign) + " of it used by other programs"
	case b.Shared && b.Foreign > 0:
		return ", shared by clients, service and " + others
	case b.Shared:
		return ", shared by clients and service"
	case b.Foreign > 0:
		return ", shared by " + others
	}
	return ""
}

// notClause lists what is excluded: ", not by CPU, disk or network".
func (b *Bottleneck) notClause() string {
	names := slices.Clone(b.Excluded)
	if len(names) == 0 {
		return ""
	}
	if names[0] == kindCPU {
		names[0] = "CPU"
	}
	last := len(names) - 1
	return ", not by " + strings.Join(slices.DeleteFunc([]string{strings.Join(names[:last], ", "), names[last]},
		func(s string) bool { return s == "" }), " or ")
}

// text is that of its Bottleneck.
func (c *Candidate) text() string {
	return (&Bottleneck{Resource: c.Resource, Host: c.Host, Threads: c.Threads}).Text()
}

// interval writes the interval of its share.
func (c *Candidate) interval() string {
	if c.Low == nil || c.High == nil {
		return ""
	}
	return fmt.Sprintf(" (%s to %s)", unit.Percent(*c.Low), unit.Percent(min(1, *c.High)))
}

// text is that of its Bottleneck.
func (x *full) text() string {
	return (&Bottleneck{Resource: x.resource, Host: x.host, Threads: x.threads}).Text()
}

// of says where the resource is.
func (b *Bottleneck) of() string {
	switch {
	case b.Host == "":
		return ""
	case b.Resource == hosts.ResourceNetwork:
		return " (" + b.Host + ")"
	case b.Resource == hosts.ResourceGenerator, b.Threads > 0:
		return " on " + b.Host
	}
	return " of " + b.Host
}

func (b *Bottleneck) name() string {
	switch b.Resource {
	case hosts.ResourceCPU:
		return "the CPU"
	case hosts.ResourceCore:
		if b.Threads > 0 {
			return "the server's CPU (" + several(b.Threads, "thread", "threads") + ")"
		}
		return "one core"
	case hosts.ResourceReceived:
		return "the network interface (receiving)"
	case hosts.ResourceSent:
		return "the network interface (sending)"
	case hosts.ResourceThreads:
		return "the thread pool"
	case hosts.ResourceGenerator:
		return "the load generator"
	case hosts.ResourceFiles:
		return "the limit of open files of the load generator"
	case hosts.ResourcePorts:
		return "the number of local ports"
	}
	return "the " + b.Resource
}

// loadText tells how the load grew.
func (l *ladder) loadText(i, j int) string {
	return fmt.Sprintf("the number of %s grows %.3g-fold (to %s)", l.curve.Loads(), stats.Ratio(l.load(j), l.load(i)), l.curve.At(l.steps[j]))
}

// growthText tells what more load brought from step i on.
func (l *ladder) growthText(i int) string {
	after := l.bestAfter(i)
	switch {
	case after < 0 && l.steps[i].LinkFull():
		return "It is the heaviest load tested, and more cannot pass the link."
	case after < 0:
		return "It is the heaviest load tested: whether " + l.curve.Noun() + " levels off there is not known."
	}
	a, b := l.yield(i), l.yield(after)
	if b <= a {
		return fmt.Sprintf("From there on %s does not grow (%s, then at most %s), while %s.", l.curve.Noun(), l.curve.Show(a), l.curve.Show(b),
			l.loadText(i, l.last()))
	}
	return fmt.Sprintf("From there on %s grows by at most %s (%s to %s), while %s.", l.curve.Noun(), unit.Percent(stats.Ratio(b, a)-1),
		l.curve.Show(a),
		l.curve.Show(b), l.loadText(i, l.last()))
}

// beforeText reports on what was full while the yield still grew.
func (l *ladder) beforeText(x *full) string {
	after := l.bestAfter(x.onset)
	return fmt.Sprintf("The limit is not %s: it was saturated from %s on (%s), but %s grew %.3g-fold after that.", x.text(),
		l.curve.At(l.steps[x.onset]), x.use.Detail, l.curve.Noun(), stats.Ratio(l.yield(after), l.yield(x.onset)))
}

// usedByOthersText says that others use a resource.
func (l *ladder) usedByOthersText(x *full) string {
	if x.idle() {
		return fmt.Sprintf("The limit is probably not %s, although other programs and guests used %s of it: clients and service use little of "+
			"it (see the check \"quiet machines\").", x.text(), unit.Percent(x.use.foreign))
	}
	return fmt.Sprintf("Other programs and guests used %s of %s at %s. Clients and service shared the rest (see the check "+
		"\"quiet machines\").", unit.Percent(x.use.foreign), x.text(), l.curve.At(l.steps[x.onset]))
}

// limitAt names the load from which on b limits, "" if the curve has no such step.
func limitAt(curve *steps.Curve, b *Bottleneck) string {
	for i := range curve.Steps {
		if curve.Steps[i].Step == b.Step {
			return curve.At(curve.Steps[i])
		}
	}
	return ""
}

// LimitClause returns the clause of the verdict on the limit, "" without a limit.
func LimitClause(curve *steps.Curve, all []Bottleneck) string {
	if len(all) == 0 {
		return ""
	}
	b := &all[0]
	switch b.Resource {
	case LimitNone, LimitUnknown, LimitLatency:
		return ""
	}
	return fmt.Sprintf("From %s on %s is limited by %s%s.", limitAt(curve, b), curve.Noun(), b.Text(), b.notClause())
}

// LimitText says in one sentence what limits the curve, "" where that was not judged.
func LimitText(curve *steps.Curve, all []Bottleneck) string {
	if len(all) == 0 {
		return ""
	}
	b := &all[0]
	switch b.Resource {
	case LimitLatency:
		if curve.OfJobs() {
			return "No limit was reached: each job computes and waits only for its own requests; more jobs would give more."
		}
		return "No limit was reached: each client waits only for its own operations, and more clients would give more."
	case LimitInside:
		return fmt.Sprintf("From %s on %s is limited by %s%s.", limitAt(curve, b), curve.Noun(), b.Text(), b.notClause())
	case LimitUnknown:
		return unknownText(curve, b)
	case LimitNone:
		if len(b.Candidates) > 0 {
			return "No limit was reached in the tested range, but " + b.Candidates[0].text() + " may be the next limit."
		}
		return "No limit was reached in the tested range."
	}
	return fmt.Sprintf("From %s on %s is limited by %s.", limitAt(curve, b), curve.Noun(), b.Text())
}

// unknownText says why the limit is unknown.
func unknownText(curve *steps.Curve, b *Bottleneck) string {
	why := map[string]string{
		ReasonUnwatched: "not all machines of the service and the clients were monitored",
		ReasonGrowth:    "whether throughput still grows is not clear from its noise",
		ReasonForeign:   "other programs used the machine",
	}[b.Reason]
	if why == "" {
		var names []string
		for i := range min(3, len(b.Candidates)) {
			names = append(names, b.Candidates[i].text())
		}
		why = strings.Join(names, " or ") + " may be saturated"
	}
	if curve.OneLoad() {
		return fmt.Sprintf("The limit is unknown: %s.", why)
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
		return fmt.Sprintf("From %s on %s grows by less than half as much as the load. The limit is unknown: %s.", limitAt(curve, b),
			curve.Noun(), why)
	}
	return fmt.Sprintf("%s levels off from %s on. The limit is unknown: %s.", say.Capital(curve.Noun()), limitAt(curve, b), why)
}

// LimitPhrase names the limit of the curve, in full and without its host, "" where that was not judged.
func LimitPhrase(all []Bottleneck) (full, short string) {
	if len(all) == 0 {
		return "", ""
	}
	b := &all[0]
	switch b.Resource {
	case LimitNone, LimitLatency:
		return "no limit reached", "no limit reached"
	case LimitUnknown:
		return "limit unknown", "limit unknown"
	case LimitInside:
		return "limited by " + b.Text() + b.notClause(), "limited by the server"
	}
	return "limited by " + b.Text(), "limited by " + b.name()
}

// OthersOfCPU returns a note if other programs used most of a saturated CPU in a step, else "".
func (r Resources) OthersOfCPU(s *steps.Working) (text, host string) {
	most := mostOfCPU
	for u := range basics.Each(r[s]) {
		if u.Resource == hosts.ResourceCPU && (u.reached || u.Saturated) && u.foreign >= most {
			most, host = u.foreign, u.Host
			text = "other programs used " + unit.Percent(most) + " of the CPU"
		}
	}
	return text, host
}

// OthersNamed reports whether the text of the limit mentions that other programs used most of a CPU.
func OthersNamed(all []Bottleneck) bool {
	return len(all) > 0 && all[0].Resource == hosts.ResourceCPU && all[0].Foreign >= mostOfCPU
}
