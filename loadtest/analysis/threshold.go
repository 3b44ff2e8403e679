package analysis

import (
	"fmt"
	"slices"
	"strings"

	"weir/loadtest/analysis/basics"
	"weir/loadtest/analysis/steps"
	"weir/loadtest/measure"
	"weir/loadtest/scenario"
)

// A Judgment is one of the scenario's thresholds held against what was found.
type Judgment struct {
	Threshold string `json:"threshold"` // as the scenario has it
	Met       bool   `json:"met"`       // false also where nothing was measured that could be judged
	// Certain is false where the 95% interval of the value that decided holds the limit, so that another run may be
	// judged the other way. It is nil where there is no interval.
	Certain *bool  `json:"certain"`
	Detail  string `json:"detail"` // the value that decided, with its step
}

// Missed reports whether any threshold was not met.
func (f *Findings) Missed() bool {
	return slices.ContainsFunc(f.Thresholds, func(j Judgment) bool { return !j.Met })
}

// judged holds thresholds against the curve. A threshold without a step must be met at every step; one that no step
// can answer is not met, so that a gate never opens by accident.
func (f *conclusion) judged(thresholds []string) []Judgment {
	out := []Judgment{}
	for _, text := range thresholds {
		t, err := scenario.ParseThreshold(text)
		j := Judgment{}
		switch {
		case err != nil:
			j.Detail = err.Error()
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

// stopped makes sure that a threshold that ended the run counts as broken: the seconds after the decision may have
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
		if e.Reason == j.Threshold {
			j.Met, j.Detail = false, strings.TrimPrefix(e.Text, j.Threshold+": ")
		}
	}
}

// stepsOf returns the steps that a threshold is for.
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
			return Judgment{Detail: fmt.Sprintf("%s was not measured at %s", t.Measure.Name, f.c.At(s))}
		}
		met, certain, doubt := v.judge(t)
		detail := t.Measure.Format(v.value) + " at " + f.c.At(s) + doubt
		if !met {
			return Judgment{Certain: certain, Detail: detail}
		}
		if j.Detail == "" || certain != nil && !*certain {
			j.Detail = detail
		}
		if certain != nil && (j.Certain == nil || !*certain) {
			j.Certain = certain
		}
	}
	switch {
	case len(steps) == 0:
		return Judgment{Detail: noStep(t)}
	case len(steps) > 1 && (j.Certain == nil || *j.Certain):
		j.Detail = fmt.Sprintf("at all %d steps", len(steps))
	}
	return j
}

func noStep(t scenario.Threshold) string {
	switch {
	case t.Clients > 0:
		return fmt.Sprintf("no step had %d clients", t.Clients)
	case t.Rate > 0:
		return fmt.Sprintf("no step had %g arrivals/s", t.Rate)
	case t.Optimum:
		return "no operation succeeded, so there is no optimum"
	}
	return "no step was measured"
}

// judgeWhole judges a threshold on where the curve turns: optimum.clients, knee.throughput and the like.
//
// A run whose range ended before that tells only that it is not below the heaviest step. That meets a threshold that
// asks for more than something, if the heaviest step does, and no other.
func (f *conclusion) judgeWhole(t scenario.Threshold) Judgment {
	what, name, _ := strings.Cut(t.Measure.Name, ".")
	switch {
	case f.best() < 0:
		return Judgment{Detail: "no operation succeeded, so there is no " + called(what)}
	case (what == "optimum" || what == "knee" && f.Knee == nil) && !f.Optimum.Inside &&
		f.c.LoadOf(f.c.Steps[f.best()]) == f.c.LoadOf(f.c.Steps[f.c.Heaviest()]):
		return f.beyond(t, what, name)
	}
	v := f.place(what, name)
	if !v.known {
		return Judgment{Detail: "no " + called(what) + " was found"}
	}
	met, certain, doubt := v.judge(t)
	return Judgment{Met: met, Certain: certain, Detail: "the " + called(what) + " is at " + t.Measure.Format(v.value) + doubt}
}

func called(what string) string {
	return map[string]string{"optimum": "optimum", "knee": "knee", "cheapest": "optimum", "maximum_power": "load of maximum power"}[what]
}

// beyond judges where the run shows that the place lies beyond its range.
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
	shown := t.Measure.Format(v.value)
	if met = met && !t.Upper(); t.Upper() {
		certain, doubt = nil, ""
	}
	detail := fmt.Sprintf("the curve still rises at the heaviest step: the %s is at %s or more", called(what), shown)
	if what == "optimum" {
		detail = fmt.Sprintf("there is no maximum in the tested range: it is at %s or more", shown)
	}
	if !met {
		doubt = "; test heavier steps to find it"
	}
	return Judgment{Met: met, Certain: certain, Detail: detail + doubt}
}

// place returns where on the curve something is, or what it gives there.
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
