package hosts

import (
	"cmp"
	"slices"
	"time"

	"weir/loadtest/results/resultstest"
	"weir/monitor"
)

// InMemory returns the figures of Watched for one step, computed with every sample in memory and
// without its indexes.
func InMemory(samples []*monitor.Sample, spans [][2]time.Time) []HostFigure {
	sums := map[string]*hostSum{}
	for _, s := range samples {
		weight := resultstest.Overlap(s, spans)
		if weight <= 0 {
			continue
		}
		if sums[s.Host] == nil {
			sums[s.Host] = &hostSum{HostFigure: HostFigure{Host: s.Host, Role: s.Role}}
		}
		sums[s.Host].add(s, weight)
	}
	all := []HostFigure{}
	for _, h := range sums {
		all = append(all, h.figure().HostFigure)
	}
	slices.SortFunc(all, func(a, b HostFigure) int { return cmp.Or(cmp.Compare(a.Role, b.Role), cmp.Compare(a.Host, b.Host)) })
	ShareServers(all)
	return all
}
