package analysis

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
)

// A sameSide is the sources of one kind on all hosts of one role.
type sameSide struct{ what, role string }

// together replaces the counts of several hosts of one role by their sum, for
// each of these hosts saw only a part of what the clients moved. Loopback is
// left out of it: what many hosts serve crosses a network.
func together(counts []count) []count {
	hosts := map[sameSide]map[string]*count{} // sums by host
	for _, c := range counts {
		s := sameSide{c.of.what, c.role}
		if hosts[s] == nil {
			hosts[s] = map[string]*count{}
		}
		one := hosts[s][c.of.host]
		if one == nil {
			one = &count{of: c.of, role: c.role, partial: c.partial, shared: c.shared}
			hosts[s][c.of.host] = one
		}
		if c.of.what == "interface" && c.of.name == loopback {
			continue
		}
		one.there += c.there
		one.widen(&c)
	}
	var all []count
	for _, c := range counts {
		if len(hosts[sameSide{c.of.what, c.role}]) == 1 {
			all = append(all, c)
		}
	}
	order := slices.SortedFunc(maps.Keys(hosts), func(a, b sameSide) int {
		return cmp.Or(cmp.Compare(a.what, b.what), cmp.Compare(a.role, b.role))
	})
	for _, s := range order {
		if len(hosts[s]) > 1 {
			all = append(all, summed(s, hosts[s]))
		}
	}
	return all
}

// summed is the count of all hosts together.
func summed(s sameSide, hosts map[string]*count) count {
	names := slices.Sorted(maps.Keys(hosts))
	sum := *hosts[names[0]]
	longest, there := addUp(hosts)
	sum.there, sum.clients, sum.seconds, sum.edges, sum.more = there, longest.clients, longest.seconds, longest.edges, longest.more
	sum.less = longest.less
	what := map[string]string{"interface": "interfaces", "service": "services themselves", "written": "processes (written)", "written and read": "processes (written and read)", "read": "processes (read)"}[s.what]
	sum.source = fmt.Sprintf("%s of %d %s hosts", what, len(hosts), s.role)
	return sum
}

// widen has c cover the time that o covers, if that is longer.
func (c *count) widen(o *count) {
	c.clients, c.seconds, c.edges, c.more = max(c.clients, o.clients), max(c.seconds, o.seconds), max(c.edges, o.edges), max(c.more, o.more)
	c.less = max(c.less, o.less)
}

// addUp adds what hosts saw, and returns the count that covers the longest
// time. A host that was silent for a while is counted as if it had gone on as before.
func addUp(hosts map[string]*count) (longest *count, there float64) {
	names := slices.Sorted(maps.Keys(hosts)) // sums do not depend on the order of a map
	longest = hosts[names[0]]
	for _, name := range names {
		if h := hosts[name]; h.seconds > longest.seconds {
			longest = h
		}
	}
	for _, name := range names {
		there += hosts[name].there * ratio(longest.seconds, hosts[name].seconds)
	}
	return longest, there
}
