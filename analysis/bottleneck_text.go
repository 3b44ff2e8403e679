package analysis

import (
	"fmt"
	"strings"

	"weir/internal/unit"
)

// Text names what limits, for a sentence: "the CPU of store.example.org".
func (b *Bottleneck) Text() string {
	switch b.Resource {
	case LimitLatency:
		return "the latency of single operations"
	case LimitInside:
		return "the server (lock or internal limit)"
	case LimitUnknown:
		return "unknown"
	case LimitNone:
		return "nothing that was reached in the tested range"
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
	case b.Shared && b.Foreign > 0:
		return ", shared by clients, service and " + others
	case b.Shared:
		return ", shared by clients and service"
	case b.Foreign > 0:
		return ", shared by " + others
	}
	return ""
}

// notClause lists what is excluded: ", not CPU, disk or network".
func (b *Bottleneck) notClause() string {
	if len(b.Excluded) == 0 {
		return ""
	}
	var names []string
	for _, kind := range b.Excluded {
		names = append(names, map[string]string{kindCPU: "CPU"}[kind])
		if names[len(names)-1] == "" {
			names[len(names)-1] = kind
		}
	}
	last := len(names) - 1
	if last == 0 {
		return ", not " + names[0]
	}
	return ", not " + strings.Join(names[:last], ", ") + " or " + names[last]
}

// text is that of its Bottleneck.
func (c *Candidate) text() string {
	return (&Bottleneck{Resource: c.Resource, Host: c.Host}).Text()
}

// interval writes the interval of its share.
func (c *Candidate) interval() string {
	if c.Low == nil || c.High == nil {
		return ""
	}
	return fmt.Sprintf(" (%s to %s)", unit.Percent(*c.Low), unit.Percent(min(1, *c.High)))
}

// text is that of its Bottleneck.
func (x *full) text() string { return (&Bottleneck{Resource: x.resource, Host: x.host}).Text() }

// of says where the resource is.
func (b *Bottleneck) of() string {
	switch {
	case b.Host == "":
		return ""
	case b.Resource == ResourceNetwork:
		return " (" + b.Host + ")"
	case b.Resource == ResourceGenerator:
		return " on " + b.Host
	}
	return " of " + b.Host
}

func (b *Bottleneck) name() string {
	switch b.Resource {
	case ResourceCPU:
		return "the CPU"
	case ResourceCore:
		return "one core"
	case ResourceReceived:
		return "the network interface (receiving)"
	case ResourceSent:
		return "the network interface (sending)"
	case ResourceThreads:
		return "the pool of threads"
	case ResourceGenerator:
		return "the load generator"
	case ResourceFiles:
		return "the number of open files that the generator may have"
	case ResourcePorts:
		return "the supply of local ports"
	}
	return "the " + b.Resource
}

// noun is what steps are compared by.
func (l *ladder) noun() string {
	if l.f.Measure == Rate {
		return "the rate"
	}
	return "throughput"
}

// loadText tells how the load grew.
func (l *ladder) loadText(i, j int) string {
	what := strings.TrimSuffix(l.f.Load(), "/s")
	return fmt.Sprintf("the %s grow %.3g-fold (to %s)", what, ratio(l.load(j), l.load(i)), l.f.at(l.steps[j]))
}

// growthText tells what more load brought from step i on.
func (l *ladder) growthText(i int) string {
	after := l.bestAfter(i)
	if after < 0 {
		return "It is the heaviest load that was tested: whether " + l.noun() + " levels off there was not seen."
	}
	a, b := l.yield(i), l.yield(after)
	if b <= a {
		return fmt.Sprintf("From there on %s does not grow (%s, then at most %s) while %s.", l.noun(), l.f.show(a), l.f.show(b), l.loadText(i, l.last()))
	}
	return fmt.Sprintf("From there on %s grows by %s at most (%s to %s) while %s.", l.noun(), unit.Percent(ratio(b, a)-1), l.f.show(a), l.f.show(b), l.loadText(i, l.last()))
}

// beforeText tells of what was full while the yield still grew.
func (l *ladder) beforeText(x *full) string {
	after := l.bestAfter(x.onset)
	return fmt.Sprintf("It is not %s: saturated already with %s (%s), but %s became %.3g times as large since.", x.text(), l.f.at(l.steps[x.onset]),
		x.use.Detail, l.noun(), ratio(l.yield(after), l.yield(x.onset)))
}

// crowdedText says so.
func (l *ladder) crowdedText(x *full) string {
	if x.idle() {
		return fmt.Sprintf("It is hardly %s, though other programs and guests used %s of it: clients and service want little of it (see the check of quiet machines).", x.text(), unit.Percent(x.use.foreign))
	}
	return fmt.Sprintf("Other programs and guests used %s of %s with %s: both sides got what those left, and how much that was is not theirs to tell (see the check of quiet machines).",
		unit.Percent(x.use.foreign), x.text(), l.f.at(l.steps[x.onset]))
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
	return fmt.Sprintf("What limits it, from %s on: %s%s.", f.limitAt(b), b.Text(), b.notClause())
}

// LimitText says in one sentence what limits the curve, "" where that was not
// judged.
func (f *Findings) LimitText() string {
	if len(f.Bottleneck) == 0 {
		return ""
	}
	b := &f.Bottleneck[0]
	switch b.Resource {
	case LimitLatency:
		if f.OfJobs() {
			return "No limit was reached: each job computes, and waits for its own requests only; more jobs would bring more."
		}
		return "No limit was reached: each client waits for its own operations only, and more clients would bring more."
	case LimitInside:
		return fmt.Sprintf("From %s on %s limits it%s.", f.limitAt(b), b.Text(), b.notClause())
	case LimitUnknown:
		return f.unknownText(b)
	case LimitNone:
		if len(b.Candidates) > 0 {
			return "No limit was reached in the tested range, but " + b.Candidates[0].text() + " may be next."
		}
		return "No limit was reached in the tested range."
	}
	return fmt.Sprintf("From %s on %s limits it.", f.limitAt(b), b.Text())
}

// unknownText says why it cannot be told what limits.
func (f *Findings) unknownText(b *Bottleneck) string {
	why := map[string]string{
		ReasonUnwatched: "the machines of the service or of the clients were not all watched",
		ReasonGrowth:    "whether throughput still grows is within its noise",
		ReasonForeign:   "other programs used the machine",
	}[b.Reason]
	if why == "" {
		var names []string
		for i := range min(3, len(b.Candidates)) {
			names = append(names, b.Candidates[i].text())
		}
		why = strings.Join(names, " or ") + " may be full"
	}
	if f.load(&f.Curve[f.lightest()]) == f.load(&f.Curve[f.heaviest()]) {
		return fmt.Sprintf("Cannot tell what limits it: %s.", why)
	}
	return fmt.Sprintf("It levels off from %s on; cannot tell what limits it: %s.", f.limitAt(b), why)
}
