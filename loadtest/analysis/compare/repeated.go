package compare

import (
	"errors"
	"io"
	"math"
	"slices"

	"weir/internal/stats"
	"weir/loadtest/analysis"
	"weir/loadtest/analysis/fact"
	"weir/loadtest/analysis/shape"
)

// RepeatedVersion is the version of the format of a Repeated's JSON.
const RepeatedVersion = 1

// Repeated is the summary of the repetitions of one plan. Its JSON is part of the format, see
// docs/results.md.
type Repeated struct {
	Version  int            `json:"version"` // RepeatedVersion
	Status   string         `json:"status"`  // of the least valid run
	Verdict  string         `json:"verdict"`
	Metrics  []string       `json:"metrics"` // the summarized metrics; the first decides
	Runs     []*Run         `json:"runs"`
	Lost     []string       `json:"missing"` // run directories that could not be read, and why
	Load     string         `json:"load"`    // unit of the loads: clients, jobs, arrivals/s or stages
	Steps    []RepeatedStep `json:"steps"`   // by load, for loads that more than half of the runs held
	PerRun   []Across       `json:"per_run"` // metrics that are one number of a run
	Warnings []string       `json:"warnings"`

	Facts []fact.Fact `json:"facts"` // of Verdict and Warnings
}

// A RepeatedStep summarizes one load in all runs that held it.
type RepeatedStep struct {
	Clients int      `json:"clients"`
	Rate    float64  `json:"rate_per_second,omitempty"`
	Again   int      `json:"occurrence"` // 1, or more if a load is held more than once; number of the stage
	Metrics []Across `json:"metrics"`
}

// Across is one metric across repetitions, in base units.
type Across struct {
	Metric  string    `json:"metric"`
	Values  []float64 `json:"values"` // one for each run with this metric
	Mean    float64   `json:"mean"`
	Low     *float64  `json:"low"`                   // 95% interval of the mean, from run to run; nil: one run
	High    *float64  `json:"high"`                  //
	Scatter *float64  `json:"scatter_ratio"`         // standard deviation from run to run / mean; nil: one run, or a mean of zero
	Within  *float64  `json:"within_interval_ratio"` // half of the 95% interval within one run / its mean, on average; nil: unknown
}

// Repeat summarizes the runs of a group, which are repetitions of one plan. The interval of a mean
// is Student's, computed from the means of the runs: it bounds the mean over many more such runs,
// which no single run can show. metrics are names; empty: the usual metrics and the metrics that
// are one number of a run. It returns an error if there is nothing to summarize.
func Repeat(g Group, metrics []string) (*Repeated, error) {
	if len(g.Runs) == 0 {
		return nil, errors.New("there is no run to summarize")
	}
	groups := []Group{g}
	if len(metrics) == 0 {
		metrics = append(usual(measure(groups)), "peak", "optimum", "knee")
	}
	chosen, err := choose(metrics)
	if err != nil {
		return nil, err
	}
	loads := common(groups)
	r := &Repeated{
		Version: RepeatedVersion, Status: worst(groups), Load: loadName(groups), Runs: g.Runs, Lost: append([]string{}, g.Missing...),
		Metrics: []string{}, Steps: []RepeatedStep{}, PerRun: []Across{},
	}
	for _, m := range chosen {
		r.Metrics = append(r.Metrics, m.Name)
		if m.PerRun() {
			if a, ok := across(&m, g.Runs, func(run *Run) (float64, bool) { return m.run(run.Found) }); ok {
				r.PerRun = append(r.PerRun, a)
			}
		}
	}
	values(&g, &chosen[0], loads)
	for _, l := range loads {
		r.Steps = append(r.Steps, repeatedStep(&g, chosen, l))
	}
	verdict, all := r.verdict(&chosen[0]), warnings(groups, loads)
	if n := len(g.Runs); n < fewRuns {
		all = append(all, fact.New("compare.repetitions.few", "runs", n, "advised", fewRuns))
	}
	r.Verdict, r.Warnings, r.Facts = fact.Sentences(verdict), fact.Texts(all), slices.Concat(verdict, all)
	return r, nil
}

func repeatedStep(g *Group, metrics []Metric, l load) RepeatedStep {
	s := RepeatedStep{Clients: l.clients, Rate: l.rate, Again: l.again, Metrics: []Across{}}
	for _, m := range metrics {
		if m.PerRun() {
			continue
		}
		at := func(run *Run) (float64, bool) {
			if s := run.at(l); s != nil {
				return m.step(s)
			}
			return 0, false
		}
		a, ok := across(&m, g.Runs, at)
		if !ok {
			continue
		}
		a.Within = withinRuns(&m, g.Runs, l)
		s.Metrics = append(s.Metrics, a)
	}
	return s
}

