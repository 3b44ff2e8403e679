package analysis

import (
	"fmt"
	"slices"
	"strings"

	"weir/internal/say"
	"weir/internal/unit"
	"weir/loadtest/analysis/shape"
)

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
	if b.Resource != ResourceCPU {
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
	case b.Resource == ResourceNetwork:
		return " (" + b.Host + ")"
	case b.Resource == ResourceGenerator, b.Threads > 0:
		return " on " + b.Host
	}
	return " of " + b.Host
}

func (b *Bottleneck) name() string {
	switch b.Resource {
	case ResourceCPU:
		return "the CPU"
	case ResourceCore:
		if b.Threads > 0 {
			return "the server's CPU (" + several(b.Threads, "thread", "threads") + ")"
		}
		return "one core"
	case ResourceReceived:
		return "the network interface (receiving)"
	case ResourceSent:
		return "the network interface (sending)"
	case ResourceThreads:
		return "the thread pool"
	case ResourceGenerator:
		return "the load generator"
	case ResourceFiles:
		return "the limit of open files of the load generator"
	case ResourcePorts:
		return "the number of local ports"
	}
	return "the " + b.Resource
}

// noun is what steps are compared by.
func (f *Findings) noun() string {
	if f.Measure == Rate {
		return "the rate"
	}
	return "throughput"
}

// loadText tells how the load grew.
func (l *ladder) loadText(i, j int) string {
	return fmt.Sprintf("the number of %s grows %.3g-fold (to %s)", l.f.loads(), ratio(l.load(j), l.load(i)), l.f.at(l.steps[j]))
}

// growthText tells what more load brought from step i on.
func (l *ladder) growthText(i int) string {
	after := l.bestAfter(i)
	switch {
	case after < 0 && l.steps[i].linkFull():
		return "It is the heaviest load tested, and more cannot pass the link."
	case after < 0:
		return "It is the heaviest load tested: whether " + l.f.noun() + " levels off there is not known."
	}
	a, b := l.yield(i), l.yield(after)
	if b <= a {
		return fmt.Sprintf("From there on %s does not grow (%s, then at most %s), while %s.", l.f.noun(), l.f.show(a), l.f.show(b),
			l.loadText(i, l.last()))
	}
	return fmt.Sprintf("From there on %s grows by at most %s (%s to %s), while %s.", l.f.noun(), unit.Percent(ratio(b, a)-1), l.f.show(a),
		l.f.show(b), l.loadText(i, l.last()))
}

// beforeText reports on what was full while the yield still grew.
func (l *ladder) beforeText(x *full) string {
	after := l.bestAfter(x.onset)
	return fmt.Sprintf("The limit is not %s: it was saturated from %s on (%s), but %s grew %.3g-fold after that.", x.text(),
		l.f.at(l.steps[x.onset]), x.use.Detail, l.f.noun(), ratio(l.yield(after), l.yield(x.onset)))
}

// usedByOthersText says that others use a resource.
func (l *ladder) usedByOthersText(x *full) string {
	if x.idle() {
		return fmt.Sprintf("The limit is probably not %s, although other programs and guests used %s of it: clients and service use little of "+
			"it (see the check \"quiet machines\").", x.text(), unit.Percent(x.use.foreign))
	}
	return fmt.Sprintf("Other programs and guests used %s of %s at %s. Clients and service shared the rest (see the check "+
		"\"quiet machines\").", unit.Percent(x.use.foreign), x.text(), l.f.at(l.steps[x.onset]))
}

// limitAt names the load from which on b limits, "" if the curve has no such step.
func (f *Findings) limitAt(b *Bottleneck) string {
	for i := range f.Curve {
		if f.Curve[i].Step == b.Step {
			return f.at(&f.Curve[i])
		}
	}
	return ""
}

// limitClause is what the verdict says of the limit, "" if none was found.
func (f *Findings) limitClause() string {
	if len(f.Bottleneck) == 0 {
		return ""
	}
	b := &f.Bottleneck[0]
	switch b.Resource {
	case LimitNone, LimitUnknown, LimitLatency:
		return ""
	}
	return fmt.Sprintf("From %s on %s is limited by %s%s.", f.limitAt(b), f.noun(), b.Text(), b.notClause())
}

// LimitText says in one sentence what limits the curve, "" where that was not judged.
func (f *Findings) LimitText() string {
	if len(f.Bottleneck) == 0 {
		return ""
	}
	b := &f.Bottleneck[0]
	switch b.Resource {
	case LimitLatency:
		if f.OfJobs() {
			return "No limit was reached: each job computes and waits only for its own requests; more jobs would give more."
		}
		return "No limit was reached: each client waits only for its own operations, and more clients would give more."
	case LimitInside:
		return fmt.Sprintf("From %s on %s is limited by %s%s.", f.limitAt(b), f.noun(), b.Text(), b.notClause())
	case LimitUnknown:
		return f.unknownText(b)
	case LimitNone:
		if len(b.Candidates) > 0 {
			return "No limit was reached in the tested range, but " + b.Candidates[0].text() + " may be the next limit."
		}
		return "No limit was reached in the tested range."
	}
	return fmt.Sprintf("From %s on %s is limited by %s.", f.limitAt(b), f.noun(), b.Text())
}

// unknownText says why the limit is unknown.
func (f *Findings) unknownText(b *Bottleneck) string {
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
	if f.oneLoad() {
		return fmt.Sprintf("The limit is unknown: %s.", why)
	}
	most, at := 0.0, 0.0
	for s := range each(f.Curve) {
		if s.Excluded == "" {
			most = max(most, f.mean(s))
		}
		if s.Step == b.Step {
			at = f.mean(s)
		}
	}
	if at < shape.NearBest*most {
		return fmt.Sprintf("From %s on %s grows by less than half as much as the load. The limit is unknown: %s.", f.limitAt(b), f.noun(), why)
	}
	return fmt.Sprintf("%s levels off from %s on. The limit is unknown: %s.", say.Capital(f.noun()), f.limitAt(b), why)
}
