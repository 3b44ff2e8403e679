package analysis

import (
	"slices"

	"weir/loadtest/measure"
	"weir/loadtest/scenario"
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
			if d.repeated(t.number) {
				continue
			}
			mine, all := 0, 0
			if at := d.place(t.number); at < min(len(planned.Clients), len(d.plan.Steps)) {
				mine, all = planned.Clients[at], d.plan.Steps[at].Clients
			}
			for k := range t.seconds {
				t.seconds[k].clients *= ratio(float64(mine), float64(all))
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

// place returns the place in the plan, from 0, of the step of that number, or the number of steps if it has none: a resumed run goes on
// with the plan's next step, or with that which was broken off, under a new number.
func (d *data) place(number int) int {
	places, next := map[int]int{}, 0
	for _, e := range d.events {
		switch at, known := places[e.Step]; {
		case e.Kind == measure.EventResume && known:
			next = at
		case e.Kind == measure.EventStep && e.Step > 0 && e.Step <= len(d.plan.Steps):
			places[e.Step], next = e.Step-1, e.Step
		case e.Kind == measure.EventStep:
			places[e.Step] = next
			next++
		}
	}
	if at, known := places[number]; known {
		return at
	}
	return len(d.plan.Steps)
}