// across summarizes one number of each run.
func across(m *Metric, runs []*Run, of func(*Run) (float64, bool)) (Across, bool) {
	a := Across{Metric: m.Name}
	for _, r := range runs {
		if v, ok := of(r); ok && finite(v) {
			a.Values = append(a.Values, v)
		}
	}
	if len(a.Values) == 0 {
		return a, false
	}
	a.Mean = stats.Mean(a.Values)
	v, ok := stats.MeanInterval(a.Values)
	if same := a.Values[0]; slices.Min(a.Values) == same && slices.Max(a.Values) == same { // without rounding errors
		a.Mean, v = same, stats.Interval{Low: same, High: same}
	}
	if ok {
		v.Low = max(v.Low, min(0, slices.Min(a.Values))) // no metric is below zero
		a.Low, a.High = &v.Low, &v.High
		if a.Mean > 0 {
			if a.Scatter = new(float64); v.Low < v.High {
				*a.Scatter = stats.Deviation(a.Values) / a.Mean
			}
		}
	}
	return a, true
}

// finite reports whether v, and sums of several such numbers, are finite.
func finite(v float64) bool { return math.Abs(v) < 1e100 }

// withinRuns returns the average width of the interval within a run.
func withinRuns(m *Metric, runs []*Run, l load) *float64 {
	if m.ends == nil {
		return nil
	}
	var halves []float64
	for _, r := range runs {
		s := r.at(l)
		if s == nil {
			continue
		}
		low, high := m.ends(s)
		if v, ok := m.step(s); ok && v > 0 && low != nil && high != nil && finite((*high-*low)/v) {
			halves = append(halves, (*high-*low)/2/v)
		}
	}
	if len(halves) == 0 {
		return nil
	}
	return new(stats.Mean(halves))
}

// verdict returns the mean of the best step, and its variation.
func (r *Repeated) verdict(m *Metric) []fact.Fact {
	runs := len(r.Runs)
	best, at := r.best(m)
	if best == nil {
		return []fact.Fact{fact.New("compare.repetitions.nothing", "runs", runs)}
	}
	mean := fact.As(best.Mean, m.Format(best.Mean))
	all := []fact.Fact{fact.New("compare.repetitions.step", "runs", runs, "metric", m.titled(), "load", at, "mean", mean)}
	if m.PerRun() {
		all[0] = fact.New("compare.repetitions.run", "runs", runs, "metric", m.titled(), "mean", mean)
	}
	if best.Low == nil || best.High == nil {
		return append(all, fact.New("compare.repetitions.single"))
	}
	all = append(all, fact.New("compare.repetitions.interval", "low", fact.As(*best.Low, m.Format(*best.Low)),
		"high", fact.As(*best.High, m.Format(*best.High))))
	if best.Scatter != nil {
		all = append(all, fact.New("compare.repetitions.scatter", "scatter", *best.Scatter))
	}
	return all
}

// best returns the step that is the optimum of m over all runs (shape.OptimumOf), or the step with
// the least mean if less is better, or m itself if it is one number of a run.
func (r *Repeated) best(m *Metric) (best *Across, at string) {
	if m.PerRun() {
		if i := slices.IndexFunc(r.PerRun, func(a Across) bool { return a.Metric == m.Name }); i >= 0 {
			return &r.PerRun[i], ""
		}
		return nil, ""
	}
	var points []shape.Point
	var steps []*RepeatedStep
	least := -1
	for i := range r.Steps {
		s := &r.Steps[i]
		a := s.Metric(m.Name)
		if a == nil {
			continue
		}
		if least < 0 || a.Mean < points[least].Yield {
			least = len(points)
		}
		points = append(points, shape.Point{Load: max(s.Rate, float64(s.Clients)), Yield: a.Mean, Low: a.Low, High: a.High,
			Batches: len(a.Values)})
		steps = append(steps, s)
	}
	chosen := least
	if o, ok := shape.OptimumOf(points); ok && m.Better != Lower {
		chosen = o.Least
	}
	if chosen < 0 {
		return nil, ""
	}
	s := steps[chosen]
	return s.Metric(m.Name), load{s.Clients, s.Rate, s.Again}.text(r.Load)
}

// Metric returns the step's figures of the metric of that name, nil if the step lacks it.
func (s *RepeatedStep) Metric(name string) *Across {
	if i := slices.IndexFunc(s.Metrics, func(a Across) bool { return a.Metric == name }); i >= 0 {
		return &s.Metrics[i]
	}
	return nil
}

// JSON writes r in the format of repeated.json.
func (r *Repeated) JSON(w io.Writer) error { return analysis.JSON(w, r) }
