package validity

import (
	"cmp"
	"fmt"
	"maps"
	"slices"

	"weir/internal/stats"
	"weir/loadtest/analysis/basics"
	"weir/loadtest/analysis/hosts"
	"weir/monitor"
)

// A sameSide identifies the sources of one kind on all hosts of one role.
type sameSide struct {
	what string
	role monitor.Role
}

// together replaces the counts of several hosts of one role by their sum, as each of these hosts
// carried only a part of the clients' bytes. The sum excludes the loopback interfaces: the traffic
// of many hosts crosses a network.
func together(counts []count) []count {
	byHost := map[sameSide]map[string]*count{} // sums by host
	for _, c := range counts {
		s := sameSide{c.of.what, c.role}
		all := byHost[s]
		one := basics.EntryOf(&all, c.of.host)
		byHost[s] = all
		if one.of.what == "" {
			*one = count{source: c.source, of: c.of, role: c.role, partial: c.partial, shared: c.shared}
		}
		if c.of.what != "interface" || c.of.name != hosts.Loopback {
			one.there += c.there
			one.widen(&c)
		}
	}
	all := slices.DeleteFunc(slices.Clone(counts), func(c count) bool { return len(byHost[sameSide{c.of.what, c.role}]) > 1 })
	for _, s := range slices.SortedFunc(maps.Keys(byHost), func(a, b sameSide) int {
		return cmp.Or(cmp.Compare(a.what, b.what), cmp.Compare(a.role, b.role))
	}) {
		if len(byHost[s]) > 1 {
			all = append(all, summed(s, byHost[s]))
		}
	}
	return all
}

// summed returns the count of all hosts together.
func summed(s sameSide, hosts map[string]*count) count {
	sum := *hosts[slices.Min(slices.Collect(maps.Keys(hosts)))]
	longest, there := addUp(hosts)
	sum.there, sum.clients, sum.seconds, sum.edges, sum.more, sum.less = there, longest.clients, longest.seconds, longest.edges,
		longest.more, longest.less
	what := map[string]string{"interface": "interfaces", "service": "services", "written": "processes (written)",
		"written and read": "processes (written and read)", "read": "processes (read)"}[s.what]
	sum.source = fmt.Sprintf("%s of %d %s hosts", what, len(hosts), s.role)
	return sum
}

// widen extends the time of c to the time of o if that is longer.
func (c *count) widen(o *count) {
	c.clients, c.seconds, c.edges = max(c.clients, o.clients), max(c.seconds, o.seconds), max(c.edges, o.edges)
	c.more, c.less = max(c.more, o.more), max(c.less, o.less)
}

// addUp returns the sum of the hosts' bytes, and the count that covers the longest time. A host
// without samples for a while counts as if it had continued at the same rate.
func addUp(hosts map[string]*count) (longest *count, there float64) {
	names := slices.Sorted(maps.Keys(hosts)) // sums do not depend on the order of a map
	longest = hosts[slices.MaxFunc(names, func(a, b string) int { return cmp.Compare(hosts[a].seconds, hosts[b].seconds) })]
	for _, name := range names {
		there += hosts[name].there * stats.Ratio(longest.seconds, hosts[name].seconds)
	}
	return longest, there
}
