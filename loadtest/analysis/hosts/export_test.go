package hosts

import (
	"cmp"
	"slices"
	"time"

	"weir/loadtest/analysis/basics"
	"weir/monitor"
)

// Overlap returns how many seconds of the sample lie within spans.
func Overlap(s *monitor.Sample, spans [][2]time.Time) float64 {
	from, sum := s.Time.Add(-basics.Duration(s.Seconds)), 0.0
	for _, span := range spans {
		a, b := from, s.Time
		if span[0].After(a) {
			a = span[0]
		}
		if span[1].Before(b) {
			b = span[1]
		}
		sum += max(0, b.Sub(a).Seconds())
	}
	return sum
}

// InMemory does for one step what Watched does for all, with every sample in
// memory and none of its indexes.
func InMemory(samples []*monitor.Sample, spans [][2]time.Time) []HostFigure {
	sums := map[string]*hostSum{}
	for _, s := range samples {
		weight := Overlap(s, spans)
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
