package analysis

import (
	"slices"
	"strings"

	"weir/loadtest/analysis/basics"
	"weir/loadtest/analysis/fact"
	"weir/loadtest/analysis/steps"
	"weir/loadtest/measure"
	"weir/loadtest/scenario"
)

// A Judgment is the result of a threshold of the scenario.
type Judgment struct {
	Threshold string `json:"threshold"` // as in the scenario
	Met       bool   `json:"met"`       // also false if the quantity was not measured
	// Certain is false if the limit lies within the 95% interval of the deciding value, so that
	// another run may be judged differently. It is nil if there is no interval.
	Certain *bool  `json:"certain"`
	Detail  string `json:"detail"` // the texts of Facts: the deciding value, with its step

	Facts []fact.Fact `json:"facts,omitempty"`
}

// undecided returns a judgment that is not met, for a threshold that cannot be judged.
func undecided(why fact.Fact) Judgment { return decided(false, nil, why) }

func decided(met bool, certain *bool, why ...fact.Fact) Judgment {
	return Judgment{Met: met, Certain: certain, Detail: strings.Join(fact.Texts(why), "; "), Facts: why}
}

// Missed reports whether any threshold was not met.
func (f *Findings) Missed() bool {
	return slices.ContainsFunc(f.Thresholds, func(j Judgment) bool { return !j.Met })
}

// judged judges thresholds by the curve. A threshold without a step must be met at every step; a
// threshold for which no step has a value is not met, so that a gate never opens by accident.
func (f *conclusion) judged(thresholds []string) []Judgment {
	out := []Judgment{}
	for _, text := range thresholds {
		t, err := scenario.ParseThreshold(text)
		j := Judgment{}
		switch {
		case err != nil:
			j = undecided(fact.New("threshold.invalid", "error", err.Error()))
		case t.Measure.Whole:
			j = f.judgeWhole(t)
		default:
			j = f.judgeSteps(t)
		}
		j.Threshold = text
		out = append(out, j)
	}
	return out
}

// stopped marks a threshold that ended the run as broken: the seconds after the decision may have
// changed the figure again.
func stopped(d *steps.Run, judged []Judgment) []Judgment {
	for _, e := range d.Events {
		if e.Kind == measure.EventThreshold {
			stoppedBy(judged, e)
		}
	}
	return judged
}

func stoppedBy(judged []Judgment, e *measure.Event) {
	for j := range basics.Each(judged) {
		if e.Reason != j.Threshold {
			continue
		}
		why := fact.New("threshold.stopped_run", "step", e.Step)
		if t, err := scenario.ParseThreshold(j.Threshold); err == nil && e.Stopped != nil { // runs of older versions have no such values
			why = stoppedStep(t, e.Stopped)
		}
		*j = decided(false, j.Certain, why)
		j.Threshold = e.Reason
	}
}

// stoppedStep describes the step that was stopped because of a threshold.
func stoppedStep(t scenario.Threshold, s *measure.StoppedStep) fact.Fact {
	return fact.New("threshold.stopped", "step", s.Step, "seconds", s.Seconds, "value", shown(t, s.Value),
		"load", plannedLoad(s.Clients, s.Rate))
}

// shown returns a value of the quantity of a threshold.
func shown(t scenario.Threshold, value float64) fact.Shown {
	return fact.As(value, t.Measure.Format(value))
}

// stepsOf returns the steps to which a threshold applies.
func (f *conclusion) stepsOf(t scenario.Threshold) []*steps.Working {
	if t.Optimum {
		if best := f.best(); best >= 0 {
			return []*steps.Working{f.c.Steps[best]}
		}
		return nil
	}
	var out []*steps.Working
	for _, s := range f.c.Steps {
		if t.Holds(s.Clients, s.Rate) {
			out = append(out, s)
		}
	}
	return out
}

