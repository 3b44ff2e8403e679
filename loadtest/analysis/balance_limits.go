package analysis

import (
	"fmt"
	"math"
	"strings"

	"weir/internal/say"
	"weir/internal/unit"
)

// Values of BackendLimit.Resource beside those of ResourceUsage.Resource.
const (
	LimitSessions = "sessions" // as many as it may have, or some wait for it
	LimitYield    = "yield"    // it gives hardly more at any heavier load
)

// Bounds from which on the sessions of a backend are what limits it.
const (
	fullSessions    = 0.95 // of its limit
	waitingSessions = 0.5  // mean number that wait for it
	hardlyMore      = 1.1  // factor of what it gives that is no more worth a word
)

// limits finds from which load on each backend is full, by a resource of its machine, by its sessions, or because it
// gives no more; and which is first. What is seen to be full counts before what only gives no more; and that all give
// no more from the same load on reports on none of them.
func (b *Balance) limits(f *Findings) {
	l := f.ladder()
	first, level := map[bool]int{}, map[bool]int{} // by whether it was seen
	byKind := map[bool]*BackendLimit{}
	for k := range b.Backends {
		at, limit := l.backend(k)
		if limit == nil {
			continue
		}
		b.Backends[k].Saturated = limit
		limit.Backend = b.Backends[k].Name
		seen := limit.Resource != LimitYield
		switch {
		case byKind[seen] == nil || at < first[seen]:
			byKind[seen], first[seen], level[seen] = limit, at, 1
		case at == first[seen]:
			level[seen]++
		}
	}
	switch {
	case byKind[true] != nil:
		b.First = byKind[true]
	case byKind[false] != nil && level[false] < len(b.Backends):
		b.First = byKind[false]
	}
}

// backend returns the place in the ladder from which on backend k is full, and by what.
func (l *ladder) backend(k int) (at int, limit *BackendLimit) {
	for i, s := range l.steps {
		if k >= len(s.Backends) {
			return -1, nil
		}
		if resource, detail := s.fullBackend(&s.Backends[k]); resource != "" {
			return i, &BackendLimit{Step: s.Step, From: s.Clients, Resource: resource, Detail: detail}
		}
	}
	for i, s := range l.steps {
		if l.load(l.last()) < leastRange*l.load(i) {
			break
		}
		x := &s.Backends[k]
		if x.amount() <= 0 || !l.flat(i, k) {
			continue
		}
		detail := fmt.Sprintf("throughput is %s, and hardly more at any heavier load", unit.Bits(x.amount()))
		if x.Throughput == nil {
			detail = fmt.Sprintf("it has %s sessions, and hardly more at any heavier load", unit.Count(x.amount()))
		}
		return i, &BackendLimit{Step: s.Step, From: s.Clients, Resource: LimitYield, Detail: detail}
	}
	return -1, nil
}

// flat reports whether backend k gives hardly more at any load beyond i.
func (l *ladder) flat(i, k int) bool {
	from := l.steps[i].Backends[k].amount()
	for j := i + 1; j < len(l.steps); j++ {
		if l.steps[j].Backends[k].amount() > from*hardlyMore {
			return false
		}
	}
	return true
}

// fullBackend says what of a backend is full in a step.
func (s *Step) fullBackend(x *BackendFigure) (resource, detail string) {
	for u := range each(s.Resources) {
		if u.Host == x.Name && u.Saturated {
			return u.Resource, u.Detail
		}
	}
	switch {
	case x.Network != nil && *x.Network >= boundOf(ResourceNetwork).reached:
		return ResourceNetwork, fmt.Sprintf("its network interface is used to %s of its speed, headers included", unit.Percent(*x.Network))
	case value(x.Queue) >= waitingSessions:
		return LimitSessions, fmt.Sprintf("on average %s sessions wait for it, in addition to its %s sessions", unit.Count(*x.Queue),
			unit.Count(value(x.Sessions)))
	case x.Limit > 0 && value(x.Sessions) >= fullSessions*float64(x.Limit):
		return LimitSessions, fmt.Sprintf("it has %s of at most %d sessions", unit.Count(*x.Sessions), x.Limit)
	}
	return "", ""
}

// Bounds of the check that the sources of the backends' figures agree.
const (
	backendsOK   = 0.02 // of the bytes of all backends together
	backendsEach = 0.05 // of those of each
)

