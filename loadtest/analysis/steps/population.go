package steps

import (
	"slices"

	"weir/internal/stats"
	"weir/loadtest/measure"
	"weir/loadtest/scenario"
)

// mostPopulations limits the memory that damaged intervals can use.
const mostPopulations = 64

// A PopulationCurve is the curve of one population of clients, measured while the others were
// active as well.
type PopulationCurve struct {
	Name    string `json:"name"`
	Work    string `json:"workload"` // the work of each of its clients, in words
	Measure string `json:"measure"`  // Throughput or Rate
	// Curve has a point for each step, as the run's own curve, without figures that are known for
	// whole machines only. The active clients are the active clients of all populations in
	// proportion to the planned numbers.
	Curve []Figures `json:"curve"`
}

// population returns the data of the intervals of one population, or nil if all clients do the same
// or there are too many populations.
func (d *Run) population(name string) *Run {
	p := d.populations[name]
	if p == nil && name != "" && len(d.populations) < mostPopulations {
		plan := d.Plan
		if i := slices.IndexFunc(plan.Populations, func(p scenario.Population) bool { return p.Name == name }); i >= 0 {
			plan = plan.Of(i)
		}
		p = newRun(plan)
		d.populations[name] = p
	}
	return p
}

// PopulationCurves returns the curve of each population, in the order of the plan.
func (d *Run) PopulationCurves() []PopulationCurve {
	var all []PopulationCurve
	for i := range d.Plan.Populations {
		planned := &d.Plan.Populations[i]
		p := d.populations[planned.Name]
		if p == nil {
			continue
		}
		c := PopulationCurve{Name: planned.Name, Work: p.Plan.WorkText(), Measure: p.measure(), Curve: []Figures{}}
		var points []*Working
		for _, t := range p.Held() {
			if d.Repeated(t.Number) {
				continue
			}
			mine, all := 0, 0
			if at := d.place(t.Number); at < min(len(planned.Clients), len(d.Plan.Steps)) {
				mine, all = planned.Clients[at], d.Plan.Steps[at].Clients
			}
			for k := range t.Seconds {
				t.Seconds[k].Clients *= stats.Ratio(float64(mine), float64(all))
			}
			s := t.Step()
			s.Clients = mine
			s.steady(t)
			points = append(points, s)
		}
		Widen(points)
		c.Curve = Document(points)
		all = append(all, c)
	}
	return all
}

// place returns the index in the plan of the step with the given number, or the number of planned
// steps if the number is unknown: a resumed run continues with the plan's next step, or repeats the
// interrupted step, under a new number.
func (d *Run) place(number int) int {
	places, next := map[int]int{}, 0
	for _, e := range d.Events {
		switch at, known := places[e.Step]; {
		case e.Kind == measure.EventResume && known:
			next = at
		case e.Kind == measure.EventStep && e.Step > 0 && e.Step <= len(d.Plan.Steps):
			places[e.Step], next = e.Step-1, e.Step
		case e.Kind == measure.EventStep:
			places[e.Step] = next
			next++
		}
	}
	if at, known := places[number]; known {
		return at
	}
	return len(d.Plan.Steps)
}
