package analysis

import (
	"fmt"
	"slices"
	"strings"

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
func (f *Findings) judged(thresholds []string) []Judgment {
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
func (d *data) stopped(judged []Judgment) []Judgment {
	for _, e := range d.events {
		if e.Kind == measure.EventThreshold {
			stoppedBy(judged, e)
		}
	}
	return judged
}

func stoppedBy(judged []Judgment, e *measure.Event) {
	for j := range each(judged) {
		if e.Reason == j.Threshold {
			j.Met, j.Detail = false, strings.TrimPrefix(e.Text, j.Threshold+": ")
		}
	}
}

// stepsOf returns the steps that a threshold is for.
func (f *Findings) stepsOf(t scenario.Threshold) []*Step {
	if t.Optimum {
		if best := f.best(); best >= 0 {
			return []*Step{&f.Curve[best]}
		}
		return nil
	}
	var out []*Step
	for s := range each(f.Curve) {
		if t.Holds(s.Clients, s.Rate) {
			out = append(out, s)
		}
	}
	return out
}

func (f *Findings) judgeSteps(t scenario.Threshold) Judgment {
	j := Judgment{Met: true}
	steps := f.stepsOf(t)
	for _, s := range steps {
		v := s.figure(t.Measure.Name)
		if !v.known {
			return Judgment{Detail: fmt.Sprintf("%s was not measured at %s", t.Measure.Name, f.at(s))}
		}
		met, certain, doubt := v.judge(t)
		detail := t.Measure.Format(v.value) + " at " + f.at(s) + doubt
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

// A figure is a value and, if there is one, its 95% interval.
type figure struct {
	value     float64
	low, high *float64
	known     bool
}

func known(x float64) figure { return figure{value: x, known: true} }

// judge holds v against t. Where another run may be judged the other way, doubt says so.
func (v figure) judge(t scenario.Threshold) (met bool, certain *bool, doubt string) {
	met = t.Met(v.value)
	if v.low == nil || v.high == nil {
		return met, nil, ""
	}
	sure := t.Met(*v.low) == met && t.Met(*v.high) == met
	if !sure {
		doubt = fmt.Sprintf("; not certain, its 95%% interval is %s to %s: measure longer, or repeat", t.Measure.Format(*v.low),
			t.Measure.Format(*v.high))
	}
	return met, &sure, doubt
}

// figure returns what a step gave of one of scenario.Quantities, in base units.
func (s *Step) figure(name string) figure {
	share := func(x *float64) figure { return figure{value: value(x), known: x != nil} }
	ended := float64(s.Done + s.Errors)
	each := func(x float64) figure { return figure{value: ratio(x, ended), known: ended > 0} }
	switch name {
	case "throughput":
		return figure{s.Throughput, s.ThroughputLow, s.ThroughputHigh, true}
	case "per_client":
		return figure{s.PerClient, over(s.ThroughputLow, s.ActiveClients), over(s.ThroughputHigh, s.ActiveClients), true}
	case "rate":
		return figure{s.Operations, s.OperationsLow, s.OperationsHigh, true}
	case "per_client_rate":
		return figure{s.PerClientRate, over(s.OperationsLow, s.ActiveClients), over(s.OperationsHigh, s.ActiveClients), true}
	case "error_ratio":
		return each(min(float64(s.Bad()), ended))
	case "missed_ratio":
		all := ended + float64(s.Missed)
		return figure{value: ratio(float64(s.Missed), all), known: all > 0}
	case "wait_ratio":
		return each(float64(s.Waits))
	case "cpu_efficiency":
		return figure{value(s.CPUEfficiency), s.CPUEfficiencyLow, s.CPUEfficiencyHigh, s.CPUEfficiency != nil}
	case "cluster_throughput":
		return figure{value(s.ClusterThroughput), s.ClusterThroughputLow, s.ClusterThroughputHigh, s.ClusterThroughput != nil}
	case "events_rate":
		return figure{s.EventRate, s.EventRateLow, s.EventRateHigh, s.Jobs != nil && !s.programs}
	case "job_failure_ratio":
		return share(s.JobFailureRatio)
	case "crash_ratio":
		return share(s.CrashRatio)
	case "server_cpu":
		return share(s.ServerCPU)
	case "client_cpu":
		return share(s.ClientCPU)
	case "imbalance":
		if s.Balance == nil {
			return figure{}
		}
		return known(s.Balance.Imbalance)
	}
	return s.quantile(name)
}

// quantile returns a figure of a duration, such as latency_p99.
func (s *Step) quantile(name string) figure {
	i := strings.LastIndexByte(name, '_')
	if i < 0 {
		return figure{}
	}
	q := map[string]*Quantiles{
		"latency": s.Latency, "first_byte": s.FirstByte, "connect": s.Connect, "tls_handshake": s.Handshake, "login": s.Login,
		"redirect": s.Redirect, "job": s.JobSeconds,
	}[name[:i]]
	if q == nil || q.Count == 0 {
		return figure{}
	}
	value, ok := map[string]float64{"mean": q.Mean, "p50": q.P50, "p90": q.P90, "p99": q.P99, "p999": q.P999, "max": q.Max}[name[i+1:]]
	return figure{value: value, known: ok}
}

// judgeWhole judges a threshold on where the curve turns: optimum.clients, knee.throughput and the like.
//
// A run whose range ended before that tells only that it is not below the heaviest step. That meets a threshold that
// asks for more than something, if the heaviest step does, and no other.
func (f *Findings) judgeWhole(t scenario.Threshold) Judgment {
	what, name, _ := strings.Cut(t.Measure.Name, ".")
	switch {
	case f.best() < 0:
		return Judgment{Detail: "no operation succeeded, so there is no " + called(what)}
	case (what == "optimum" || what == "knee" && f.Knee == nil) && !f.Optimum.Inside &&
		f.load(&f.Curve[f.best()]) == f.load(&f.Curve[f.heaviest()]):
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
func (f *Findings) beyond(t scenario.Threshold, what, name string) Judgment {
	heaviest := f.heaviest()
	s := &f.Curve[heaviest]
	v := known(float64(s.Clients))
	switch name {
	case "throughput":
		v = s.figure("throughput")
	case "rate":
		v = s.figure("rate")
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
func (f *Findings) place(what, name string) figure {
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