// checkBackends compares what the clients saw of each backend with what its log, its interface, it itself and the
// balancer say, over the whole run. It returns nil where fewer than two sources report on bytes.
func (d *data) checkBackends(f *Findings) *Check {
	if f.Balance == nil {
		return nil
	}
	clients := map[int]float64{}
	for place, counts := range d.clientBytes() {
		for _, bytes := range counts {
			clients[place] += bytes
		}
	}
	c := &Check{Name: "backends agree", Status: OK}
	var notes []string
	for _, source := range []string{ByLog, ByInterface, ByItself, ByBalancer} {
		note, status := d.compareBackends(f.Balance, source, clients)
		if note == "" {
			continue
		}
		notes = append(notes, note)
		c.Status = worse(c.Status, status)
	}
	if len(notes) == 0 {
		return nil
	}
	for i, n := range notes {
		c.Detail += map[bool]string{true: "; "}[i > 0] + n
	}
	return c
}

// warnUnnamedServers warns of data servers that the plan does not name as backends although it names others.
func (d *data) warnUnnamedServers(b *Balance) []string {
	if b == nil || d.backends.declared == 0 {
		return nil
	}
	var names []string
	for _, x := range b.Backends[d.backends.declared:] {
		names = append(names, x.Name)
	}
	if len(names) == 0 {
		return nil
	}
	return []string{fmt.Sprintf("%s of the servers that share the load %s not a host of the scenario by name or address: %s",
		say.Capital(fmt.Sprint(len(names))), map[bool]string{true: "is", false: "are"}[len(names) == 1], strings.Join(head(names, 4), ", "))}
}

// ofRun returns the bytes of a backend over the whole run by a source; false if the source has none, or not all of them.
func (d *data) ofRun(source string, place int) (float64, bool) {
	s := d.backends.steps[0][place]
	if d.backends.lacks[sourceOf{source, place}] {
		return 0, false
	}
	if s == nil {
		return 0, source == ByLog && place < d.backends.declared && d.backends.hosts[place].TransferLog != ""
	}
	switch source {
	case ByLog:
		return s.logged, s.hasLog || place < d.backends.declared && d.backends.hosts[place].TransferLog != ""
	case ByInterface:
		return s.wire, s.hasWire
	case ByItself:
		return s.reported, s.hasReport
	}
	return s.late, d.backends.balancer != "" && s.sessions.weight > 0
}

// compareBackends holds a source against the clients: backend by backend where these tell data servers apart, else
// all together.
func (d *data) compareBackends(b *Balance, source string, clients map[int]float64) (note, status string) {
	var there, seen, all float64
	worst, who, reported := 0.0, "", 0
	for _, n := range clients {
		all += n
	}
	apart := all >= leastReported*float64(d.moved)
	for i := range b.Backends {
		n, ok := d.ofRun(source, b.Backends[i].place)
		if !ok {
			continue
		}
		reported++
		there += n
		own := clients[b.Backends[i].place]
		seen += own
		if off := ratio(n-own, own); apart && own >= leastSeen && math.Abs(off) > math.Abs(worst) {
			worst, who = off, b.Backends[i].Name
		}
	}
	if !apart {
		seen = float64(d.moved)
	}
	name := map[string]string{ByLog: "transfer logs", ByInterface: "interfaces", ByItself: "server reports",
		ByBalancer: "the balancer"}[source]
	switch {
	case reported == 0 || seen < leastSeen || there == 0 && source != ByLog || !apart && reported < len(b.Backends):
		return "", OK
	case source != ByLog && there < leastReported*seen && source != ByInterface:
		return fmt.Sprintf("%s saw %s of %s: the files took another path", name, unit.Bytes(there), unit.Bytes(seen)), OK
	}
	off := ratio(there-seen, seen)
	note = fmt.Sprintf("clients %s, %s of %d backends %s: %+.1f%%", unit.Bytes(seen), name, reported, unit.Bytes(there), 100*off)
	if who != "" {
		note += fmt.Sprintf(" (%+.1f%% at most, of %s)", 100*worst, who)
	}
	if d.agrees(source, off, backendsOK) && d.agrees(source, worst, backendsEach) {
		return note, OK
	}
	return note + others(off), Warn
}

// agrees reports whether a source may differ so much: all but the log count headers and what clients ask as well, and count until a look
// that may be late, which matters in short runs.
func (d *data) agrees(source string, off, bound float64) bool {
	if source == ByLog {
		return math.Abs(off) <= bound
	}
	run := d.backends.whole[0]
	bound = 2*bound + ratio(mostLateLook/2, run.to.Sub(run.from).Seconds())
	return off >= -bound && off <= bound+d.overhead()-1
}

func others(off float64) string {
	if off > 0 {
		return "; other clients may use the backends"
	}
	return "; other servers may have served the clients"
}
