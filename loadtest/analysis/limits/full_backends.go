package limits

import (
	"strings"

	"weir/loadtest/analysis/basics"
	"weir/loadtest/analysis/fact"
	"weir/loadtest/analysis/hosts"
	"weir/loadtest/analysis/steps"
)

// Values of BackendLimit.Resource that ResourceUsage.Resource does not have.
const (
	LimitSessions = "sessions" // as many as its limit permits, or some sessions wait for it
	LimitYield    = "yield"    // its yield hardly grows at any heavier load
)

// Bounds from which the sessions of a backend limit it.
const (
	fullSessions    = 0.95 // of its limit
	waitingSessions = 0.5  // mean number of sessions that wait for it
	hardlyMore      = 1.1  // growth of the yield by less than this factor does not count
)

// limits finds the load from which each backend is saturated, by a resource of its machine, by its
// sessions, or because its yield no longer grows; and the backend that was saturated first. A
// measured saturation takes precedence over a yield that no longer grows. If the yield of all
// backends stops growing at the same load, no backend is the first.
func (b *Balance) limits(curve *steps.Curve) {
	l := newLadder(curve, nil)
	first, level := map[bool]int{}, map[bool]int{} // by whether saturation was measured
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

// backend returns the index in the ladder from which backend k is saturated, and its limit.
func (l *ladder) backend(k int) (at int, limit *BackendLimit) {
	for i, s := range l.steps {
		if k >= len(s.Backends) {
			return -1, nil
		}
		if resource, facts := fullBackend(s, &s.Backends[k]); resource != "" {
			return i, backendLimit(s, resource, facts...)
		}
	}
	for i, s := range l.steps {
		if l.load(l.last()) < leastRange*l.load(i) {
			break
		}
		x := &s.Backends[k]
		if amountOf(x) <= 0 || !l.flat(i, k) {
			continue
		}
		if x.Throughput == nil {
			return i, backendLimit(s, LimitYield, fact.New("limit.backend.level.sessions", "sessions", amountOf(x)))
		}
		return i, backendLimit(s, LimitYield, fact.New("limit.backend.level", "throughput", amountOf(x)))
	}
	return -1, nil
}

func backendLimit(s *steps.Working, resource string, facts ...fact.Fact) *BackendLimit {
	return &BackendLimit{Step: s.Step, From: s.Clients, Resource: resource, Detail: strings.Join(fact.Texts(facts), "; "), Facts: facts}
}

// flat reports whether the yield of backend k hardly grows at any load beyond i.
func (l *ladder) flat(i, k int) bool {
	from := amountOf(&l.steps[i].Backends[k])
	for j := i + 1; j < len(l.steps); j++ {
		if amountOf(&l.steps[j].Backends[k]) > from*hardlyMore {
			return false
		}
	}
	return true
}

// fullBackend returns the resource of a backend that is saturated in a step, "" if no resource is.
func fullBackend(s *steps.Working, x *steps.BackendFigure) (resource string, facts []fact.Fact) {
	for u := range basics.Each(s.Resources) {
		if u.Host == x.Name && u.Saturated {
			return u.Resource, u.Facts
		}
	}
	switch {
	case x.Network != nil && *x.Network >= boundOf(hosts.ResourceNetwork).reached:
		return hosts.ResourceNetwork, []fact.Fact{fact.New("limit.backend.network", "share", *x.Network)}
	case basics.Value(x.Queue) >= waitingSessions:
		return LimitSessions, []fact.Fact{fact.New("limit.backend.queue", "waiting", *x.Queue, "sessions", basics.Value(x.Sessions))}
	case x.Limit > 0 && basics.Value(x.Sessions) >= fullSessions*float64(x.Limit):
		return LimitSessions, []fact.Fact{fact.New("limit.backend.sessions", "sessions", *x.Sessions, "limit", x.Limit)}
	}
	return "", nil
}
