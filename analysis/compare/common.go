package compare

import (
	"fmt"

	"weir/analysis"
	"weir/analysis/stats"
	"weir/internal/say"
)

// A load is what steps are matched by: clients, or the rate of the open model,
// and the how many-th step of it this is in its run.
type load struct {
	clients int
	rate    float64
	again   int
}

// loadName names what loads count: clients, jobs, or arrivals/s. Where that is
// not the same in all runs it is clients.
func loadName(groups []Group) string {
	name := ""
	for _, g := range groups {
		for _, r := range g.Runs {
			if of := r.Found.Load(); name == "" {
				name = of
			} else if of != name {
				return "clients"
			}
		}
	}
	return name
}

// steps returns the steps of a run that count by their load, and the loads in
// their order.
func steps(f *analysis.Findings) (map[load]*analysis.Step, []load) {
	by := map[load]*analysis.Step{}
	var order []load
	for i := range f.Curve {
		s := &f.Curve[i]
		if s.Excluded != "" {
			continue
		}
		l := load{clients: s.Clients, again: 1}
		if s.Rate > 0 {
			l = load{rate: s.Rate, again: 1} // clients are only a limit there
		}
		for by[l] != nil {
			l.again++
		}
		by[l] = s
		order = append(order, l)
	}
	return by, order
}

// common returns the loads that more than half of the runs of each group held,
// in the order of the first run that held most of them.
func common(groups []Group) []load {
	var all []load
	count := make([]map[load]int, len(groups))
	seen := map[load]bool{}
	for i, g := range groups {
		count[i] = map[load]int{}
		for _, r := range g.Runs {
			_, order := steps(r.Found)
			for _, l := range order {
				count[i][l]++
				if !seen[l] {
					seen[l] = true
					all = append(all, l)
				}
			}
		}
	}
	var shared []load
	for _, l := range all {
		everywhere := true
		for i, g := range groups {
			everywhere = everywhere && 2*count[i][l] > len(g.Runs)
		}
		if everywhere {
			shared = append(shared, l)
		}
	}
	return shared
}

// values fills in the number that stands for each run: the mean over all
// loads of the metric, geometric unless it may be zero; of a metric of runs, itself.
func values(g *Group, m *Metric, loads []load) {
	for _, r := range g.Runs {
		r.Value = nil
		if v, ok := number(r, m, loads); ok {
			v = m.unscale(v)
			r.Value = &v
		}
	}
}

// number is the value of a run, scaled; ok is false if it lacks a load.
func number(r *Run, m *Metric, loads []load) (float64, bool) {
	if m.PerRun() {
		v, ok := m.run(r.Found)
		if !ok {
			return 0, false
		}
		return m.scale(v)
	}
	by, _ := steps(r.Found)
	var all []float64
	for _, l := range loads {
		v, ok := stepNumber(by[l], m)
		if !ok {
			return 0, false
		}
		all = append(all, v)
	}
	return stats.Mean(all), len(all) > 0
}

// stepNumber is the value of a step, scaled; ok is false if there is none.
func stepNumber(s *analysis.Step, m *Metric) (float64, bool) {
	if s == nil || m.step == nil {
		return 0, false
	}
	v, ok := m.step(s)
	if !ok {
		return 0, false
	}
	return m.scale(v)
}

// moving returns the loads at which all runs that held them have the metric, and
// warnings of the others. To count only the runs that have it would be to judge a
// service by the runs in which it worked.
func moving(groups []Group, m *Metric, loads []load) (judged []load, warnings []string) {
	of := loadName(groups)
	for _, l := range loads {
		lacks := 0
		for _, g := range groups {
			for _, r := range g.Runs {
				by, _ := steps(r.Found)
				if by[l] == nil {
					continue
				}
				if _, ok := stepNumber(by[l], m); !ok {
					lacks++
				}
			}
		}
		if lacks == 0 || m.PerRun() {
			judged = append(judged, l)
			continue
		}
		warnings = append(warnings, fmt.Sprintf("the load of %s is left out of the overall figure: %s %s no %s there", l.text(of), say.Plural(lacks, "run"), say.Either(lacks, "has", "have"), m.Title))
	}
	return judged, warnings
}
