package compare

import (
	"iter"
	"slices"

	"weir/internal/stats"
	"weir/loadtest/analysis"
	"weir/loadtest/analysis/fact"
)

// A load is the key by which steps are matched: the number of clients, or the rate of the open
// model, and the number of the step among the steps of its run with the same load.
type load struct {
	clients int
	rate    float64
	again   int
}

// eachRun yields the runs of all groups.
func eachRun(groups []Group) iter.Seq[*Run] {
	return func(yield func(*Run) bool) {
		for _, g := range groups {
			for _, r := range g.Runs {
				if !yield(r) {
					return
				}
			}
		}
	}
}

// loadName returns the unit of loads: clients, jobs, arrivals/s or stages; clients if the runs differ
// in it.
func loadName(groups []Group) string {
	name := ""
	for r := range eachRun(groups) {
		if of := r.Found.Load(); name != "" && of != name {
			return "clients"
		}
		name = r.Found.Load()
	}
	return name
}

// steps returns the steps of a run that count by their load, and the loads in their order. A step
// that does not count still keeps its number among the steps of its load.
func steps(f *analysis.Findings) (map[load]*analysis.Step, []load) {
	by, seen := map[load]*analysis.Step{}, map[load]int{}
	var order []load
	for i := range f.Curve {
		s := &f.Curve[i]
		l := load{clients: s.Clients}
		if s.Rate > 0 {
			l = load{rate: s.Rate} // clients are only a limit there
		}
		seen[l]++
		l.again = seen[l]
		if s.Excluded != "" {
			continue
		}
		by[l] = s
		order = append(order, l)
	}
	return by, order
}

// at returns the step of r with a load, nil without such a step that counts.
func (r *Run) at(l load) *analysis.Step {
	by, _ := steps(r.Found)
	return by[l]
}

// common returns the loads that more than half of the runs of each group held, in the order of the
// first run that held most of them.
func common(groups []Group) []load {
	var all []load
	lacking := map[load]bool{}
	for _, g := range groups {
		for _, r := range g.Runs {
			_, order := steps(r.Found)
			all = append(all, order...)
		}
	}
	for _, l := range all {
		for _, g := range groups {
			n := 0
			for _, r := range g.Runs {
				if r.at(l) != nil {
					n++
				}
			}
			lacking[l] = lacking[l] || 2*n <= len(g.Runs)
		}
	}
	return slices.DeleteFunc(distinct(all), func(l load) bool { return lacking[l] })
}

// distinct removes repeated elements from all, and keeps the order of the first occurrences.
func distinct[T comparable](all []T) []T {
	seen := map[T]bool{}
	return slices.DeleteFunc(all, func(x T) bool {
		twice := seen[x]
		seen[x] = true
		return twice
	})
}

// values fills in the number that represents each run: the mean of the metric over all loads,
// geometric unless the metric may be zero; for a metric of runs, its value.
func values(g *Group, m *Metric, loads []load) {
	for _, r := range g.Runs {
		r.Value = nil
		if v, ok := number(r, m, loads); ok {
			r.Value = new(m.unscale(v))
		}
	}
}

// number returns the scaled value of a run; ok is false if the run lacks a load.
func number(r *Run, m *Metric, loads []load) (float64, bool) {
	if m.PerRun() {
		if v, ok := m.run(r.Found); ok {
			return m.scale(v)
		}
		return 0, false
	}
	var all []float64
	by, _ := steps(r.Found)
	for _, l := range loads {
		v, ok := stepNumber(by[l], m)
		if !ok {
			return 0, false
		}
		all = append(all, v)
	}
	return stats.Mean(all), len(all) > 0
}

// stepNumber returns the scaled value of a step; ok is false without a value.
func stepNumber(s *analysis.Step, m *Metric) (float64, bool) {
	if s != nil && m.step != nil {
		if v, ok := m.step(s); ok {
			return m.scale(v)
		}
	}
	return 0, false
}

// moving returns the loads at which all runs that held them have the metric, and warnings of the
// other loads. If only the runs with the metric counted, a service would be judged by the runs in
// which it worked.
func moving(groups []Group, m *Metric, loads []load) (judged []load, warnings []fact.Fact) {
	for _, l := range loads {
		lacks := 0
		for r := range eachRun(groups) {
			if s := r.at(l); s != nil {
				if _, ok := stepNumber(s, m); !ok {
					lacks++
				}
			}
		}
		if lacks == 0 || m.PerRun() {
			judged = append(judged, l)
			continue
		}
		warnings = append(warnings, fact.New("compare.missing_metric", "load", l.text(loadName(groups)), "metric", m.titled(), "runs", lacks))
	}
	return judged, warnings
}