func (f *conclusion) judgeSteps(t scenario.Threshold) Judgment {
	j := Judgment{Met: true}
	steps := f.stepsOf(t)
	for _, s := range steps {
		v := figureOf(s, t.Measure.Name)
		if !v.known {
			return undecided(fact.New("threshold.not_measured", "quantity", t.Measure.Name, "load", f.c.At(s)))
		}
		met, certain, doubt := v.judge(t)
		one := decided(met, certain, append([]fact.Fact{fact.New("threshold.step", "value", shown(t, v.value), "load", f.c.At(s))}, doubt...)...)
		if !met {
			return one
		}
		if len(j.Facts) == 0 || certain != nil && !*certain {
			j.Detail, j.Facts = one.Detail, one.Facts
		}
		if certain != nil && (j.Certain == nil || !*certain) {
			j.Certain = certain
		}
	}
	switch {
	case len(steps) == 0:
		return undecided(noStep(t))
	case len(steps) > 1 && (j.Certain == nil || *j.Certain):
		return decided(true, j.Certain, fact.New("threshold.all_steps", "steps", len(steps)))
	}
	return j
}

func noStep(t scenario.Threshold) fact.Fact {
	switch {
	case t.Clients > 0:
		return fact.New("threshold.no_clients", "clients", t.Clients)
	case t.Rate > 0:
		return fact.New("threshold.no_rate", "rate", float64(t.Rate))
	case t.Optimum:
		return fact.New("threshold.no_place", "place", called("optimum"))
	}
	return fact.New("threshold.no_step")
}

// judgeWhole judges a threshold on a special point of the curve, such as optimum.clients or
// knee.throughput.
//
// If the range of a run ended before that point, the run only shows that the point is not below the
// heaviest step. The heaviest step then decides a threshold that demands more than a limit; any
// other threshold is not met.
func (f *conclusion) judgeWhole(t scenario.Threshold) Judgment {
	what, name, _ := strings.Cut(t.Measure.Name, ".")
	switch {
	case f.best() < 0:
		return undecided(fact.New("threshold.no_place", "place", called(what)))
	case (what == "optimum" || what == "knee" && f.Knee == nil) && !f.Optimum.Inside &&
		f.c.LoadOf(f.c.Steps[f.best()]) == f.c.LoadOf(f.c.Steps[f.c.Heaviest()]):
		return f.beyond(t, what, name)
	}
	v := f.place(what, name)
	if !v.known {
		return undecided(fact.New("threshold.place_not_found", "place", called(what)))
	}
	met, certain, doubt := v.judge(t)
	found := fact.New("threshold.place", "place", called(what), "value", shown(t, v.value))
	return decided(met, certain, append([]fact.Fact{found}, doubt...)...)
}

func called(what string) string {
	return map[string]string{"optimum": "optimum", "knee": "knee", "cheapest": "optimum", "maximum_power": "load of maximum power"}[what]
}

// beyond judges a threshold if the run shows that the point lies beyond its range.
func (f *conclusion) beyond(t scenario.Threshold, what, name string) Judgment {
	heaviest := f.c.Heaviest()
	s := f.c.Steps[heaviest]
	v := known(float64(s.Clients))
	switch name {
	case "throughput":
		v = figureOf(s, "throughput")
	case "rate":
		v = figureOf(s, "rate")
	}
	met, certain, doubt := v.judge(t)
	if met = met && !t.Upper(); t.Upper() {
		certain, doubt = nil, nil
	}
	found := fact.New("threshold.rising", "place", called(what), "value", shown(t, v.value))
	if what == "optimum" {
		found = fact.New("threshold.no_maximum", "value", shown(t, v.value))
	}
	if !met {
		doubt = []fact.Fact{fact.New("threshold.test_heavier")}
	}
	return decided(met, certain, append([]fact.Fact{found}, doubt...)...)
}

// place returns the load of a special point of the curve, or its yield.
func (f *conclusion) place(what, name string) figure {
	pick := func(clients figure, throughput, rate float64) figure {
		switch name {
		case "throughput":
			return known(throughput)
		case "rate":
			return known(rate)
		}
		return clients
	}
	switch what {
	case "optimum", "cheapest":
		o := f.Optimum
		low, high := float64(o.ClientsLow), float64(o.ClientsHigh)
		if name == "throughput" {
			return figure{o.Throughput, o.Low, o.High, true}
		}
		return pick(figure{float64(o.Clients), &low, &high, true}, o.Throughput, o.Operations)
	case "knee":
		if k := f.Knee; k != nil {
			return pick(figure{float64(k.Clients), k.ClientsLow, k.ClientsHigh, true}, k.Throughput, k.Operations)
		}
		return figure{}
	}
	at := f.Power
	if at == nil {
		return figure{}
	}
	return pick(known(float64(at.Clients)), at.Throughput, at.Operations)
}
