package analysis

import (
	"slices"

	"weir/scenario"
)

// mostPopulations bounds the memory that damaged intervals can cost.
const mostPopulations = 64

// A PopulationCurve is what each step gave one population of clients, while the others worked as well.
type PopulationCurve struct {
	Name    string `json:"name"`
	Work    string `json:"workload"` // what each of its clients did, in words
	Measure string `json:"measure"`  // Throughput or Rate
	// Curve has a point for each step, as the run's own curve, without what is known of the whole machines only. The
	// active clients are those of all populations in proportion to the planned ones.
	Curve []Step `json:"curve"`
}

// population returns the data of the intervals of one population, nil if all clients do the same or there are too many.
func (d *data) population(name string) *data {
	p := d.populations[name]
	if p == nil && name != "" && len(d.populations) < mostPopulations {
		plan := d.plan
		if i := slices.IndexFunc(plan.Populations, func(p scenario.Population) bool { return p.Name == name }); i >= 0 {
			plan = plan.Of(i)
		}
		p = newData(plan)
		d.populations[name] = p
	}
	return p
}

// populationCurves returns the curve of each population, in the order of the plan.
func (d *data) populationCurves() []PopulationCurve {
	var all []PopulationCurve
	for i := range d.plan.Populations {
		planned := &d.plan.Populations[i]
		p := d.populations[planned.Name]
		if p == nil {
			continue
		}
		c := PopulationCurve{Name: planned.Name, Work: p.plan.WorkText(), Measure: p.measure(), Curve: []Step{}}
		for _, t := range p.held() {
			mine := 0
			if at := t.number - 1; at >= 0 && at < len(planned.Clients) {
				mine = planned.Clients[at]
			}
			for k := range t.seconds {
				t.seconds[k].clients *= ratio(float64(mine), float64(d.clientsOf(t.number)))
			}
			s := t.step()
			s.Clients = mine
			s.steady(t)
			c.Curve = append(c.Curve, s)
		}
		widen(c.Curve)
		all = append(all, c)
	}
	return all
}

// clientsOf returns the clients of a step of the plan, 0 if it has none of that number.
func (d *data) clientsOf(number int) int {
	for i := range d.plan.Steps {
		if d.plan.Steps[i].Number == number {
			return d.plan.Steps[i].Clients
		}
	}
	return 0
}
