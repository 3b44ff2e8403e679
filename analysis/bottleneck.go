package analysis

import (
	"fmt"
	"strings"

	"weir/internal/unit"
)

// Values of Bottleneck.Resource beside those of Use.Resource.
const (
	LimitLatency = "latency"           // nothing is full: each client waits for its own operations
	LimitInside  = "inside the server" // nothing that was seen is full, and throughput does not grow
	LimitUnknown = "unknown"           // the same, and the server was not watched
	LimitNone    = "none"              // no limit was reached in the tested range
)

// proportional is the share of the lightest step's yield of each client that
// the heaviest must keep for the curve to be called straight.
const proportional = 0.8

// bottleneck says what limits the curve: first what was saturated first as
// the load grew, where the curve levels off, then what was saturated later.
// It marks what is saturated in the steps.
func (d *data) bottleneck(f *Findings, best int) []Bottleneck {
	l := f.ladder()
	if best < 0 || len(l.steps) == 0 {
		return []Bottleneck{}
	}
	all := l.saturated()
	switch {
	case l.narrow():
		return l.atOneLoad(all)
	case l.level < 0:
		return l.growing(all)
	}
	var causes, crowded, later []full
	var before []string
	for _, x := range all {
		switch {
		case l.limits(&x):
			causes = append(causes, x)
		case x.onset > max(l.level, l.top):
			later = append(later, x)
		case x.crowded():
			if !x.idle() {
				crowded = append(crowded, x)
			}
			before = append(before, l.crowdedText(&x))
		default:
			before = append(before, l.beforeText(&x))
		}
	}
	if len(causes) == 0 && len(crowded) > 0 {
		causes, before = crowded[:1], before[:0] // what is left for the service follows from what others do
	}
	if len(causes) == 0 {
		return append([]Bottleneck{l.hidden(before)}, l.following(later, -1)...)
	}
	first := l.named(&causes[0])
	first.Evidence = append(first.Evidence, l.growthText(causes[0].onset))
	first.Evidence = append(first.Evidence, l.letText(&causes[0])...)
	first.Evidence = append(first.Evidence, l.context(causes)...)
	first.Evidence = append(first.Evidence, before...)
	return append([]Bottleneck{first}, l.following(append(causes[1:], later...), causes[0].onset)...)
}

// named makes the Bottleneck of a full resource, with the first sentence.
func (l *ladder) named(x *full) Bottleneck {
	s := l.steps[x.onset]
	b := Bottleneck{Resource: x.resource, Host: x.host, Side: x.use.Side, Step: s.Step, From: s.Clients}
	b.Evidence = []string{fmt.Sprintf("With %s %s is saturated: %s.", l.f.at(s), b.Text(), x.use.Detail)}
	if x.onset > 0 {
		for _, u := range l.steps[x.onset-1].Resources {
			if u.Resource == x.resource && u.Host == x.host && u.Share != nil && !u.Saturated {
				b.Evidence = append(b.Evidence, fmt.Sprintf("With %s it was at %s.", l.f.at(l.steps[x.onset-1]), unit.Percent(*u.Share)))
			}
		}
	}
	return b
}

// letText tells of a heavier load at which less of x was used.
func (l *ladder) letText(x *full) []string {
	if x.let < 0 {
		return nil
	}
	for _, u := range l.steps[x.let].Resources {
		if u.Resource == x.resource && u.Host == x.host && u.Share != nil {
			return []string{fmt.Sprintf("With %s, as %s has fallen, it is at %s only: what takes the rest is something else, such as a lock.",
				l.f.at(l.steps[x.let]), l.noun(), unit.Percent(*u.Share))}
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
		all = append(all, "Clients and service share this machine: what one of them uses the other lacks, and the curve is that of both together.")
	case client:
		what := "That is on the clients' side: the service may be able to give more than the curve shows."
		if x.resource == ResourceCPU && (s.burned > 0 || s.programs) {
			what = "That is what the jobs themselves compute with: on more machines, or on faster ones, they would do more, and the service may be able to give more than the curve shows."
		}
		all = append(all, what)
	}
	if x.crowded() {
		all = append(all, l.crowdedText(x))
	}
	var others []string
	for i := range causes[1:] {
		o := &causes[1+i]
		if o.onset == x.onset {
			others = append(others, o.text())
		}
	}
	if len(others) > 0 {
		all = append(all, fmt.Sprintf("Saturated from %s on, too: %s.", l.f.at(s), strings.Join(head(others, 4), ", ")))
	}
	return all
}

// following lists what is saturated beside the first bottleneck. Of the same
// resource of many hosts the first stands for all.
func (l *ladder) following(later []full, shown int) []Bottleneck {
	all := []Bottleneck{}
	hosts := map[[2]string]int{}
	for i := range later {
		x := &later[i]
		id := [2]string{x.resource, x.use.Side}
		at, ok := hosts[id]
		if ok {
			if n := len(all[at].Evidence); n < 4 {
				all[at].Evidence = append(all[at].Evidence, fmt.Sprintf("That of %s is, from %s on.", x.host, l.f.at(l.steps[x.onset])))
			}
			continue
		}
		hosts[id] = len(all)
		b := l.named(x)
		if x.onset > shown && shown >= 0 {
			b.Evidence = append(b.Evidence, "By then something else was.")
		}
		all = append(all, b)
	}
	return all
}

// crowded tells whether others than the clients and the service used much of it.
func (x *full) crowded() bool { return x.use.foreign >= othersWarn }

// leastOwn is the part of a resource that clients and service use at least if
// it can be what they wait for: of a CPU each program that wants it gets a part.
const leastOwn = 0.1

// idle tells whether others use x up, and clients and service hardly any of it.
func (x *full) idle() bool { return x.crowded() && x.own < leastOwn }
